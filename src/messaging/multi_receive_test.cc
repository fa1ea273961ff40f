// SPDX-License-Identifier: BSD-2-Clause
// Does a multi-receive take messages until its buffer is used up, and give it back once?
#include <gtest/gtest.h>

#include "test_support.h"

namespace weft::messaging {
namespace {

using namespace testing;

// One buffer for several untagged messages.
class MultiReceive : public EndpointTest {
 protected:
  static constexpr std::uint64_t kGivenBack = device::kMultiReceive;

  void post(Bytes& buffer, std::size_t least, bool wanted = true) {
    const LocalRange piece{buffer.data(), buffer.size()};
    ReceiveCall call;
    call.pieces = {&piece, 1};
    call.multi = true;
    call.least = least;
    call.report = {&buffer, wanted};
    ASSERT_EQ(two.endpoint->receives().receive(call), 0);
  }
  void send(std::size_t length) {
    sent.push_back(pattern(length, sent.size()));
    ASSERT_EQ(one.send(to_two, 0, sent.back(), nullptr,
                       [](SendCall& call) { call.operation = link::MessageOperation::kMessage; }),
              0);
  }
  // The next completion: message `number` lies at `offset` of its buffer.
  void expect(const Completion& received, std::size_t number, const Bytes& buffer,
              std::size_t offset, bool given_back) {
    EXPECT_EQ(received.status, CompletionStatus::kSuccess);
    EXPECT_EQ(received.context, &buffer);
    EXPECT_EQ(received.buffer, buffer.data() + offset);
    EXPECT_EQ(received.length, sent[number].size());
    EXPECT_EQ(received.flags, device::kReceive | device::kMessage | (given_back ? kGivenBack : 0));
    EXPECT_TRUE(std::equal(sent[number].begin(), sent[number].end(), buffer.begin() + offset));
  }
  std::deque<Completion> arrive(std::size_t count) {
    EXPECT_TRUE(drive([&] { return two.rx.size() >= count; }));
    settle();
    auto completions = Node::take(two.rx);
    EXPECT_EQ(completions.size(), count);
    completions.resize(count);
    return completions;
  }

  std::deque<Bytes> sent;
  Bytes first = Bytes(1000);
  Bytes second = Bytes(1000);
};

TEST_F(MultiReceive, MessagesArePackedUntilTooLittleIsLeft) {
  post(first, 100);
  post(second, 100);
  for (const std::size_t length : {300u, 0u, 301u, 300u, 5u}) send(length);
  const auto completions = arrive(5);
  expect(completions[0], 0, first, 0, false);
  expect(completions[1], 1, first, 300, false);
  expect(completions[2], 2, first, 300, false);
  expect(completions[3], 3, first, 601, true);
  expect(completions[4], 4, second, 0, false);
  EXPECT_TRUE(std::all_of(first.begin() + 901, first.end(),
                          [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST_F(MultiReceive, MessagesThatCameBeforeAreTakenFirst) {
  for (const std::size_t length : {200u, 300u, 450u, 10u}) send(length);
  settle();
  post(first, 100);
  const auto completions = arrive(3);
  expect(completions[0], 0, first, 0, false);
  expect(completions[1], 1, first, 200, false);
  expect(completions[2], 2, first, 500, true);
  post(second, 100);
  expect(arrive(1)[0], 3, second, 0, false);
}

TEST_F(MultiReceive, TheBufferIsGivenBackWithTheLastMessageInPlace) {
  Bytes large(120'000);
  post(large, 10'000);
  const std::vector<std::size_t> lengths{50'000, 100, 30'000, 200, 35'000};
  for (const std::size_t length : lengths) send(length);
  const auto completions = arrive(lengths.size());
  std::size_t given_back = 0;
  for (const Completion& received : completions) {
    if ((received.flags & kGivenBack) != 0) ++given_back;
  }
  EXPECT_EQ(given_back, 1u);
  EXPECT_NE(completions.back().flags & kGivenBack, 0u) << "the end must be the last to be told";
  std::size_t offset = 0;
  for (std::size_t i = 0; i < lengths.size(); offset += lengths[i++]) {
    EXPECT_TRUE(std::equal(sent[i].begin(), sent[i].end(), large.begin() + offset)) << i;
  }
}

TEST_F(MultiReceive, AMessageThatIsTooLongIsCutAndEndsIt) {
  post(first, 100);
  send(800);
  send(300);
  const auto completions = arrive(2);
  expect(completions[0], 0, first, 0, false);
  EXPECT_EQ(completions[1].status, CompletionStatus::kLocalLength);
  EXPECT_EQ(completions[1].length, 200u);
  EXPECT_EQ(completions[1].vendor, 100u);
  EXPECT_NE(completions[1].flags & kGivenBack, 0u);
}

TEST_F(MultiReceive, TheEndIsReportedEvenWhenNothingElseIs) {
  post(first, 400, false);
  send(300);
  send(350);
  expect(arrive(1)[0], 1, first, 300, true);
}

TEST_F(MultiReceive, CancelGivesTheRestBack) {
  post(first, 100);
  send(300);
  expect(arrive(1)[0], 0, first, 0, false);
  EXPECT_EQ(two.endpoint->cancel(&first), 0);
  EXPECT_EQ(two.endpoint->cancel(&first), ENOENT);
  const Completion cancelled = arrive(1)[0];
  EXPECT_EQ(cancelled.status, CompletionStatus::kCancelled);
  EXPECT_EQ(cancelled.context, &first);
  EXPECT_NE(cancelled.flags & kGivenBack, 0u);
  send(10);
  settle();
  EXPECT_TRUE(two.rx.empty());
}

}  // namespace
}  // namespace weft::messaging
