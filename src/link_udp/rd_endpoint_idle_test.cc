// SPDX-License-Identifier: BSD-2-Clause
// What does an idle peer cost?
#include <gtest/gtest.h>
#include <malloc.h>

#include "test_support.h"

namespace weft::udp {
namespace {

using namespace testing;

constexpr std::size_t kPeers = 100;
constexpr std::size_t kLimit = 4096;  // bytes at each end

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kOwnAllocator = false;
#else
constexpr bool kOwnAllocator = true;
#endif

std::size_t allocated() {
  const auto info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

// One that all others talk to, and that talks to all of them.
TEST(IdlePeers, TakeLittleMemoryAfterHavingSentMuch) {
  if (!kOwnAllocator) GTEST_SKIP() << "a sanitizer's allocator says nothing of what is allocated";
  Peer hub;
  std::deque<Peer> peers(kPeers);
  const auto poll_all = [&] {
    hub.poll();
    for (Peer& peer : peers) peer.poll();
  };
  const std::size_t before = allocated();
  Bytes bytes = pattern(100'000, 1);
  std::size_t sent = 0;
  for (Peer& peer : peers) {
    for (Peer* from : {&hub, &peer}) {
      Peer& to = from == &hub ? peer : hub;
      link::Flow* flow = connect(*from, to);
      ASSERT_NE(flow, nullptr);
      for (const std::size_t length : {8, 8000, 16'000, 100'000}) {
        const link::Outcome outcome =
            send(*from, to, *flow, ++sent, std::span(bytes).first(length));
        const auto done = [&] {
          return outcome.state == link::Outcome::State::kDone || from->ends.has(sent);
        };
        ASSERT_TRUE(until({from, &to}, done));
      }
    }
  }
  // What the test itself has kept goes first.
  const auto clear = [](Peer& peer) {
    std::deque<InboxLog::Message>().swap(peer.log.messages);
    peer.ends.ended_ones.clear();
  };
  clear(hub);
  for (Peer& peer : peers) clear(peer);
  // Memory for work is given back after a while.
  const auto each = [&] { return (allocated() - before) / (2 * kPeers); };
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (each() >= kLimit && std::chrono::steady_clock::now() < end) poll_all();
  RecordProperty("bytes", static_cast<int>(each()));
  EXPECT_LT(each(), kLimit);
  for (Peer& peer : peers) peer.flows.clear();
  hub.flows.clear();
  for (int i = 0; i < 20; ++i) poll_all();
}

}  // namespace
}  // namespace weft::udp
