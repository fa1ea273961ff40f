// SPDX-License-Identifier: BSD-2-Clause
// Where does a sender find a free slot, and what if the owner says nonsense about it?
#include <gtest/gtest.h>

#include "link_shm/mailbox.h"
#include "link_shm/outbox.h"
#include "test_support.h"

namespace weft::shm {
namespace {

using namespace testing;

struct FirstFree : ::testing::Test {
  RuntimeDir dir;
  std::unique_ptr<Mailbox> box = make_mailbox(dir.path(), 1);
  os::SharedFilePtr file = os::SharedFile::open(mailbox_path(dir.path(), loopback(1))).value();
  os::Mapping memory = std::move(file->map(0, 4096)).value();
  InboxLog log{box.get()};
  std::vector<std::unique_ptr<Peer>> peers;

  std::atomic<std::uint32_t>& first_free() { return memory.at<MailboxHeader>(0)->first_free; }
  bool add() {
    peers.push_back(std::make_unique<Peer>(dir.path(), 2));
    return peers.back()->open(1);
  }
  void poll() {
    for (int i = 0; i < 4; ++i) box->poll(log);
  }
};

TEST_F(FirstFree, TheOwnerTellsWhichSlotIsTheFirstFreeOne) {
  EXPECT_EQ(first_free(), 0u);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(add());
  poll();
  EXPECT_EQ(first_free(), 3u);
  peers[1].reset();
  poll();
  EXPECT_EQ(first_free(), 1u);
  ASSERT_TRUE(add());
  poll();
  EXPECT_EQ(first_free(), 3u);
}

TEST_F(FirstFree, SendersThatTheOwnerHasNotSeenYetAreSkipped) {
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(add());
  EXPECT_EQ(first_free(), 0u);
  poll();
  EXPECT_EQ(first_free(), 5u);
}

TEST_F(FirstFree, ASlotIsFoundWhateverTheOwnerSays) {
  for (const std::uint32_t said : {kSlots - 1, kSlots, ~0U, 1U}) {
    first_free() = said;
    EXPECT_TRUE(add());
  }
}

}  // namespace
}  // namespace weft::shm
