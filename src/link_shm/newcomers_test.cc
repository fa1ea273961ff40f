// SPDX-License-Identifier: BSD-2-Clause
// How does a mailbox take in the senders of new slots, and what of slots that only look like new?
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <deque>

#include "link_shm/mailbox.h"
#include "test_support.h"

namespace weft::shm {
namespace {

using namespace testing;

constexpr std::size_t kFew = 64;  // more than a poll may take in

struct Newcomers : ::testing::Test, OwnerAndSender {
  std::string path = mailbox_path(dir.path(), loopback(kOwner));
  os::SharedFilePtr file = os::SharedFile::open(path).value();
  os::Mapping memory = std::move(file->map(0, kHeaderBytes)).value();
  std::vector<std::byte> bytes = pattern(8, 1);

  MailboxHeader& header() const { return *memory.at<MailboxHeader>(0); }
  std::uint64_t backed() const {
    struct stat info {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    return static_cast<std::uint64_t>(info.st_blocks) * 512;
  }
  SlotState state_of(std::uint32_t slot) const {
    SlotState state{};
    EXPECT_TRUE(file->copy_out(slot_at(slot), &state, sizeof state));
    return state;
  }
  // As a process may that holds no lock.
  void write_state(std::uint32_t slot, SlotState state) {
    ASSERT_TRUE(file->copy_in(slot_at(slot), &state, sizeof state));
    mark_woken(header(), slot);
  }
  void poll_until_idle() {
    for (std::uint32_t i = 0; i <= kSlots && header().summary != 0; ++i) box->poll(log);
    EXPECT_EQ(header().summary, 0u);
  }
};

TEST_F(Newcomers, SlotsThatAreMarkedOpenWithoutALockCostAPollLittleAndBecomeFree) {
  ASSERT_TRUE(peer.open(kOwner));
  peer.send(7, bytes);
  ASSERT_TRUE(file->reserve(slot_at(kSlots) - kSlotPage, kSlotPage).ok());
  for (const SlotState state : {SlotState::kOpen, SlotState::kClosed}) {
    for (std::uint32_t i = 1; i < kSlots; ++i) write_state(i, state);
    const std::uint64_t before = backed();
    box->poll(log);
    EXPECT_LE(log.opened.size(), kFew);
    EXPECT_LE(backed(), before + kFew * kSlotBytes);
    poll_until_idle();
    for (std::uint32_t i = 1; i < kSlots; ++i) ASSERT_EQ(state_of(i), SlotState::kFree) << i;
    ASSERT_EQ(log.opened.size(), 1u);
  }
  ASSERT_EQ(log.messages.size(), 1u);
  EXPECT_EQ(log.messages[0].arrival.tag, 7u);
}

TEST_F(Newcomers, APollTakesInABoundedNumberOfNewSenders) {
  constexpr std::size_t kMany = 4 * kFew;
  std::deque<Peer> peers;
  for (std::size_t i = 0; i < kMany; ++i) {
    Peer& each = peers.emplace_back(dir.path(), kSender + static_cast<std::uint16_t>(i));
    ASSERT_TRUE(each.open(kOwner));
    each.send(i, bytes);
  }
  box->poll(log);
  EXPECT_LE(log.opened.size(), kFew);
  EXPECT_FALSE(box->fall_asleep());
  box->wake_up();
  poll_until_idle();
  ASSERT_EQ(log.messages.size(), kMany);
  for (std::size_t i = 0; i < kMany; ++i) EXPECT_EQ(log.messages[i].arrival.tag, i);
}

// Though the mark of a lower slot comes back before each poll.
TEST_F(Newcomers, ASenderIsTakenInWhateverOtherSlotsAreMarked) {
  ASSERT_TRUE(file->reserve(slot_at(kSlots) - kSlotPage, kSlotPage).ok());
  for (std::uint32_t i = 0; i < 4 * kFew; ++i) ASSERT_TRUE(file->claim(kSlotLock + i));
  ASSERT_TRUE(peer.open(kOwner));
  for (std::uint32_t i = 0; i < 4 * kFew; ++i) file->disclaim(kSlotLock + i);
  peer.send(7, bytes);
  for (std::size_t poll = 0; poll < 4 * kFew && log.messages.empty(); ++poll) {
    for (std::uint32_t i = 0; i < 4 * kFew; ++i) write_state(i, SlotState::kOpen);
    box->poll(log);
  }
  EXPECT_EQ(log.messages.size(), 1u);
}

TEST_F(Newcomers, AMarkOfASlotBeyondTheEndOfTheFileIsForgotten) {
  mark_woken(header(), kSlots - 1);
  poll_until_idle();
  EXPECT_TRUE(box->fall_asleep());
}

struct EndedSender : ::testing::Test {
  RuntimeDir dir;
  Child child{[this](Child& self) {
    Peer peer(dir.path(), kSender);
    std::vector<std::byte> bytes = pattern(8, 1);
    if (!peer.open(kOwner)) return;
    peer.send(7, bytes);
    self.tell();
    pause();
  }};
  std::unique_ptr<Mailbox> box = make_mailbox(dir.path(), kOwner);
  InboxLog log{box.get()};
};

TEST_F(EndedSender, ItsMessagesArriveAndItsSlotIsFreeAtOnce) {
  child.tell();
  ASSERT_TRUE(child.await_word());
  child.kill_it();
  box->poll(log);
  ASSERT_EQ(log.messages.size(), 1u);
  EXPECT_EQ(log.messages[0].arrival.tag, 7u);
  EXPECT_EQ(log.closed, (std::vector<InboxLog::Closed>{{0, true}}));
}

}  // namespace
}  // namespace weft::shm
