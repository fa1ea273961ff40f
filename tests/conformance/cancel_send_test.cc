// SPDX-License-Identifier: BSD-2-Clause
// Does fi_cancel withdraw a send that no receive has matched, and no other one? (fi_endpoint(3))
#include <signal.h>
#include <sys/mman.h>

#include <vector>

#include "support/placements.h"

namespace weft::conformance {
namespace {

constexpr std::size_t kLarge = 8 << 20;
constexpr std::size_t kSizes[] = {300'000, kLarge};

// The sends of this process, and the receives of the other side.
class CancelSend : public PlacementTest {
 protected:
  CancelSend() : world_(GetParam(), with_multi_receives()) {}
  static Options with_multi_receives() {
    Options options;
    options.caps = FI_MSG | FI_TAGGED | FI_MULTI_RECV;
    return options;
  }

  Token send(std::size_t length, std::uint64_t tag, std::uint64_t seed = 1) {
    return world_.initiator().post({.kind = Kind::kTsend,
                                    .length = length,
                                    .seed = seed,
                                    .peer = world_.to_target(),
                                    .tag = tag});
  }
  static Operation receive(std::size_t length, std::uint64_t tag) {
    return {.kind = Kind::kTrecv, .length = length, .tag = tag};
  }
  void cancel(Token sent) {
    EXPECT_EQ(world_.initiator().cancel(sent), 0);
    const Completion c = world_.initiator().wait_error(sent, FI_ECANCELED);
    EXPECT_EQ(c.flags & (FI_SEND | FI_TAGGED), FI_SEND | FI_TAGGED);
  }
  // The receive, which waits for that tag, gets this message and none that was withdrawn.
  void expect_next(Token received, std::uint64_t tag, std::size_t length = 40) {
    const Token sent = send(length, tag, 9);
    EXPECT_EQ(world_.target().wait_success(received).length, length);
    world_.target().expect_data(received, 9, length);
    world_.initiator().wait_success(sent);
  }
  Token peek(std::uint64_t tag, std::uint64_t flags, int* error) {
    const Token token =
        world_.target().post({.kind = Kind::kTrecvmsg, .tag = tag, .flags = FI_PEEK | flags});
    *error = world_.target().wait(token).value_or(Completion{}).err;
    return token;
  }
  // Asks until the answer is that error, or patience runs out.
  Token peek_until(int error, std::uint64_t tag, std::uint64_t flags = 0) {
    const auto end = std::chrono::steady_clock::now() + patience();
    int answer = -1;
    Token token = kNoToken;
    while (answer != error && std::chrono::steady_clock::now() < end) {
      token = peek(tag, flags, &answer);
    }
    EXPECT_EQ(answer, error);
    return token;
  }

  World world_;
};

TEST_P(CancelSend, AWithdrawnMessageIsNotReceived) {
  ASSERT_TRUE(world_.ok());
  for (const std::size_t length : kSizes) {
    SCOPED_TRACE(length);
    cancel(send(length, 5));
    expect_next(world_.target().post(receive(length, 5)), 5);
  }
  EXPECT_EQ(world_.initiator().leftovers(), 0u);
  EXPECT_EQ(world_.target().leftovers(), 0u);
}

// fi_cq(3): the buffer belongs to the program again.
TEST_P(CancelSend, ItsBufferIsNotTouchedAfterwards) {
  ASSERT_TRUE(world_.ok());
  // Far from where the kernel would map something else in its place.
  void* const far = reinterpret_cast<void*>(0x2000'0000'0000);
  void* const buffer =
      ::mmap(far, kLarge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(buffer, MAP_FAILED);
  fi_context2 context{};
  ASSERT_EQ(fi_tsend(world_.ep(), buffer, kLarge, nullptr, world_.to_target(), 5, &context), 0);
  peek_until(0, 5);
  ASSERT_EQ(fi_cancel(&world_.ep()->fid, &context), 0);
  ASSERT_EQ(::munmap(buffer, kLarge), 0);
  const Token received = world_.target().post(receive(kLarge, 5));
  std::optional<Completion> ended;
  world_.pump().until([&] { return (ended = world_.endpoint().take(&context)).has_value(); });
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->err, FI_ECANCELED);
  expect_next(received, 5);
}

TEST_P(CancelSend, AMessageThatWasSeenIsGone) {
  ASSERT_TRUE(world_.ok());
  for (const std::size_t length : kSizes) {
    SCOPED_TRACE(length);
    const Token sent = send(length, 5);
    peek_until(0, 5);
    cancel(sent);
    peek_until(FI_ENOMSG, 5);
  }
}

TEST_P(CancelSend, AClaimedMessageThatWasWithdrawnIsAnErrorOfItsReceive) {
  ASSERT_TRUE(world_.ok());
  if (GetParam() != Placement::kOneProcess && GetParam() != Placement::kSelf &&
      GetParam() != Placement::kConnected) {
    GTEST_SKIP() << "a claim needs the context of its peek";
  }
  auto& target = static_cast<LocalParty&>(world_.target());
  for (const std::size_t length : kSizes) {
    SCOPED_TRACE(length);
    const Token sent = send(length, 5);
    const Token claimed = peek_until(0, 5, FI_CLAIM);
    cancel(sent);
    ASSERT_EQ(
        target
            .post_with_context(
                {.kind = Kind::kTrecvmsg, .length = length, .tag = 5, .flags = FI_CLAIM}, claimed)
            .rc,
        0);
    target.wait_error(claimed, FI_ECANCELED);
    expect_next(target.post(receive(40, 5)), 5);
  }
}

TEST_P(CancelSend, AMessageThatWasReceivedIsNotWithdrawn) {
  ASSERT_TRUE(world_.ok());
  for (const std::size_t length : kSizes) {
    SCOPED_TRACE(length);
    const Token received = world_.target().post(receive(length, 5));
    const Token sent = send(length, 5, 3);
    world_.target().wait_success(received);
    const int answer = world_.initiator().cancel(sent);
    EXPECT_TRUE(answer == 0 || answer == -FI_ENOENT) << answer;
    world_.initiator().wait_success(sent);
    world_.target().expect_data(received, 3, length);
  }
  EXPECT_EQ(world_.initiator().leftovers(), 0u);
}

// Of many that wait, those in the middle and the last go; the others come in their order.
TEST_P(CancelSend, TheOthersAreReceivedInTheirOrder) {
  ASSERT_TRUE(world_.ok());
  constexpr std::size_t kCount = 60;
  constexpr std::size_t kLength = 300'000;
  std::vector<Token> sent;
  for (std::size_t i = 0; i < kCount; ++i) sent.push_back(send(kLength, 5, i + 1));
  const auto goes = [](std::size_t i) { return i % 3 == 1 || i + 1 == kCount; };
  for (std::size_t i = 0; i < kCount; ++i) {
    if (goes(i)) cancel(sent[i]);
  }
  for (std::size_t i = 0; i < kCount; ++i) {
    if (goes(i)) continue;
    const Token received = world_.target().post(receive(kLength, 5));
    world_.target().wait_success(received);
    world_.target().expect_data(received, i + 1, kLength);
    world_.initiator().wait_success(sent[i]);
  }
  world_.exchange();
}

TEST_P(CancelSend, AnUnknownContextIsNotFound) {
  ASSERT_TRUE(world_.ok());
  const Token sent = send(kLarge, 5);
  fi_context2 other{};
  EXPECT_EQ(fi_cancel(&world_.ep()->fid, &other), -FI_ENOENT);
  cancel(sent);
  EXPECT_EQ(world_.initiator().cancel(sent), -FI_ENOENT);
  world_.exchange();
}

// The receive is posted while the withdrawal is on its way.
TEST_P(CancelSend, TheReceiveOfAWithdrawnMessageTakesTheNextOne) {
  ASSERT_TRUE(world_.ok());
  if (GetParam() == Placement::kSelf) GTEST_SKIP() << "one endpoint progresses as a whole";
  for (const std::size_t length : kSizes) {
    SCOPED_TRACE(length);
    const Token sent = send(length, 5);
    peek_until(0, 5);
    ASSERT_EQ(fi_cancel(&world_.ep()->fid, world_.initiator().context_of(sent)), 0);
    const Token first = world_.target().post(receive(length, 5));
    const Token second = world_.target().post(receive(length, 5));
    world_.initiator().wait_error(sent, FI_ECANCELED);
    expect_next(first, 5);
    expect_next(second, 5);
  }
}

TEST_P(CancelSend, AMultiReceiveGoesOnBehindAWithdrawnMessage) {
  ASSERT_TRUE(world_.ok());
  constexpr std::size_t kLength = 300'000;
  std::vector<std::uint8_t> buffer(2 * kLength);
  const Token sent =
      world_.target().post({.kind = Kind::kSend, .length = kLength, .peer = world_.to_initiator()});
  world_.pump().settle();
  ASSERT_EQ(world_.target().cancel(sent), 0);
  const iovec piece{buffer.data(), buffer.size()};
  const fi_msg message = message_of({&piece, 1}, FI_ADDR_UNSPEC, &buffer);
  ASSERT_EQ(fi_recvmsg(world_.ep(), &message, FI_MULTI_RECV), 0);
  world_.target().wait_error(sent, FI_ECANCELED);
  const Token next = world_.target().post(
      {.kind = Kind::kSend, .length = 100, .seed = 4, .peer = world_.to_initiator()});
  std::optional<Completion> got;
  world_.pump().until([&] { return (got = world_.endpoint().take(&buffer)).has_value(); });
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->err, 0);
  EXPECT_EQ(got->length, 100u);
  world_.target().wait_success(next);
}

INSTANTIATE_TEST_SUITE_P(Matching, CancelSend,
                         testing::Values(Placement::kTwoProcesses, Placement::kOneProcess,
                                         Placement::kSelf, Placement::kConnectedProcesses,
                                         Placement::kConnected),
                         placement_name);

class CancelSendToProcess : public CancelSend {};

// Either both sides have the message, or neither.
TEST_P(CancelSendToProcess, BothSidesAgreeOnTheEnd) {
  ASSERT_TRUE(world_.ok());
  constexpr unsigned kRounds = 200;
  unsigned withdrawn = 0;
  for (unsigned round = 0; round < kRounds && !HasFailure(); ++round) {
    SCOPED_TRACE(round);
    const std::size_t length = kSizes[round % 10 == 0];
    const Token sent = send(length, round, 3);
    Request request;
    request.what = Request::What::kPost;
    request.operation = receive(length, round);
    world_.remote().start(request);
    for (unsigned i = 0; i < round % 20 * 10; ++i) world_.pump().once();
    const int answer = world_.initiator().cancel(sent);
    const Reply reply = world_.remote().finish();
    ASSERT_EQ(reply.rc, 0);
    const Token received = reply.value;
    const auto ended = world_.initiator().wait(sent);
    ASSERT_TRUE(ended.has_value());
    if (ended->err == 0) {
      EXPECT_EQ(world_.target().wait_success(received).length, length);
      world_.target().expect_data(received, 3, length);
    } else {
      EXPECT_EQ(ended->err, FI_ECANCELED);
      EXPECT_EQ(answer, 0);
      ++withdrawn;
      expect_next(received, round);
    }
  }
  RecordProperty("withdrawn", static_cast<int>(withdrawn));
  EXPECT_EQ(world_.target().leftovers(), 0u);
}

TEST_P(CancelSendToProcess, AStoppedPeerNeedNotAgree) {
  ASSERT_TRUE(world_.ok());
  world_.exchange();
  ASSERT_EQ(::kill(world_.remote().pid(), SIGSTOP), 0);
  for (const std::size_t length : kSizes) {
    SCOPED_TRACE(length);
    const Token sent = send(length, 5);
    const auto begin = std::chrono::steady_clock::now();
    cancel(sent);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, patience() / 2);
  }
  ASSERT_EQ(::kill(world_.remote().pid(), SIGCONT), 0);
  expect_next(world_.target().post(receive(40, 5)), 5);
  world_.exchange();
}

INSTANTIATE_TEST_SUITE_P(Matching, CancelSendToProcess,
                         testing::Values(Placement::kTwoProcesses, Placement::kConnectedProcesses),
                         placement_name);

}  // namespace
}  // namespace weft::conformance
