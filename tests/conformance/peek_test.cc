// SPDX-License-Identifier: BSD-2-Clause
// Do FI_PEEK, FI_CLAIM and FI_DISCARD find, keep and drop messages? (fi_tagged(3))
#include "support/placements.h"

namespace weft::conformance {
namespace {

constexpr std::size_t kSizes[] = {0, 1, 64, 4096, 5000, 300000};
constexpr std::uint64_t kData = 0xDA7A;

// The receiver is this process; what it peeks for comes from the other side.
class Peek : public PlacementTest {
 protected:
  Peek() : world_(GetParam(), Options{}) {}

  LocalParty& receiver() { return world_.initiator(); }

  Token send(std::uint64_t tag, std::size_t length, std::uint64_t seed) {
    return world_.target().post({.kind = Kind::kTsenddata,
                                 .length = length,
                                 .seed = seed,
                                 .peer = world_.to_initiator(),
                                 .tag = tag,
                                 .data = kData});
  }
  Token request(std::uint64_t tag, std::uint64_t flags) {
    return receiver().post({.kind = Kind::kTrecvmsg, .tag = tag, .flags = flags});
  }
  // A peek may be asked before the message has arrived: asks again until it is found.
  Token find(std::uint64_t tag, std::uint64_t more_flags, Completion* found) {
    const auto deadline = std::chrono::steady_clock::now() + patience();
    while (std::chrono::steady_clock::now() < deadline) {
      const Token token = request(tag, FI_PEEK | more_flags);
      *found = receiver().wait(token).value_or(Completion{});
      if (found->err != FI_ENOMSG) return token;
    }
    ADD_FAILURE() << "the message with tag " << tag << " is never found";
    return kNoToken;
  }
  void expect_absent(std::uint64_t tag) { receiver().wait_error(request(tag, FI_PEEK), FI_ENOMSG); }
  void receive(std::uint64_t tag, std::size_t length, std::uint64_t seed) {
    const Token token = receiver().post({.kind = Kind::kTrecv, .length = length, .tag = tag});
    EXPECT_EQ(receiver().wait_success(token).length, length);
    receiver().expect_data(token, seed, length);
  }
  void expect_described(const Completion& c, std::uint64_t tag, std::size_t length) {
    EXPECT_EQ(c.err, 0);
    EXPECT_EQ(c.length, length);
    EXPECT_EQ(c.tag, tag);
    EXPECT_EQ(c.data, kData);
    EXPECT_EQ(c.flags & (FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA),
              FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
  }

  World world_;
};

TEST_P(Peek, NothingThereIsAnErrorCompletion) {
  ASSERT_TRUE(world_.ok());
  expect_absent(7);
  const Token sent = send(8, 16, 1);
  Completion c;
  find(8, 0, &c);
  expect_absent(7);
  receive(8, 16, 1);
  world_.target().wait_success(sent);
  expect_absent(8);
}

TEST_P(Peek, FoundMessageIsDescribedAndStays) {
  ASSERT_TRUE(world_.ok());
  for (const std::size_t length : kSizes) {
    SCOPED_TRACE(length);
    const Token sent = send(5, length, 2);
    Completion c;
    find(5, 0, &c);
    expect_described(c, 5, length);
    find(5, 0, &c);
    expect_described(c, 5, length);
    receive(5, length, 2);
    world_.target().wait_success(sent);
  }
}

TEST_P(Peek, DoesNotTakeAReceiveThatIsPosted) {
  ASSERT_TRUE(world_.ok());
  const Token posted = receiver().post({.kind = Kind::kTrecv, .length = 16, .tag = 1});
  expect_absent(1);
  const Token sent = send(1, 16, 3);
  receiver().wait_success(posted);
  receiver().expect_data(posted, 3, 16);
  world_.target().wait_success(sent);
}

TEST_P(Peek, ClaimedMessageWaitsForItsClaimer) {
  ASSERT_TRUE(world_.ok());
  for (const std::size_t length : kSizes) {
    SCOPED_TRACE(length);
    const Token first = send(5, length, 1);
    const Token second = send(5, length, 2);
    Completion c;
    const Token peek = find(5, FI_CLAIM, &c);
    ASSERT_NE(peek, kNoToken);
    expect_described(c, 5, length);
    receive(5, length, 2);  // The first one is out of reach for anybody else.
    expect_absent(5);
    const Posted claim = receiver().post_with_context(
        {.kind = Kind::kTrecvmsg, .length = length, .tag = 5, .flags = FI_CLAIM}, peek);
    ASSERT_EQ(claim.rc, 0);
    EXPECT_EQ(receiver().wait_success(peek).length, length);
    receiver().expect_data(claim.token, 1, length);
    world_.target().wait_success(first);
    world_.target().wait_success(second);
  }
}

TEST_P(Peek, DiscardedMessageIsGone) {
  ASSERT_TRUE(world_.ok());
  for (const std::size_t length : kSizes) {
    SCOPED_TRACE(length);
    const Token first = send(5, length, 1);
    const Token second = send(5, length, 2);
    Completion c;
    find(5, FI_DISCARD, &c);
    expect_described(c, 5, length);
    receive(5, length, 2);
    expect_absent(5);
    world_.target().wait_success(first);
    world_.target().wait_success(second);
  }
}

TEST_P(Peek, ClaimedMessageCanBeDiscarded) {
  ASSERT_TRUE(world_.ok());
  for (const std::size_t length : kSizes) {
    SCOPED_TRACE(length);
    const Token sent = send(5, length, 1);
    Completion c;
    const Token peek = find(5, FI_CLAIM, &c);
    ASSERT_NE(peek, kNoToken);
    const Posted discard = receiver().post_with_context(
        {.kind = Kind::kTrecvmsg, .tag = 5, .flags = FI_CLAIM | FI_DISCARD}, peek);
    ASSERT_EQ(discard.rc, 0);
    receiver().wait_success(peek);
    world_.target().wait_success(sent);
    expect_absent(5);
  }
}

INSTANTIATE_TEST_SUITE_P(Matching, Peek, every_placement(), placement_name);

}  // namespace
}  // namespace weft::conformance
