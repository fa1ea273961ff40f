// SPDX-License-Identifier: BSD-2-Clause
// Do datagrams through shared memory leave something behind?
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <iterator>

#include "test_support.h"

namespace weft::queue::testing {
namespace {

using work::CompletionStatus;

std::size_t open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

// A datagram to a queue pair of another number, which is gone afterwards.
void send_to_another(End& a) {
  End b(QpType::kUd, nullptr, 64, true);
  b.connect(0);
  const work::Segment in[] = {b.part(0, 200)};
  ASSERT_EQ(b.receive(in), 0);
  const AddressHandle handle(a.domain, End::usual().address);
  const work::Segment out[] = {a.part(0, 100)};
  QpSendRequest request;
  request.work.sges = out;
  request.work.length = 100;
  request.to = &handle;
  request.destination = b.pair->qpn();
  request.queue_key = End::usual().queue_key;
  ASSERT_EQ(a.post(request), 0);
  ASSERT_EQ(a.next_sent().status, CompletionStatus::kSuccess);
  ASSERT_EQ(b.next_received().status, CompletionStatus::kSuccess);
  ASSERT_EQ(b.port->stats().of(Stat::kSharedMessages), 1u);
}

TEST(DatagramLink, KeepsFewFilesOfPeersThatAreGone) {
  End a(QpType::kUd, nullptr, 64, true);
  a.connect(0);
  send_to_another(a);
  const std::size_t before = open_files();
  constexpr std::size_t kPeers = 100;
  for (std::size_t i = 0; i < kPeers; ++i) send_to_another(a);
  EXPECT_LT(open_files(), before + kPeers / 2);
}

}  // namespace
}  // namespace weft::queue::testing
