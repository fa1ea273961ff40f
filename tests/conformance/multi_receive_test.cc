// SPDX-License-Identifier: BSD-2-Clause
// Does a buffer posted with FI_MULTI_RECV take several messages, and is it given back? (fi_msg(3))
#include <gtest/gtest.h>

#include <vector>

#include "support/guarded_buffer.h"
#include "support/placements.h"

namespace weft::conformance {
namespace {

Options multi(std::uint64_t cq_flags = 0) {
  Options options;
  options.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_MULTI_RECV;
  options.cq_flags = cq_flags;
  return options;
}

// The other party sends; the buffers are this process's.
class MultiReceive : public PlacementTest {
 protected:
  void open(const Options& options = multi()) {
    world_ = std::make_unique<World>(GetParam(), options);
  }
  int least(std::size_t bytes) {
    return fi_setopt(&world_->ep()->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &bytes,
                     sizeof bytes);
  }
  ssize_t post(GuardedBuffer& buffer, std::size_t pieces = 1, std::uint64_t flags = 0) {
    const iovec list[] = {{buffer.data(), buffer.length() / pieces},
                          {buffer.data() + buffer.length() / 2, buffer.length() / 2}};
    const fi_msg message = message_of({list, pieces}, FI_ADDR_UNSPEC, &buffer);
    return fi_recvmsg(world_->ep(), &message, FI_MULTI_RECV | flags);
  }
  void send(std::size_t length) {
    lengths_.push_back(length);
    const Token token = world_->target().post({.kind = Kind::kSendmsg,
                                               .length = length,
                                               .seed = lengths_.size(),
                                               .peer = world_->to_initiator(),
                                               .flags = FI_COMPLETION});
    sent_.push_back(token);
  }
  // The completions of the buffer, until it is given back.
  std::vector<Completion> collect(GuardedBuffer& buffer) {
    std::vector<Completion> all;
    world_->pump().until([&] {
      while (const auto one = world_->endpoint().take(&buffer)) all.push_back(*one);
      return !all.empty() && (all.back().flags & FI_MULTI_RECV) != 0;
    });
    for (const Token token : std::exchange(sent_, {})) world_->target().wait_success(token);
    return all;
  }
  // Messages [from, to) lie behind each other in the buffer.
  void expect_packed(const GuardedBuffer& buffer, std::size_t from, std::size_t to) {
    std::size_t offset = 0;
    for (std::size_t i = from; i < to; offset += lengths_[i++]) {
      EXPECT_EQ(buffer.check_pattern(i + 1, offset, lengths_[i]), "") << "message " << i;
    }
    EXPECT_EQ(buffer.check_blank(offset, buffer.length() - offset), "");
    EXPECT_EQ(buffer.check_guards(), "");
  }

  std::unique_ptr<World> world_;
  std::vector<std::size_t> lengths_;
  std::vector<Token> sent_;
};

TEST_P(MultiReceive, TakesMessagesOfAllSizesUntilTheMinimumIsReached) {
  open();
  ASSERT_TRUE(world_->ok());
  ASSERT_EQ(least(100'000), 0);
  GuardedBuffer buffer(1'000'000);
  ASSERT_EQ(post(buffer), 0);
  for (const std::size_t length : {8u, 0u, 100u, 5'000u, 70'000u, 1u, 400'000u, 430'000u}) {
    send(length);
  }
  const auto received = collect(buffer);
  ASSERT_EQ(received.size(), lengths_.size());
  std::size_t bytes = 0;
  for (const Completion& one : received) {
    EXPECT_EQ(one.err, 0);
    EXPECT_EQ(one.flags & ~FI_MULTI_RECV, static_cast<std::uint64_t>(FI_RECV | FI_MSG));
    EXPECT_EQ((one.flags & FI_MULTI_RECV) != 0, &one == &received.back());
    bytes += one.length;
  }
  EXPECT_EQ(bytes, 905'109u);
  expect_packed(buffer, 0, lengths_.size());
}

TEST_P(MultiReceive, MessagesThatCameBeforeAreTakenAndTheNextBufferFollows) {
  open();
  ASSERT_TRUE(world_->ok());
  ASSERT_EQ(least(64), 0);
  for (int i = 0; i < 10; ++i) send(100);
  world_->endpoint().poll();
  GuardedBuffer first(500);
  GuardedBuffer second(530);
  ASSERT_EQ(post(first), 0);
  EXPECT_EQ(collect(first).size(), 5u);
  ASSERT_EQ(post(second), 0);
  EXPECT_EQ(collect(second).size(), 5u);
  expect_packed(first, 0, 5);
  expect_packed(second, 5, 10);
}

TEST_P(MultiReceive, TheEndIsReportedWhereSuccessIsSilent) {
  open(multi(FI_SELECTIVE_COMPLETION));
  ASSERT_TRUE(world_->ok());
  ASSERT_EQ(least(200), 0);
  GuardedBuffer buffer(1000);
  ASSERT_EQ(post(buffer), 0);
  for (const std::size_t length : {300u, 300u, 300u}) send(length);
  const auto received = collect(buffer);
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].length, 300u);
  expect_packed(buffer, 0, 3);
}

TEST_P(MultiReceive, CancelledBufferGoesBack) {
  open();
  ASSERT_TRUE(world_->ok());
  GuardedBuffer buffer(1000);
  ASSERT_EQ(post(buffer), 0);
  EXPECT_EQ(fi_cancel(&world_->ep()->fid, &buffer), 0);
  const auto received = collect(buffer);
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].err, FI_ECANCELED);
  EXPECT_NE(received[0].flags & FI_MULTI_RECV, 0u);
}

TEST_P(MultiReceive, AMessageTooLongForTheRestIsTruncated) {
  open();
  ASSERT_TRUE(world_->ok());
  ASSERT_EQ(least(64), 0);
  GuardedBuffer buffer(1000);
  ASSERT_EQ(post(buffer), 0);
  send(900);
  send(150);
  const auto received = collect(buffer);
  ASSERT_EQ(received.size(), 2u);
  EXPECT_EQ(received[1].err, FI_ETRUNC);
  EXPECT_EQ(received[1].overflow, 50u);
}

TEST_P(MultiReceive, IsRefusedWhereItWasNotAskedForOrCannotBe) {
  open();
  ASSERT_TRUE(world_->ok());
  GuardedBuffer buffer(1000);
  EXPECT_EQ(post(buffer, 2), -FI_EINVAL) << "messages are packed into one piece";
  World plain(GetParam(), Options{});
  ASSERT_TRUE(plain.ok());
  const fi_msg message = message_of({}, FI_ADDR_UNSPEC, nullptr);
  EXPECT_EQ(fi_recvmsg(plain.ep(), &message, FI_MULTI_RECV), -FI_EBADFLAGS);
  fi_msg_tagged tagged{};
  EXPECT_EQ(fi_trecvmsg(world_->ep(), &tagged, FI_MULTI_RECV), -FI_EBADFLAGS);
}

TEST_P(MultiReceive, TheMinimumIsAnOptionOfTheEndpoint) {
  open();
  ASSERT_TRUE(world_->ok());
  fid* const ep = &world_->ep()->fid;
  std::size_t value = 0;
  std::size_t length = sizeof value;
  EXPECT_EQ(fi_getopt(ep, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, &length), 0);
  EXPECT_GT(value, 0u);
  ASSERT_EQ(least(4321), 0);
  EXPECT_EQ(fi_getopt(ep, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, &length), 0);
  EXPECT_EQ(value, 4321u);
  length = 1;
  EXPECT_EQ(fi_getopt(ep, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, &length), -FI_ETOOSMALL);
  EXPECT_EQ(length, sizeof value);
  EXPECT_EQ(fi_getopt(ep, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_setopt(ep, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, 1), -FI_EINVAL);
  EXPECT_EQ(fi_setopt(ep, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, nullptr, 8), -FI_EINVAL);
  EXPECT_EQ(fi_setopt(ep, FI_OPT_ENDPOINT, 1000, &value, sizeof value), -FI_ENOPROTOOPT);
}

// Default operation flags make plain receives multi-receives.
TEST_P(MultiReceive, MayBeTheDefault) {
  open();
  ASSERT_TRUE(world_->ok());
  std::uint64_t flags = FI_RECV | FI_MULTI_RECV | FI_COMPLETION;
  ASSERT_EQ(fi_control(&world_->ep()->fid, FI_SETOPSFLAG, &flags), 0);
  ASSERT_EQ(least(64), 0);
  GuardedBuffer buffer(250);
  ASSERT_EQ(fi_recv(world_->ep(), buffer.data(), buffer.length(), nullptr, FI_ADDR_UNSPEC, &buffer),
            0);
  send(100);
  send(100);
  EXPECT_EQ(collect(buffer).size(), 2u);
  expect_packed(buffer, 0, 2);
}

INSTANTIATE_TEST_SUITE_P(Receives, MultiReceive, every_placement(), placement_name);

}  // namespace
}  // namespace weft::conformance
