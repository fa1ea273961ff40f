// SPDX-License-Identifier: BSD-2-Clause
// What do thousands of endpoints leave behind that were opened and closed?
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "os/descriptor_count_support.h"
#include "os/thread_count_support.h"
#include "support/endpoint.h"

namespace weft::conformance {
namespace {

constexpr std::size_t kAtATime = 50;
constexpr std::size_t kDescriptors = 6;  // of an endpoint and queues without wait objects
constexpr std::size_t kOfRelay = 2;      // of port 4791, for all endpoints of datagrams

// What this process has of each kind that the kernel counts.
struct Belongings {
  std::size_t descriptors = 0;
  std::size_t threads = 0;
  std::size_t shared_mappings = 0;
};

Belongings belongings() {
  Belongings all{os::count_descriptors(), os::count_threads(), 0};
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("-s ") != std::string::npos) ++all.shared_mappings;
  }
  return all;
}

class ManyEndpoints : public testing::TestWithParam<fi_ep_type> {};

// Open side by side, in turn closed from either end, and each of them bound to queues of its own.
// Of FI_EP_MSG these are the ones that listen.
TEST_P(ManyEndpoints, LeaveNothingBehind) {
  constexpr std::size_t kRounds = 67;  // with three types 10,000 endpoints in all
  Options options = GetParam() == FI_EP_DGRAM ? datagrams() : Options{};
  options.type = GetParam();
  const auto domain = std::make_shared<Domain>(options);
  ASSERT_TRUE(domain->ok());
  { const Endpoint first(domain, options); }  // what is opened once and kept
  const Belongings before = belongings();
  for (std::size_t round = 0; round < kRounds && !HasFailure(); ++round) {
    std::vector<std::unique_ptr<Endpoint>> crowd;
    for (std::size_t i = 0; i < kAtATime; ++i) {
      crowd.push_back(std::make_unique<Endpoint>(domain, options));
      ASSERT_TRUE(crowd.back()->ok()) << "round " << round << ", endpoint " << i;
    }
    EXPECT_LE(belongings().descriptors, before.descriptors + kAtATime * kDescriptors + kOfRelay);
    while (!crowd.empty()) {
      if (round % 2 == 0) crowd.erase(crowd.begin());
      if (round % 2 != 0) crowd.pop_back();
    }
  }
  const Belongings after = belongings();
  EXPECT_EQ(after.descriptors, before.descriptors);
  // The one in the background has begun if a port became free that other processes wait for, too.
  EXPECT_LE(after.threads, std::max<std::size_t>(before.threads, 2));
  EXPECT_EQ(after.shared_mappings, before.shared_mappings);
}

INSTANTIATE_TEST_SUITE_P(ManyEndpoints, ManyEndpoints,
                         testing::Values(FI_EP_RDM, FI_EP_MSG, FI_EP_DGRAM));

}  // namespace
}  // namespace weft::conformance
