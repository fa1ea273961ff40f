// SPDX-License-Identifier: BSD-2-Clause
// May any thread make control calls while another one moves data? fi_domain(3): "Control interfaces
// are always considered thread safe", under every threading model.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "support/control_calls.h"

namespace weft::conformance {
namespace {

constexpr int kThreads = 4;

Options of(fi_ep_type type, fi_threading threading) {
  Options options = type == FI_EP_DGRAM ? datagrams() : Options();
  options.type = type;
  options.threading = threading;
  return options;
}

// Runs `control(thread)` in each of a few threads, and `move_data()` in this one until they end.
void run(const std::function<void(int)>& control, const std::function<void()>& move_data) {
  std::atomic<int> running{kThreads};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      control(thread);
      --running;
    });
  }
  while (running > 0 && !testing::Test::HasFailure()) move_data();
  for (std::thread& thread : threads) thread.join();
}

// One thread moves data of an endpoint that sends to itself; others use what that one reports to.
class ControlThreads : public testing::TestWithParam<fi_threading> {
 protected:
  void open(fi_ep_type type) {
    const Options options = of(type, GetParam());
    domain_ = std::make_shared<Domain>(options);
    endpoint_ = std::make_unique<Endpoint>(domain_, options);
    ASSERT_TRUE(endpoint_->ok());
    self_ = endpoint_->insert(endpoint_->name());
    pump_.add(endpoint_.get());
  }
  // A message, and its two completions.
  void move_data() {
    fi_context2 context[2]{};
    std::uint64_t received = 0;
    fid_ep* const ep = endpoint_->ep();
    ASSERT_EQ(fi_recv(ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, &context[0]), 0);
    ASSERT_TRUE(pump_.until([&] {
      const ssize_t status = fi_send(ep, &sent_, sizeof sent_, nullptr, self_, &context[1]);
      return status == 0;
    }));
    for (fi_context2& one : context) {
      ASSERT_TRUE(pump_.until([&] { return endpoint_->take(&one).has_value(); }));
    }
    ASSERT_EQ(received, sent_++);
  }
  ControlCalls calls(int thread) {
    return {{domain_.get(), endpoint_->cq(), endpoint_->av(), endpoint_->ep()}, thread};
  }

  std::shared_ptr<Domain> domain_;
  std::unique_ptr<Endpoint> endpoint_;
  Pump pump_;
  fi_addr_t self_ = FI_ADDR_NOTAVAIL;
  std::uint64_t sent_ = 0;
};

TEST_P(ControlThreads, InsertLookUpAndRemoveAddresses) {
  ASSERT_NO_FATAL_FAILURE(open(FI_EP_RDM));
  const auto control = [&](int thread) {
    ControlCalls made = calls(thread);
    for (int round = 0; round < 20 && !HasFailure(); ++round) made.exchange_addresses(500);
  };
  run(control, [&] { move_data(); });
}

TEST_P(ControlThreads, OpenBindEnableAndCloseEndpoints) {
  ASSERT_NO_FATAL_FAILURE(open(FI_EP_RDM));
  const auto control = [&](int thread) {
    ControlCalls made = calls(thread);
    for (int i = 0; i < 50 && !HasFailure(); ++i) made.open_endpoint();
  };
  run(control, [&] { move_data(); });
}

TEST_P(ControlThreads, RegisterAndCloseRegionsQueuesCountersAndSets) {
  ASSERT_NO_FATAL_FAILURE(open(FI_EP_RDM));
  const auto control = [&](int thread) {
    ControlCalls made = calls(thread);
    for (int i = 0; i < 100 && !HasFailure(); ++i) made.open_objects();
  };
  run(control, [&] { move_data(); });
}

TEST_P(ControlThreads, JoinAndLeaveGroups) {
  ASSERT_NO_FATAL_FAILURE(open(FI_EP_DGRAM));
  if (domain_->info()->addr_format != FI_SOCKADDR_IN) GTEST_SKIP() << "groups of IPv4 are joined";
  const auto control = [&](int thread) {
    ControlCalls made = calls(thread);
    for (int i = 0; i < 20 && !HasFailure(); ++i) made.join_group();
  };
  run(control, [&] { pump_.once(); });
}

// Each thread has an event queue of its own; all endpoints report to the queue that is polled.
TEST_P(ControlThreads, ConnectAndDisconnect) {
  Place place(FI_WAIT_UNSPEC, GetParam());
  ASSERT_TRUE(place.ok());
  Pair pair(place);
  std::uint64_t number = 0;
  const auto exchange = [&] {
    std::uint64_t got = 0;
    ASSERT_EQ(fi_recv(pair.passive.get(), &got, sizeof got, nullptr, 0, nullptr), 0);
    ASSERT_EQ(fi_send(pair.active.get(), &number, sizeof number, nullptr, 0, nullptr), 0);
    for (int ends = 0; ends < 2; ++ends) ASSERT_EQ(place.completion().err, 0);
    ASSERT_EQ(got, number++);
  };
  const auto control = [&](int thread) {
    ControlCalls made({&place.domain(), place.cq(), nullptr, pair.active.get()}, thread);
    for (int i = 0; i < 5 && !HasFailure(); ++i) made.connect();
  };
  run(control, exchange);
}

INSTANTIATE_TEST_SUITE_P(Threaded, ControlThreads,
                         testing::Values(FI_THREAD_SAFE, FI_THREAD_DOMAIN),
                         [](const testing::TestParamInfo<fi_threading>& one) {
                           return one.param == FI_THREAD_SAFE ? "Safe" : "Domain";
                         });

// One domain is for one type no more: what waits for an event queue comes in by the gate.
TEST(ControlThreadsOfOneDomain, AConnectedEndpointIsOpenedBesideOthers) {
  Domain domain(of(FI_EP_RDM, FI_THREAD_DOMAIN));
  ASSERT_TRUE(domain.ok());
  int rc = 0;
  const Options connected = of(FI_EP_MSG, FI_THREAD_DOMAIN);
  const Info info = get_info(connected, make_hints(connected).get(), &rc);
  ASSERT_EQ(rc, 0);
  fid_ep* ep = nullptr;
  ASSERT_EQ(fi_endpoint(domain.get(), info.get(), &ep, nullptr), 0);
  EXPECT_EQ(fi_close(&ep->fid), 0);
}

}  // namespace
}  // namespace weft::conformance
