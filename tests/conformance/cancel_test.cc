// SPDX-License-Identifier: BSD-2-Clause
// Does fi_cancel take a receive back, once, and lose no message? (fi_endpoint(3))
#include "support/placements.h"

namespace weft::conformance {
namespace {

class Cancel : public PlacementTest {
 protected:
  Cancel() : world_(GetParam(), Options{}) {}

  Token receive(Kind kind) { return world_.target().post({.kind = kind, .length = 32, .tag = 1}); }
  void send(Kind kind, std::uint64_t seed) {
    world_.initiator().wait_success(world_.initiator().post(
        {.kind = kind, .length = 32, .seed = seed, .peer = world_.to_target(), .tag = 1}));
  }

  World world_;
};

TEST_P(Cancel, WaitingReceiveCompletesAsCancelled) {
  ASSERT_TRUE(world_.ok());
  for (const Kind kind : {Kind::kRecv, Kind::kTrecv, Kind::kRecvv, Kind::kTrecvmsg}) {
    SCOPED_TRACE(traits(kind).name);
    const Token token = receive(kind);
    EXPECT_EQ(world_.target().cancel(token), 0);
    const Completion c = world_.target().wait_error(token, FI_ECANCELED);
    EXPECT_EQ(c.flags & FI_RECV, FI_RECV);
    world_.target().expect_data(token, 0, 0);
  }
  EXPECT_EQ(world_.target().leftovers(), 0u);
}

TEST_P(Cancel, NextReceiveGetsTheMessage) {
  ASSERT_TRUE(world_.ok());
  for (const bool tagged : {false, true}) {
    const Token cancelled = receive(tagged ? Kind::kTrecv : Kind::kRecv);
    const Token kept = receive(tagged ? Kind::kTrecv : Kind::kRecv);
    EXPECT_EQ(world_.target().cancel(cancelled), 0);
    world_.target().wait_error(cancelled, FI_ECANCELED);
    send(tagged ? Kind::kTsend : Kind::kSend, 6);
    world_.target().wait_success(kept);
    world_.target().expect_data(kept, 6, 32);
    world_.target().expect_data(cancelled, 0, 0);
  }
}

TEST_P(Cancel, CompletedReceiveIsNotReportedAgain) {
  ASSERT_TRUE(world_.ok());
  const Token token = receive(Kind::kTrecv);
  send(Kind::kTsend, 2);
  world_.target().wait_success(token);
  const int rc = world_.target().cancel(token);
  EXPECT_TRUE(rc == 0 || rc == -FI_ENOENT) << rc;
  EXPECT_EQ(world_.target().leftovers(), 0u);
}

TEST_P(Cancel, OnlyOneOfTwoCancelsCounts) {
  ASSERT_TRUE(world_.ok());
  const Token token = receive(Kind::kTrecv);
  EXPECT_EQ(world_.target().cancel(token), 0);
  const int rc = world_.target().cancel(token);
  EXPECT_TRUE(rc == 0 || rc == -FI_ENOENT) << rc;
  world_.target().wait_error(token, FI_ECANCELED);
  EXPECT_EQ(world_.target().leftovers(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Receives, Cancel, both_process_counts(), placement_name);

}  // namespace
}  // namespace weft::conformance
