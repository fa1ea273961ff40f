// SPDX-License-Identifier: BSD-2-Clause
// Where in its buffer does a multi-receive place messages, and what do its completions say of that?
#include <gtest/gtest.h>

#include "test_support.h"

namespace weft::messaging {
namespace {

using namespace testing;

// One buffer for several untagged messages.
class MultiReceive : public EndpointTest {
 protected:
  static constexpr std::uint64_t kGivenBack = device::kMultiReceive;

  void post(Bytes& buffer, std::size_t least) {
    const LocalRange sge{buffer.data(), buffer.size()};
    ReceiveCall call;
    call.sges = {&sge, 1};
    call.multi = true;
    call.least = least;
    call.report = {&buffer, true};
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

}  // namespace
}  // namespace weft::messaging
