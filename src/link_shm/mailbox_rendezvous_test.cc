// SPDX-License-Identifier: BSD-2-Clause
// When is a large message over whose sender is in the middle of copying it?
#include <gtest/gtest.h>

#include <optional>

#include "link_shm/mailbox.h"
#include "test_support.h"

namespace weft::shm {
namespace {

using testing::InboxLog;
using testing::kOwner;
using testing::OwnerAndSender;
using testing::pattern;
using testing::SlotView;
using Bytes = std::vector<std::byte>;

// A living sender that is in the middle of copying its share of a large message, as a stopped one
// is.
struct WritingSender : ::testing::Test, OwnerAndSender {
  Bytes bytes = pattern(100'000, 1);
  std::optional<SlotView> slot;

  void SetUp() override {
    ASSERT_TRUE(peer.open(kOwner));
    log.accepts = false;
    peer.send(1, bytes);
    box->poll(log);
    slot.emplace(dir.path(), kOwner, 0);
    slot->rendezvous(0).claims = std::uint64_t{1} << 32;
    log.accept(log.messages.at(0));
    ASSERT_EQ(log.messages[0].error, -1);
  }
  void end_of_copy() { slot->rendezvous(0).copied.fetch_add(1); }
};

TEST_F(WritingSender, IsWaitedForWhenItIsRefused) {
  box->refuse(log, 0);
  EXPECT_EQ(log.closed, (std::vector<InboxLog::Closed>{{0, true}}));
  box->poll(log);
  EXPECT_EQ(log.messages[0].error, -1) << "reported while a peer writes into its buffer";
  end_of_copy();
  box->poll(log);
  EXPECT_EQ(log.messages[0].error, ECONNRESET);
}

TEST_F(WritingSender, KeepsBuffersFromBeingReclaimed) {
  EXPECT_FALSE(box->reclaim_buffers());
  box->poll(log);
  EXPECT_EQ(log.messages[0].error, -1);
  end_of_copy();
  EXPECT_TRUE(box->reclaim_buffers());
  EXPECT_EQ(log.messages[0].error, -1) << "reclaiming reports nothing itself";
  box->poll(log);
  EXPECT_EQ(log.messages[0].error, ECANCELED);
}

TEST_F(WritingSender, ThatHasAbandonedTheMessageMakesItFail) {
  slot->rendezvous(0).state = RendezvousState::kAbandoned;
  end_of_copy();
  box->poll(log);
  EXPECT_EQ(log.messages[0].error, ECONNRESET);
  EXPECT_EQ(slot->rendezvous(0).state.load(), RendezvousState::kAbandoned);
}

}  // namespace
}  // namespace weft::shm
