// SPDX-License-Identifier: BSD-2-Clause
// When does a queue bound with FI_SELECTIVE_COMPLETION get an entry? (fi_endpoint(3))
#include "support/placements.h"

namespace weft::conformance {
namespace {

Options selective(std::uint64_t default_flags) {
  Options options;
  options.cq_flags = FI_SELECTIVE_COMPLETION;
  options.tx_flags = default_flags;
  options.counters = FI_SEND | FI_RECV | FI_READ | FI_WRITE;
  return options;
}

// Counters tell that an operation is done when the queue is silent about it.
class SelectiveCompletion : public PlacementTest {
 protected:
  void open(std::uint64_t default_flags) {
    world_ = std::make_unique<World>(GetParam(), selective(default_flags));
  }
  Token receive(Kind kind, std::uint64_t flags = 0) {
    return world_->target().post({.kind = kind, .length = 16, .flags = flags});
  }
  Token send(Kind kind, std::uint64_t flags = 0) {
    return world_->initiator().post(
        {.kind = kind, .length = 16, .seed = 1, .peer = world_->to_target(), .flags = flags});
  }
  Token rma(Kind kind, const Region& region, std::uint64_t flags = 0) {
    return world_->initiator().post({.kind = kind,
                                     .length = 16,
                                     .seed = 1,
                                     .peer = world_->to_target(),
                                     .flags = flags,
                                     .remote_address = region.base,
                                     .key = region.key});
  }
  void expect_silence() {
    EXPECT_EQ(world_->initiator().leftovers() + world_->target().leftovers(), 0u);
  }

  std::unique_ptr<World> world_;
};

TEST_P(SelectiveCompletion, SuccessIsSilentUnlessAskedFor) {
  open(0);
  ASSERT_TRUE(world_->ok());
  const Region region = world_->target().expose({});
  receive(Kind::kRecv);
  receive(Kind::kRecvmsg);
  send(Kind::kSend);
  send(Kind::kSendmsg);
  rma(Kind::kWrite, region);
  rma(Kind::kWritemsg, region);
  rma(Kind::kRead, region);
  rma(Kind::kReadmsg, region);
  world_->initiator().expect_counter(FI_SEND, 2);
  world_->initiator().expect_counter(FI_WRITE, 2);
  world_->initiator().expect_counter(FI_READ, 2);
  world_->target().expect_counter(FI_RECV, 2);
  expect_silence();
}

TEST_P(SelectiveCompletion, FlaggedOperationsAreReported) {
  open(0);
  ASSERT_TRUE(world_->ok());
  const Region region = world_->target().expose({});
  const Token received = receive(Kind::kRecvmsg, FI_COMPLETION);
  world_->initiator().wait_success(send(Kind::kSendmsg, FI_COMPLETION));
  world_->target().wait_success(received);
  world_->initiator().wait_success(rma(Kind::kWritemsg, region, FI_COMPLETION));
  world_->initiator().wait_success(rma(Kind::kReadmsg, region, FI_COMPLETION));
  expect_silence();
}

TEST_P(SelectiveCompletion, DefaultFlagCoversCallsWithoutFlags) {
  open(FI_COMPLETION);
  ASSERT_TRUE(world_->ok());
  const Region region = world_->target().expose({});
  receive(Kind::kRecv);
  world_->initiator().wait_success(send(Kind::kSend));
  world_->initiator().wait_success(rma(Kind::kWrite, region));
  world_->initiator().wait_success(rma(Kind::kRead, region));
  world_->target().expect_counter(FI_RECV, 1);
  expect_silence();
}

TEST_P(SelectiveCompletion, FlagsOfACallReplaceTheDefault) {
  open(FI_COMPLETION);
  ASSERT_TRUE(world_->ok());
  receive(Kind::kRecv);
  send(Kind::kSendmsg, FI_TRANSMIT_COMPLETE);
  world_->initiator().expect_counter(FI_SEND, 1);
  world_->target().expect_counter(FI_RECV, 1);
  expect_silence();
}

TEST_P(SelectiveCompletion, ErrorsAreAlwaysReported) {
  open(0);
  ASSERT_TRUE(world_->ok());
  const Token short_receive = world_->target().post({.kind = Kind::kRecv, .length = 3});
  send(Kind::kSend);
  world_->target().wait_error(short_receive, FI_ETRUNC);
  Region wrong = world_->target().expose({});
  wrong.key += 1000;
  rma(Kind::kWrite, wrong);
  std::optional<Completion> error;
  EXPECT_TRUE(
      world_->pump().until([&] { return (error = world_->endpoint().take_error()).has_value(); }));
  EXPECT_EQ(error.value_or(Completion{}).err, FI_EACCES);
  expect_silence();
}

INSTANTIATE_TEST_SUITE_P(Completion, SelectiveCompletion, both_process_counts(), placement_name);

}  // namespace
}  // namespace weft::conformance
