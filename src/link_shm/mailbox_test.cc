// SPDX-License-Identifier: BSD-2-Clause
// Does a mailbox deliver what its senders sent, identify them, sleep and close correctly?
#include "link_shm/mailbox.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

#include "os/event.h"
#include "os/traced_process_support.h"
#include "test_support.h"

namespace weft::shm {
namespace {

using namespace testing;
using std::chrono::milliseconds;
using Bytes = std::vector<std::byte>;

constexpr unsigned kIdleLooks = 20000;  // after which an idle ring is only looked at on demand

struct MailboxTest : ::testing::Test, OwnerAndSender {
  void poll_until(std::size_t count) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (log.messages.size() < count && std::chrono::steady_clock::now() < end) box->poll(log);
    ASSERT_EQ(log.messages.size(), count);
  }
};

TEST_F(MailboxTest, TwoLivingMailboxesCannotHaveOneAddress) {
  auto second = Mailbox::create({dir.path(), loopback(kOwner), DomainId{1}, "none", 0});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, EADDRINUSE);
}

TEST_F(MailboxTest, AnAddressIsFreeAgainWhenItsMailboxIsClosed) {
  box.reset();
  EXPECT_NE(make_mailbox(dir.path(), kOwner), nullptr);
}

TEST_F(MailboxTest, ASenderIsAnnouncedWithItsAddressBeforeItsFirstMessage) {
  ASSERT_TRUE(peer.open(kOwner));
  box->poll(log);
  ASSERT_EQ(log.opened.size(), 1u);
  EXPECT_TRUE(log.opened[0].second == loopback(kSender));
  EXPECT_TRUE(log.messages.empty());
  EXPECT_EQ(box->source_processes(), std::vector<pid_t>{::getpid()});
}

TEST_F(MailboxTest, ARefusedSourceFindsNoEndpoint) {
  ASSERT_TRUE(peer.open(kOwner));
  Bytes bytes = pattern(8, 1);
  Bytes large = pattern(100000, 2);
  peer.send(1, bytes);
  box->poll(log);
  ASSERT_EQ(log.opened.size(), 1u);
  const std::uint32_t number = log.opened[0].first;
  peer.send(2, large);
  box->refuse(log, number);
  box->refuse(log, number);
  EXPECT_EQ(log.closed, (std::vector<InboxLog::Closed>{{number, true}}));
  FlowLog ended;
  EXPECT_EQ(peer.box->check_peer(ended), link::PeerState::kRefuses);
  EXPECT_EQ(ended.finished[2], ECONNRESET);
  EXPECT_EQ(peer.send(3, bytes).error, ECONNRESET);
  box->poll(log);
  EXPECT_EQ(log.messages.size(), 1u);
  // The slot is free again once the sender has left, which is reported once only.
  peer.box.reset();
  box->check_sources(log);
  EXPECT_EQ(log.closed.size(), 1u);
  EXPECT_TRUE(peer.open(kOwner));
}

TEST_F(MailboxTest, TagDataAndOperationArriveAsTheyWereSent) {
  ASSERT_TRUE(peer.open(kOwner));
  Bytes bytes = pattern(8, 1);
  peer.send(0xfedcba9876543211, bytes);
  link::SendRequest plain;
  plain.tag = 5;
  peer.box->send(plain);
  box->poll(log);
  ASSERT_EQ(log.messages.size(), 2u);
  const link::Arrival& first = log.messages[0].arrival;
  EXPECT_EQ(first.operation, link::MessageOperation::kTagged);
  EXPECT_EQ(first.tag, 0xfedcba9876543211);
  EXPECT_TRUE(first.has_data);
  EXPECT_EQ(first.data, ~first.tag);
  EXPECT_FALSE(first.wants_ack);
  EXPECT_EQ(log.messages[1].arrival.operation, link::MessageOperation::kMessage);
  EXPECT_FALSE(log.messages[1].arrival.has_data);
  EXPECT_EQ(log.messages[1].arrival.length, 0u);
  plain.operation = link::MessageOperation::kControl;
  peer.box->send(plain);
  box->poll(log);
  ASSERT_EQ(log.messages.size(), 3u);
  EXPECT_EQ(log.messages[2].arrival.operation, link::MessageOperation::kControl);
}

TEST_F(MailboxTest, MessagesOfOneSenderKeepTheirOrderWhateverTheirSize) {
  ASSERT_TRUE(peer.open(kOwner));
  FlowLog flow;
  const std::size_t sizes[] = {0, 20'000, 40, 41, 8192, 300'000, 1, 8193};
  std::deque<Bytes> kept;
  std::uint64_t tag = 0;
  for (int round = 0; round < 100; ++round) {
    for (const std::size_t size : sizes) {
      Bytes& bytes = kept.emplace_back(pattern(size, ++tag));
      while (peer.send(tag, bytes).state == link::Outcome::State::kAgain) {
        box->poll(log);
        peer.box->progress(flow);
      }
    }
  }
  for (int i = 0; i < 10'000 && peer.box->busy(); ++i) {
    box->poll(log);
    peer.box->progress(flow);
  }
  poll_until(tag);
  for (std::size_t i = 0; i < tag; ++i) {
    ASSERT_EQ(log.messages[i].arrival.tag, i + 1);
    ASSERT_EQ(log.messages[i].error, 0) << i;
    ASSERT_TRUE(log.messages[i].bytes == kept[i]) << i;
  }
}

TEST_F(MailboxTest, APollTakesABoundedNumberOfMessagesOfOneSender) {
  ASSERT_TRUE(peer.open(kOwner));
  Bytes none;
  for (int i = 0; i < 500; ++i) peer.send(i, none);
  box->poll(log);
  EXPECT_LT(log.messages.size(), 500u);
  EXPECT_GT(log.messages.size(), 0u);
}

TEST_F(MailboxTest, AnOfferWaitsUntilItIsAccepted) {
  ASSERT_TRUE(peer.open(kOwner));
  log.accepts = false;
  FlowLog flow;
  Bytes bytes = pattern(100'000, 3);
  ASSERT_EQ(peer.send(3, bytes).state, link::Outcome::State::kPending);
  box->poll(log);
  peer.box->progress(flow);
  ASSERT_EQ(log.messages.size(), 1u);
  EXPECT_EQ(log.messages[0].arrival.payload, nullptr);
  EXPECT_EQ(log.messages[0].arrival.length, bytes.size());
  EXPECT_TRUE(flow.finished.empty());
  log.accept(log.messages[0]);
  peer.box->progress(flow);
  EXPECT_EQ(flow.finished, (std::map<std::uint64_t, int>{{3, 0}}));
  EXPECT_TRUE(log.messages[0].bytes == bytes);
}

// The receiver leaves a sender its share only while that is seen to copy.
TEST_F(MailboxTest, ASenderThatCopiedItsShareIsWaitedForOnceMoreAndNotForLong) {
  ASSERT_TRUE(peer.open(kOwner));
  log.accepts = false;
  Bytes bytes = pattern(100'000, 3);
  for (std::uint64_t tag : {1, 2, 3}) peer.send(tag, bytes);
  box->poll(log);
  ASSERT_EQ(log.messages.size(), 3u);
  const SlotView slot(dir.path(), kOwner, 0);
  Rendezvous& helped = slot.rendezvous(log.messages[0].arrival.offer.rendezvous_id);
  helped.claims = std::uint64_t{1} << 32;
  log.accept(log.messages[0]);
  EXPECT_EQ(log.messages[0].error, -1) << "the sender's share is under way";
  helped.copied.fetch_add(1);
  box->poll(log);
  EXPECT_EQ(log.messages[0].error, 0);

  log.accept(log.messages[1]);
  EXPECT_EQ(log.messages[1].error, -1) << "its share is left to the sender";
  for (int i = 0; i < 100 && log.messages[1].error == -1; ++i) box->poll(log);
  EXPECT_EQ(log.messages[1].error, 0);
  EXPECT_TRUE(log.messages[1].bytes == bytes);

  log.accept(log.messages[2]);
  EXPECT_EQ(log.messages[2].error, 0) << "it is away now";
  EXPECT_TRUE(log.messages[2].bytes == bytes);
}

TEST_F(MailboxTest, PartOfAnOfferCanBeTakenAndNoMoreIsWritten) {
  ASSERT_TRUE(peer.open(kOwner));
  log.accepts = false;
  FlowLog flow;
  Bytes bytes = pattern(100'000, 3);
  peer.send(3, bytes);
  box->poll(log);
  Bytes target(60'000);
  const LocalRange sges[] = {{target.data(), 10}, {target.data() + 10, 49'990}};
  InboxLog::Message& message = log.messages.at(0);
  box->accept(log, message.arrival.offer, sges, 50'000, &message);
  EXPECT_EQ(message.error, 0);
  EXPECT_TRUE(std::equal(target.begin(), target.begin() + 50'000, bytes.begin()));
  EXPECT_TRUE(std::all_of(target.begin() + 50'000, target.end(),
                          [](std::byte b) { return b == std::byte{0}; }));
  peer.box->progress(flow);
  EXPECT_EQ(flow.finished.at(3), 0);
}

TEST_F(MailboxTest, AnOfferTakenWithNoRoomAtAllIsOverAtOnce) {
  ASSERT_TRUE(peer.open(kOwner));
  log.accepts = false;
  FlowLog flow;
  Bytes bytes = pattern(100'000, 3);
  peer.send(3, bytes);
  box->poll(log);
  box->accept(log, log.messages.at(0).arrival.offer, {}, 0, &log.messages[0]);
  EXPECT_EQ(log.messages[0].error, 0);
  peer.box->progress(flow);
  EXPECT_EQ(flow.finished.at(3), 0);
}

TEST_F(MailboxTest, AnIdleRingIsOnlyLookedAtOnDemandAndComesBackWithItsNextMessage) {
  Peer other(dir.path(), kSender + 1);
  ASSERT_TRUE(peer.open(kOwner) && other.open(kOwner));
  Bytes none;
  peer.send(1, none);
  other.send(2, none);
  poll_until(2);
  for (unsigned i = 0; i < kIdleLooks + 2; ++i) box->poll(log);
  const SlotView slots[] = {{dir.path(), kOwner, 0}, {dir.path(), kOwner, 1}};
  const auto demoted = [&](const SlotView& slot) {
    return slot.header().attention.load() == Attention::kRing;
  };
  EXPECT_EQ(demoted(slots[0]) + demoted(slots[1]), 1) << "the last ring stays";
  peer.send(3, none);
  other.send(4, none);
  poll_until(4);
  EXPECT_FALSE(demoted(slots[0]));
  EXPECT_FALSE(demoted(slots[1]));
}

TEST_F(MailboxTest, AMailboxWithMessagesDoesNotFallAsleep) {
  ASSERT_TRUE(peer.open(kOwner));
  Bytes none;
  EXPECT_FALSE(box->fall_asleep()) << "a new sender waits";
  box->wake_up();
  box->poll(log);
  EXPECT_TRUE(box->fall_asleep());
  box->wake_up();
  peer.send(1, none);
  EXPECT_FALSE(box->fall_asleep());
  box->wake_up();
}

TEST_F(MailboxTest, AnythingNewRingsASleepingMailboxOnce) {
  ASSERT_TRUE(box->fall_asleep());
  EXPECT_FALSE(os::wait_readable(box->wake_fd(), milliseconds(0)));
  ASSERT_TRUE(peer.open(kOwner));
  EXPECT_TRUE(os::wait_readable(box->wake_fd(), milliseconds(5000))) << "a new sender";
  box->wake_up();
  box->poll(log);
  ASSERT_TRUE(box->fall_asleep());
  Bytes none;
  peer.send(1, none);
  EXPECT_TRUE(os::wait_readable(box->wake_fd(), milliseconds(5000))) << "a message";
  EXPECT_FALSE(box->fall_asleep()) << "it has not been taken yet";
  box->wake_up();
  poll_until(1);
  ASSERT_TRUE(box->fall_asleep());
  peer.box.reset();
  EXPECT_TRUE(os::wait_readable(box->wake_fd(), milliseconds(5000))) << "a farewell";
  box->wake_up();
}

TEST_F(MailboxTest, AnAwakeMailboxIsNotRung) {
  ASSERT_TRUE(peer.open(kOwner));
  box->poll(log);
  ASSERT_TRUE(box->fall_asleep());
  box->wake_up();
  Bytes none;
  peer.send(1, none);
  EXPECT_FALSE(os::wait_readable(box->wake_fd(), milliseconds(0)));
}

// A sender is stopped where it rings.
TEST_F(MailboxTest, ASenderThatIsStoppedInTheMiddleLosesNoWakeUpOfOthers) {
  box.reset();
  std::string path = dir.path();
  Child child([&](Child& self) {
    Peer stopped(path, kOwner + 50);
    Bytes none;
    const bool opened = stopped.open(kOwner);
    self.tell();
    if (opened && self.await_word()) stopped.send(1, none);
    self.tell();
    self.await_word();
  });
  box = make_mailbox(path, kOwner);
  log.box = box.get();
  child.tell();
  ASSERT_TRUE(child.await_word());
  ASSERT_TRUE(peer.open(kOwner));
  while (log.opened.size() < 2) box->poll(log);
  os::Gate gate;
  const os::TracedProcess traced(child.pid(), [&](long call) {
    if (call == SYS_sendto) gate.pass();
  });
  if (!traced.ok()) GTEST_SKIP() << "processes may not be traced here";

  gate.close();
  ASSERT_TRUE(box->fall_asleep());
  child.tell();
  gate.await_holding();
  Bytes none;
  peer.send(2, none);
  EXPECT_TRUE(os::wait_readable(box->wake_fd(), milliseconds(5000))) << "it still sleeps";

  box->wake_up();
  poll_until(2);
  EXPECT_TRUE(box->fall_asleep());
  gate.open();
  ASSERT_TRUE(child.await_word());
  char ring = 0;
  EXPECT_GE(::recv(box->wake_fd(), &ring, 1, 0), 0) << "the late ring";
  peer.send(3, none);
  EXPECT_TRUE(os::wait_readable(box->wake_fd(), milliseconds(5000))) << "it sleeps anew";
  box->wake_up();
}

// Two endpoints that sleep before every message: a wake-up that is lost ends the game.
class Sleeper {
 public:
  Sleeper(const std::string& directory, std::uint16_t port)
      : box_(make_mailbox(directory, port)), log_(box_.get()), peer_(directory, port + 100) {}

  bool open(std::uint16_t to) { return peer_.open(to); }
  // Passes the ball back and forth; returns false when it did not come back.
  bool play(bool serves, std::chrono::steady_clock::time_point end) {
    bool last = false;
    if (serves) throw_ball(false);
    while (!last) {
      if (!catch_ball(last)) return false;
      const bool over = last || (serves && std::chrono::steady_clock::now() > end);
      throw_ball(over);
      if (serves && over) return true;
    }
    return true;
  }

 private:
  bool catch_ball(bool& last) {
    for (;;) {
      box_->poll(log_);
      if (!log_.messages.empty()) break;
      const bool quiet = box_->fall_asleep();
      if (quiet && !os::wait_readable(box_->wake_fd(), milliseconds(5000))) return false;
      box_->wake_up();
    }
    last = log_.messages.front().arrival.tag == 1;
    log_.messages.pop_front();
    return true;
  }
  void throw_ball(bool last) {
    Bytes none;
    for (unsigned spin = ++spins_ % 97; spin != 0; --spin) {
      std::atomic_signal_fence(std::memory_order_seq_cst);  // never the same moment twice
    }
    peer_.send(last ? 1 : 2, none);
  }

  std::unique_ptr<Mailbox> box_;
  InboxLog log_;
  Peer peer_;
  unsigned spins_ = 0;
};

TEST(MailboxSleep, NoWakeUpIsLostBetweenThreads) {
  RuntimeDir dir;
  Sleeper one(dir.path(), kOwner);
  Sleeper two(dir.path(), kOwner + 1);
  ASSERT_TRUE(one.open(kOwner + 1) && two.open(kOwner));
  const auto end = std::chrono::steady_clock::now() + milliseconds(700);
  bool caught = false;
  std::thread other([&] { caught = two.play(false, end); });
  EXPECT_TRUE(one.play(true, end));
  other.join();
  EXPECT_TRUE(caught);
}

TEST(MailboxSleep, NoWakeUpIsLostBetweenProcesses) {
  RuntimeDir dir;
  const auto end = std::chrono::steady_clock::now() + milliseconds(1000);
  Child child([&](Child& self) {
    Sleeper two(dir.path(), kOwner + 1);
    self.tell();
    self.await_word();
    const bool opened = two.open(kOwner);
    self.tell();
    if (opened && two.play(false, end)) self.tell();
    pause();
  });
  Sleeper one(dir.path(), kOwner);
  child.tell();
  ASSERT_TRUE(child.await_word());
  ASSERT_TRUE(one.open(kOwner + 1));
  child.tell();
  ASSERT_TRUE(child.await_word());
  EXPECT_TRUE(one.play(true, end));
  EXPECT_TRUE(child.await_word());
}

TEST_F(MailboxTest, EverythingSentBeforeLeavingIsStillDelivered) {
  ASSERT_TRUE(peer.open(kOwner));
  Bytes bytes = pattern(1000, 1);
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(peer.send(i, bytes).state, link::Outcome::State::kDone);
  }
  peer.box.reset();
  poll_until(200);
  box->poll(log);
  EXPECT_EQ(log.closed, (std::vector<InboxLog::Closed>{{0, false}}));
  for (const auto& message : log.messages) EXPECT_TRUE(message.bytes == bytes);
}

TEST_F(MailboxTest, ASlotIsReusedWithoutStaleMessages) {
  for (std::uint16_t i = 0; i < 5; ++i) {
    Peer next(dir.path(), kSender + i);
    ASSERT_TRUE(next.open(kOwner));
    Bytes bytes = pattern(700, i);
    for (std::uint64_t n = 0; n <= i; ++n) next.send(100 * i + n, bytes);
    next.box.reset();
    box->poll(log);
    box->poll(log);
    ASSERT_EQ(log.opened.size(), i + 1u);
    EXPECT_EQ(log.opened[i].first, 0u) << "the one slot is used again";
    EXPECT_TRUE(log.opened[i].second == loopback(kSender + i));
    ASSERT_EQ(log.messages.size(), i + 1u);
    for (std::uint64_t n = 0; n <= i; ++n) {
      EXPECT_EQ(log.messages[n].arrival.tag, 100 * i + n);
      EXPECT_TRUE(log.messages[n].bytes == bytes);
    }
    log.messages.clear();
  }
  EXPECT_EQ(log.closed, (std::vector<InboxLog::Closed>(5, {0, false})));
}

TEST_F(MailboxTest, ASenderThatLeavesBeforeAnyoneLookedIsHeardAllTheSame) {
  ASSERT_TRUE(peer.open(kOwner));
  Bytes bytes = pattern(10, 1);
  peer.send(1, bytes);
  peer.box.reset();
  Peer next(dir.path(), kSender + 1);
  ASSERT_TRUE(next.open(kOwner));
  next.send(2, bytes);
  poll_until(2);
  EXPECT_EQ(log.messages[0].arrival.tag + log.messages[1].arrival.tag, 3u);
  EXPECT_EQ(log.closed.size(), 1u);
}

TEST_F(MailboxTest, AnOfferTakenBackByItsSenderIsLost) {
  ASSERT_TRUE(peer.open(kOwner));
  log.accepts = false;
  Bytes bytes = pattern(100'000, 1);
  peer.send(1, bytes);
  box->poll(log);
  FlowLog flow;
  peer.box->give_up(flow);
  EXPECT_EQ(flow.finished.at(1), ECONNRESET);
  log.accept(log.messages.at(0));
  EXPECT_EQ(log.messages[0].error, ECONNRESET);
}

struct KilledSender : ::testing::Test {
  RuntimeDir dir;
  Bytes small = pattern(9000, 1);
  Bytes large = pattern(200'000, 2);
  Child child{[this](Child& self) {
    Peer peer(dir.path(), kSender, 10'000);
    if (!peer.open(kOwner)) return;
    peer.send(1, small);
    peer.send(2, large);
    peer.send(3, large);
    self.tell();
    pause();
  }};
  std::unique_ptr<Mailbox> box = make_mailbox(dir.path(), kOwner);
  InboxLog log{box.get()};

  void SetUp() override {
    log.accepts = false;
    child.tell();
    ASSERT_TRUE(child.await_word());
    box->poll(log);
    ASSERT_EQ(log.messages.size(), 3u);
    ASSERT_EQ(box->source_processes(), std::vector<pid_t>{child.pid()});
  }
};

TEST_F(KilledSender, WhileItLivesItsSourceStaysOpen) {
  box->check_sources(log);
  EXPECT_TRUE(log.closed.empty());
  log.accept(log.messages[1]);
  EXPECT_EQ(log.messages[1].error, 0);
  EXPECT_TRUE(log.messages[1].bytes == large);
}

TEST_F(KilledSender, IsReportedAsDeadAndItsOffersAreVoid) {
  child.kill_it();
  log.accept(log.messages[1]);
  EXPECT_EQ(log.messages[1].error, ECONNRESET) << "before anyone noticed";
  box->check_sources(log);
  EXPECT_EQ(log.closed, (std::vector<InboxLog::Closed>{{0, true}}));
  log.accept(log.messages[2]);
  EXPECT_EQ(log.messages[2].error, ECONNRESET) << "afterwards";
  EXPECT_TRUE(log.messages[0].bytes == small);
}

TEST_F(KilledSender, APullThatItHadAPartInFails) {
  const SlotView slot(dir.path(), kOwner, 0);
  const std::uint32_t rendezvous = log.messages[1].arrival.offer.rendezvous_id;
  slot.rendezvous(rendezvous).claims = std::uint64_t{1} << 32;  // it has taken the last chunk
  log.accept(log.messages[1]);
  EXPECT_EQ(log.messages[1].error, -1) << "the last chunk is still under way";
  EXPECT_FALSE(box->fall_asleep()) << "a pull under way has to be polled";
  box->wake_up();
  child.kill_it();
  box->check_sources(log);
  EXPECT_EQ(log.messages[1].error, ECONNRESET);
}

TEST_F(KilledSender, ItsSlotIsUsedAgainOnceTheOwnerNoticed) {
  child.kill_it();
  Peer early(dir.path(), kSender + 1);
  ASSERT_TRUE(early.open(kOwner));
  box->check_sources(log);
  Peer late(dir.path(), kSender + 2);
  ASSERT_TRUE(late.open(kOwner));
  box->poll(log);
  ASSERT_EQ(log.opened.size(), 3u);
  for (std::size_t i : {1, 2}) {
    const auto& [slot, address] = log.opened[i];
    EXPECT_EQ(slot, address == loopback(kSender + 1) ? 1u : 0u)
        << "the dead one's slot was not free before the owner had noticed";
  }
  Bytes bytes = pattern(5, 5);
  late.send(77, bytes);
  box->poll(log);
  ASSERT_EQ(log.messages.size(), 4u);
  EXPECT_EQ(log.messages[3].arrival.tag, 77u);
}

TEST_F(KilledSender, ClosingTheMailboxDoesNotWaitForItsPart) {
  const SlotView slot(dir.path(), kOwner, 0);
  slot.rendezvous(log.messages[1].arrival.offer.rendezvous_id).claims = std::uint64_t{1} << 32;
  log.accept(log.messages[1]);
  child.kill_it();
  box.reset();
  EXPECT_EQ(log.messages[1].error, -1) << "a closed mailbox reports nothing";
}

TEST_F(MailboxTest, ClosingWaitsForAPeerThatIsCopyingIntoTheOwnersBuffers) {
  ASSERT_TRUE(peer.open(kOwner));
  log.accepts = false;
  Bytes bytes = pattern(100'000, 1);
  peer.send(1, bytes);
  box->poll(log);
  const SlotView slot(dir.path(), kOwner, 0);
  Rendezvous& rendezvous = slot.rendezvous(0);
  rendezvous.claims = std::uint64_t{1} << 32;
  log.accept(log.messages.at(0));
  std::atomic<bool> finished{false};
  std::thread copying([&] {
    std::this_thread::sleep_for(milliseconds(50));
    finished = true;
    rendezvous.copied.fetch_add(1);
  });
  box.reset();
  EXPECT_TRUE(finished.load());
  copying.join();
  EXPECT_EQ(slot.header().attention.load(), Attention::kGone);
}

TEST_F(KilledSender, DoesNotKeepBuffersFromBeingReclaimed) {
  const SlotView slot(dir.path(), kOwner, 0);
  slot.rendezvous(log.messages[1].arrival.offer.rendezvous_id).claims = std::uint64_t{1} << 32;
  log.accept(log.messages[1]);
  EXPECT_FALSE(box->reclaim_buffers());
  child.kill_it();
  EXPECT_TRUE(box->reclaim_buffers());
}

TEST_F(MailboxTest, ASenderThatWritesNonsenseIsShutOutAndOthersAreNot) {
  Peer other(dir.path(), kSender + 1);
  ASSERT_TRUE(peer.open(kOwner) && other.open(kOwner));
  box->poll(log);
  const SlotView slot(dir.path(), kOwner, 0);
  slot.cell(0).word =
      CellWord{1, static_cast<link::MessageOperation>(99), CellKind::kInline, 0, 0}.pack();
  box->poll(log);
  EXPECT_EQ(log.closed, (std::vector<InboxLog::Closed>{{0, true}}));
  Bytes bytes = pattern(5, 5);
  EXPECT_EQ(peer.send(2, bytes).state, link::Outcome::State::kFailed);
  other.send(3, bytes);
  box->poll(log);
  ASSERT_EQ(log.messages.size(), 1u);
  EXPECT_EQ(log.messages[0].arrival.tag, 3u);
}

TEST_F(MailboxTest, EveryLieAboutAPayloadIsRefused) {
  const std::function<void(Cell&, CellWord&)> lies[] = {
      [](Cell&, CellWord& word) { word.inline_length = kInlineBytes + 1; },
      [](Cell&, CellWord& word) { word.flags = kWantsAck; },
      [](Cell&, CellWord& word) { word.kind = static_cast<CellKind>(3); },
      [](Cell&, CellWord& word) { word.operation = static_cast<link::MessageOperation>(0); },
      [](Cell& cell, CellWord& word) {
        word.kind = CellKind::kBulk;
        cell.bulk = {0, 0, kMaxEager + 1, 0, 0};
      },
      [](Cell& cell, CellWord& word) {
        word.kind = CellKind::kBulk;
        cell.bulk = {0, kBulkBytes - 9, 10, 0, 0};
      },
      [](Cell& cell, CellWord& word) {
        word.kind = CellKind::kBulk;
        cell.bulk = {0, 0xffffffff, 1, 0, 0};
      },
      [](Cell& cell, CellWord& word) {
        word.kind = CellKind::kBulk;
        word.flags = kWantsAck;
        cell.bulk = {0, 0, 10, kRendezvousCount, 0};
      },
      [](Cell& cell, CellWord& word) {
        word.kind = CellKind::kOffered;
        cell.offered = {100, kRendezvousCount, 0};
      },
      [](Cell& cell, CellWord& word) {
        word.kind = CellKind::kOffered;
        cell.offered = {0, 0, 0};
      },
      [](Cell& cell, CellWord& word) {
        word.kind = CellKind::kOffered;
        cell.offered = {std::uint64_t{1} << 47, 0, 0};
      },
  };
  std::uint32_t slot_number = 0;
  std::deque<Peer> liars;
  for (const auto& lie : lies) {
    Peer& liar = liars.emplace_back(dir.path(), static_cast<std::uint16_t>(kSender + slot_number));
    ASSERT_TRUE(liar.open(kOwner));
    const SlotView slot(dir.path(), kOwner, slot_number);
    CellWord word{1, link::MessageOperation::kTagged, CellKind::kInline, 0, 8};
    lie(slot.cell(0), word);
    slot.cell(0).word = word.pack();
    box->poll(log);
    EXPECT_TRUE(log.messages.empty()) << "lie " << slot_number;
    ASSERT_EQ(log.closed.size(), slot_number + 1u) << "lie " << slot_number;
    ++slot_number;
  }
}

}  // namespace
}  // namespace weft::shm
