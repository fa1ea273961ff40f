// SPDX-License-Identifier: BSD-2-Clause
// Which tagged message does a tagged receive get? (fi_tagged(3))
#include "support/placements.h"

namespace weft::conformance {
namespace {

constexpr std::uint64_t kAll = ~std::uint64_t{0};

struct MatchCase {
  std::uint64_t receive_tag;
  std::uint64_t ignore;
  std::uint64_t sent_tag;
  bool matches;
};
constexpr MatchCase kCases[] = {
    {5, 0, 5, true},
    {5, 0, 6, false},
    {0, 0, 0, true},
    {kAll, 0, kAll, true},
    {1ull << 63, 0, 0, false},
    {0xFF00, 0x00FF, 0xFF42, true},
    {0xFF00, 0x00FF, 0xFE42, false},
    {0xFF42, 0x00FF, 0xFF00, true},  // Ignored bits of the receive's own tag do not count.
    {123, kAll, 456, true},
    {1ull << 63, kAll >> 1, (1ull << 63) | 77, true},
    {1ull << 63, kAll >> 1, 77, false},
};

class TagMatching : public PlacementTest {
 protected:
  TagMatching() : world_(GetParam(), Options{}) {}

  Token receive(std::uint64_t tag, std::uint64_t ignore) {
    return world_.target().post({.kind = Kind::kTrecv, .length = 64, .tag = tag, .ignore = ignore});
  }
  void send(std::uint64_t tag, std::uint64_t seed) {
    world_.initiator().wait_success(world_.initiator().post({.kind = Kind::kTsend,
                                                             .length = 64,
                                                             .seed = seed,
                                                             .peer = world_.to_target(),
                                                             .tag = tag}));
  }
  void expect(Token token, std::uint64_t tag, std::uint64_t seed) {
    EXPECT_EQ(world_.target().wait_success(token).tag, tag);
    world_.target().expect_data(token, seed, 64);
  }

  World world_;
};

// A message that must not match has to wait for the catch-all receive that is posted second.
TEST_P(TagMatching, PostedReceiveTakesOnlyWhatItsMaskAllows) {
  ASSERT_TRUE(world_.ok());
  for (const MatchCase& one : kCases) {
    SCOPED_TRACE(testing::Message() << std::hex << one.receive_tag << "/" << one.ignore
                                    << " against " << one.sent_tag);
    const Token narrow = receive(one.receive_tag, one.ignore);
    const Token any = receive(0, kAll);
    send(one.sent_tag, 1);
    expect(one.matches ? narrow : any, one.sent_tag, 1);
    send(one.receive_tag, 2);
    expect(one.matches ? any : narrow, one.receive_tag, 2);
    if (HasFailure()) return;
  }
}

TEST_P(TagMatching, LateReceiveTakesOnlyWhatItsMaskAllows) {
  ASSERT_TRUE(world_.ok());
  for (const MatchCase& one : kCases) {
    SCOPED_TRACE(testing::Message() << std::hex << one.receive_tag << "/" << one.ignore
                                    << " against " << one.sent_tag);
    send(one.sent_tag, 1);
    send(one.receive_tag, 2);
    world_.target().leftovers();  // Both are unexpected by now.
    const Token narrow = receive(one.receive_tag, one.ignore);
    const Token any = receive(0, kAll);
    expect(narrow, one.matches ? one.sent_tag : one.receive_tag, one.matches ? 1 : 2);
    expect(any, one.matches ? one.receive_tag : one.sent_tag, one.matches ? 2 : 1);
    if (HasFailure()) return;
  }
}

TEST_P(TagMatching, OldestMatchingReceiveWins) {
  ASSERT_TRUE(world_.ok());
  const Token any = receive(0, kAll);
  const Token exact = receive(9, 0);
  send(9, 1);
  expect(any, 9, 1);
  send(9, 2);
  expect(exact, 9, 2);
}

TEST_P(TagMatching, OldestMatchingMessageWins) {
  ASSERT_TRUE(world_.ok());
  send(3, 1);
  send(4, 2);
  send(3, 3);
  world_.target().leftovers();
  const Token four = receive(4, 0);
  const Token first = receive(0, kAll);
  const Token second = receive(3, 0);
  expect(four, 4, 2);
  expect(first, 3, 1);
  expect(second, 3, 3);
}

TEST_P(TagMatching, TaggedAndUntaggedTrafficDoNotMeet) {
  ASSERT_TRUE(world_.ok());
  const Token tagged = receive(0, kAll);
  const Token plain = world_.target().post({.kind = Kind::kRecv, .length = 64});
  world_.initiator().wait_success(world_.initiator().post(
      {.kind = Kind::kSend, .length = 64, .seed = 8, .peer = world_.to_target()}));
  world_.target().wait_success(plain);
  world_.target().expect_data(plain, 8, 64);
  EXPECT_EQ(world_.target().leftovers(), 0u);
  send(1, 9);
  expect(tagged, 1, 9);
}

INSTANTIATE_TEST_SUITE_P(Matching, TagMatching, every_placement(), placement_name);

}  // namespace
}  // namespace weft::conformance
