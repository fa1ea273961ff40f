// SPDX-License-Identifier: BSD-2-Clause
// Does a way to a peer carry messages of every size, hold back when full, and notice its end?
#include "link_shm/outbox.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "memory/region_table.h"
#include "os/event.h"
#include "test_support.h"

namespace weft::shm {
namespace {

using namespace testing;
using std::chrono::milliseconds;
using Bytes = std::vector<std::byte>;
using State = link::Outcome::State;
using link::PeerState;

struct OutboxTest : ::testing::Test, OwnerAndSender {
  void SetUp() override { ASSERT_TRUE(peer.open(kOwner)); }
  // The first look may only find that the sender is there.
  void take_all() {
    box->poll(log);
    while (box->poll(log) != 0) {
    }
  }
};

TEST(OutboxOpen, AnAddressWithoutAnEndpointIsNotThere) {
  RuntimeDir dir;
  Peer peer(dir.path(), kSender);
  auto opened = Outbox::open(peer.sender, loopback(kOwner));
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ENOENT);
}

TEST(OutboxOpen, AMailboxOfAnotherVersionIsRefused) {
  RuntimeDir dir;
  auto box = make_mailbox(dir.path(), kOwner);
  auto file = os::SharedFile::open(mailbox_path(dir.path(), loopback(kOwner)));
  auto memory = file.value()->map(0, 4096);
  memory.value().at<MailboxHeader>(0)->version = kMailboxVersion + 1;
  Peer peer(dir.path(), kSender);
  auto opened = Outbox::open(peer.sender, loopback(kOwner));
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, EPROTO);
}

TEST(OutboxOpen, AnEndpointOfAnotherServiceIsNotFound) {
  RuntimeDir dir;
  auto box = Mailbox::create({.directory = dir.path(),
                              .address = loopback(kOwner),
                              .domain = DomainId{1},
                              .table = "none",
                              .service = link::Service::kDatagram});
  ASSERT_TRUE(box.ok());
  Peer peer(dir.path(), kSender);
  const auto opened = Outbox::open(peer.sender, loopback(kOwner));
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ENOENT);
  peer.sender.service = link::Service::kDatagram;
  EXPECT_TRUE(peer.open(kOwner));
}

TEST(OutboxOpen, AProcessThatIsNotTheOneThatWroteTheProbeIsRefused) {
  RuntimeDir dir;
  auto box = make_mailbox(dir.path(), kOwner);
  auto file = os::SharedFile::open(mailbox_path(dir.path(), loopback(kOwner)));
  auto memory = file.value()->map(0, 4096);
  memory.value().at<MailboxHeader>(0)->probe.value ^= 1;
  Peer peer(dir.path(), kSender);
  auto opened = Outbox::open(peer.sender, loopback(kOwner));
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, EPERM);
}

TEST(OutboxOpen, AMailboxOfTheAnyAddressIsFoundUnderEveryLocalAddress) {
  RuntimeDir dir;
  auto made = Mailbox::create({dir.path(), any_host(loopback(kOwner)), DomainId{1}, "none", 0});
  ASSERT_TRUE(made.ok());
  Peer peer(dir.path(), kSender);
  EXPECT_TRUE(peer.open(kOwner));
}

class Sizes : public OutboxTest, public ::testing::WithParamInterface<std::size_t> {};

TEST_P(Sizes, AMessageArrivesWhole) {
  Bytes bytes = pattern(GetParam(), GetParam());
  ASSERT_NE(peer.send(2, bytes).state, State::kAgain);
  box->poll(log);
  peer.box->progress(flow);
  ASSERT_EQ(log.messages.size(), 1u);
  EXPECT_EQ(log.messages[0].arrival.length, bytes.size());
  EXPECT_TRUE(log.messages[0].bytes == bytes);
  EXPECT_FALSE(peer.box->busy());
}

TEST_P(Sizes, ACopiedMessageMayChangeAsSoonAsSendReturns) {
  if (GetParam() > kMaxEager) GTEST_SKIP() << "longer than what can be copied";
  const Bytes expected = pattern(GetParam(), GetParam());
  Bytes bytes = expected;
  ASSERT_EQ(peer.send(2, bytes, false, true).state, State::kDone);
  std::fill(bytes.begin(), bytes.end(), std::byte{0xee});
  box->poll(log);
  ASSERT_EQ(log.messages.size(), 1u);
  EXPECT_TRUE(log.messages[0].bytes == expected);
}

TEST_P(Sizes, AMessageThatMustBeDeliveredIsDoneOnlyThen) {
  log.acknowledges = false;
  log.accepts = false;
  Bytes bytes = pattern(GetParam(), GetParam());
  ASSERT_EQ(peer.send(2, bytes, true).state, State::kPending);
  box->poll(log);
  peer.box->progress(flow);
  ASSERT_EQ(log.messages.size(), 1u);
  EXPECT_TRUE(flow.finished.empty());
  EXPECT_TRUE(peer.box->busy());
  if (log.messages[0].arrival.payload == nullptr) {
    log.accept(log.messages[0]);
  } else {
    ASSERT_TRUE(log.messages[0].arrival.wants_ack);
    box->acknowledge(log.messages[0].arrival.offer);
  }
  EXPECT_TRUE(peer.box->ready());
  peer.box->progress(flow);
  EXPECT_EQ(flow.finished, (std::map<std::uint64_t, int>{{2, 0}}));
  EXPECT_FALSE(peer.box->busy());
  EXPECT_TRUE(log.messages[0].bytes == bytes);
}

INSTANTIATE_TEST_SUITE_P(Outbox, Sizes,
                         ::testing::Values(0, 1, kInlineBytes - 1, kInlineBytes, kInlineBytes + 1,
                                           8191, 8192, 8193, kMaxEager, kMaxEager + 1, 1 << 20,
                                           (3 << 20) + 5));

TEST_F(OutboxTest, SgesAreGatheredInEverySizeClass) {
  for (const std::size_t length : {30u, 3000u, 30'000u}) {
    Bytes bytes = pattern(length, length);
    LocalRange sges[link::kMaxLinkSges];
    std::size_t at = 0;
    for (std::size_t i = 0; i < link::kMaxLinkSges; ++i) {
      const std::size_t take = i + 1 < link::kMaxLinkSges ? (i * length) / 64 : length - at;
      sges[i] = {bytes.data() + at, take};
      at += take;
    }
    link::SendRequest request;
    request.sges = sges;
    request.length = length;
    peer.box->send(request);
    box->poll(log);
    peer.box->progress(flow);
    ASSERT_FALSE(log.messages.empty());
    EXPECT_TRUE(log.messages.back().bytes == bytes) << length;
    log.messages.clear();
  }
}

TEST_F(OutboxTest, PayloadsGoRoundTheBulkRingManyTimesAndNeverAcrossItsEnd) {
  std::uint64_t sent = 0;
  for (std::uint64_t i = 0; sent < 6 * kBulkBytes; ++i) {
    Bytes bytes = pattern(41 + (i * 7919) % (kMaxEager - 41), i);
    while (peer.send(i, bytes, false, true).state == State::kAgain) box->poll(log);
    sent += bytes.size();
    if (i % 3 != 0) continue;
    box->poll(log);
    for (const auto& message : log.messages) {
      const std::uint64_t tag = message.arrival.tag;
      ASSERT_TRUE(message.bytes == pattern(41 + (tag * 7919) % (kMaxEager - 41), tag)) << tag;
    }
    log.messages.clear();
  }
}

TEST_F(OutboxTest, AFullRingSaysAgainAndGoesOnWhenTheOwnerHasLooked) {
  Bytes none;
  std::uint64_t sent = 0;
  while (peer.send(sent, none).state == State::kDone) ++sent;
  EXPECT_EQ(sent, kCells);
  EXPECT_EQ(peer.send(sent, none).state, State::kAgain);
  take_all();
  for (; sent < 3 * kCells; ++sent) {
    while (peer.send(sent, none).state == State::kAgain) box->poll(log);
  }
  take_all();
  ASSERT_EQ(log.messages.size(), sent);
  for (std::uint64_t i = 0; i < sent; ++i) ASSERT_EQ(log.messages[i].arrival.tag, i);
}

TEST_F(OutboxTest, AFullBulkRingSaysAgainAndGoesOnWhenTheOwnerHasLooked) {
  Bytes bytes = pattern(8192, 1);
  std::uint64_t sent = 0;
  while (peer.send(sent, bytes).state == State::kDone) ++sent;
  EXPECT_EQ(sent, kBulkBytes / 8192);
  EXPECT_EQ(peer.send(sent, bytes).state, State::kAgain);
  Bytes small = pattern(8, 1);
  EXPECT_EQ(peer.send(99, small).state, State::kDone) << "small ones need no bulk";
  take_all();
  EXPECT_EQ(peer.send(sent, bytes).state, State::kDone);
}

TEST_F(OutboxTest, WordsOfTheOwnerThatCannotBeTrueGiveNoRoom) {
  const SlotView slot(dir.path(), kOwner, 0);
  Bytes none;
  for (std::uint32_t i = 0; i < kCells; ++i) ASSERT_EQ(peer.send(i, none).state, State::kDone);
  for (const std::uint64_t lie : {std::uint64_t{kCells + 1}, ~std::uint64_t{0}}) {
    slot.header().cells_consumed = lie;
    EXPECT_EQ(peer.send(1, none).state, State::kAgain) << lie;
  }
}

TEST_F(OutboxTest, WithAllRendezvousInUseMessagesWaitAndKeepTheirOrder) {
  log.accepts = false;
  Bytes bytes = pattern(20'000, 1);
  Bytes small = pattern(100, 1);
  for (std::uint64_t i = 0; i < kRendezvousCount; ++i) {
    if (peer.send(i, bytes).state == State::kPending) continue;
    take_all();
    ASSERT_EQ(peer.send(i, bytes).state, State::kPending) << i;
  }
  take_all();
  EXPECT_EQ(peer.send(kRendezvousCount, bytes).state, State::kPending);
  EXPECT_EQ(peer.send(kRendezvousCount + 1, small).state, State::kPending) << "it may not overtake";
  EXPECT_EQ(peer.send(kRendezvousCount + 2, small, true).state, State::kPending);
  EXPECT_EQ(peer.send(0, small, false, true).state, State::kAgain)
      << "no place would keep its copy";
  peer.box->progress(flow);
  box->poll(log);
  ASSERT_EQ(log.messages.size(), kRendezvousCount) << "what waits does not arrive";
  log.accept(log.messages.at(17));
  peer.box->progress(flow);
  EXPECT_EQ(flow.finished, (std::map<std::uint64_t, int>{{17, 0}}))
      << "its exchange serves the next";
  for (int i = 0; i < 10; ++i) {
    for (auto& message : log.messages) {
      if (message.error != 0) log.accept(message);
    }
    peer.box->progress(flow);
    box->poll(log);
  }
  EXPECT_FALSE(peer.box->busy());
  ASSERT_EQ(log.messages.size(), kRendezvousCount + 3);
  for (std::uint64_t i = 0; i < kRendezvousCount + 3; ++i)
    EXPECT_EQ(log.messages[i].arrival.tag, i);
  ASSERT_EQ(flow.finished.size(), kRendezvousCount + 3);
  for (const auto& [tag, error] : flow.finished) EXPECT_EQ(error, 0) << tag;
}

TEST_F(OutboxTest, AMessageThatWaitsForARendezvousFailsWithTheRest) {
  log.accepts = false;
  Bytes bytes = pattern(20'000, 1);
  for (std::uint64_t i = 0; i < kRendezvousCount + 6; ++i) {
    while (peer.send(i, bytes).state == State::kAgain) box->poll(log);
  }
  peer.box->give_up(flow);
  EXPECT_EQ(flow.finished.size(), kRendezvousCount + 6);
  for (const auto& [tag, error] : flow.finished) EXPECT_EQ(error, ECONNRESET) << tag;
  EXPECT_FALSE(peer.box->busy());
}

TEST_F(OutboxTest, OffersMayBeTakenInAnyOrder) {
  constexpr std::uint64_t kMany = 64;
  log.accepts = false;
  std::deque<Bytes> kept;
  for (std::uint64_t i = 0; i < kMany; ++i) {
    Bytes& bytes = kept.emplace_back(pattern(20'000 + i, i));
    ASSERT_EQ(peer.send(i, bytes).state, State::kPending);
  }
  take_all();
  for (std::uint64_t i = 0; i < kMany; ++i) log.accept(log.messages.at(i * 37 % kMany));
  peer.box->progress(flow);
  ASSERT_EQ(flow.finished.size(), kMany);
  for (std::uint64_t i = 0; i < kMany; ++i) {
    EXPECT_EQ(flow.finished.at(i), 0);
    EXPECT_TRUE(log.messages[i].bytes == kept[i]) << i;
  }
}

TEST_F(OutboxTest, TheSenderHelpsToCopyWhatIsMatched) {
  Bytes bytes = pattern(64 * 1024, 1);
  Bytes target(bytes.size());
  ASSERT_EQ(peer.send(1, bytes).state, State::kPending);
  const SlotView slot(dir.path(), kOwner, 0);
  Rendezvous& rendezvous = slot.rendezvous(0);
  rendezvous.sges[0].target = {target.data(), target.size()};
  rendezvous.target_count = 1;
  rendezvous.matched_length = bytes.size();
  rendezvous.state = RendezvousState::kMatched;
  peer.box->progress(flow);
  EXPECT_TRUE(target == bytes);
  EXPECT_TRUE(flow.finished.empty()) << "the receiver says when it is over";
  rendezvous.state = RendezvousState::kDone;
  peer.box->progress(flow);
  EXPECT_EQ(flow.finished.at(1), 0);
}

TEST_F(OutboxTest, ALongerMatchThanTheMessageIsNotServed) {
  Bytes bytes = pattern(64 * 1024, 1);
  Bytes target(bytes.size() * 2);
  ASSERT_EQ(peer.send(1, bytes).state, State::kPending);
  const SlotView slot(dir.path(), kOwner, 0);
  Rendezvous& rendezvous = slot.rendezvous(0);
  rendezvous.sges[0].target = {target.data(), target.size()};
  rendezvous.target_count = 1;
  rendezvous.matched_length = bytes.size() + 1;
  rendezvous.state = RendezvousState::kMatched;
  peer.box->progress(flow);
  rendezvous.matched_length = bytes.size();
  rendezvous.target_count = link::kMaxLinkSges + 1;
  peer.box->progress(flow);
  EXPECT_TRUE(target == Bytes(target.size()));
  rendezvous.state = RendezvousState::kDone;
}

TEST_F(OutboxTest, AFaultThatIsNoErrorNumberIsReportedAsOne) {
  const SlotView slot(dir.path(), kOwner, 0);
  for (const std::int32_t lie : {-5, 0x7fffffff}) {
    Bytes bytes = pattern(20'000, 1);
    ASSERT_EQ(peer.send(1, bytes).state, State::kPending);
    slot.rendezvous(0).fault = lie;
    slot.rendezvous(0).state = RendezvousState::kDone;
    peer.box->progress(flow);
    ASSERT_EQ(flow.finished.size(), 1u);
    EXPECT_GT(flow.finished.at(1), 0) << lie;
    EXPECT_LT(flow.finished.at(1), 4096) << lie;
    flow.finished.clear();
  }
}

TEST_F(OutboxTest, AnOwnerThatClosesIsGoneForTheNextMessages) {
  box->poll(log);
  box.reset();
  Bytes bytes = pattern(8, 1);
  for (int i = 0; i < 2; ++i) {
    const link::Outcome outcome = peer.send(1, bytes);
    EXPECT_EQ(outcome.state, State::kFailed);
    EXPECT_EQ(outcome.error, ECONNRESET);
  }
  EXPECT_EQ(peer.box->check_peer(flow), PeerState::kLeft);
}

TEST_F(OutboxTest, AnOwnerThatClosesFailsWhatIsPending) {
  log.accepts = false;
  Bytes bytes = pattern(20'000, 1);
  peer.send(1, bytes);
  box->poll(log);
  box.reset();
  EXPECT_TRUE(peer.box->ready());
  peer.box->progress(flow);
  EXPECT_EQ(flow.finished, (std::map<std::uint64_t, int>{{1, ECONNRESET}}));
  EXPECT_FALSE(peer.box->busy());
}

TEST_F(OutboxTest, AnOwnerThatClosesWithoutEverLookingFailsWhatIsPending) {
  Bytes bytes = pattern(20'000, 1);
  peer.send(1, bytes);
  box.reset();
  EXPECT_NE(peer.box->check_peer(flow), PeerState::kAlive);
  EXPECT_EQ(flow.finished, (std::map<std::uint64_t, int>{{1, ECONNRESET}}));
}

TEST_F(OutboxTest, AClosingOwnerWakesASleepingSender) {
  auto own = make_mailbox(dir.path(), kSender);
  Peer sleeper(dir.path(), kSender);
  sleeper.sender.waker = own->sender().waker;
  ASSERT_TRUE(sleeper.open(kOwner));
  log.accepts = false;
  Bytes bytes = pattern(20'000, 1);
  sleeper.send(1, bytes);
  box->poll(log);
  sleeper.box->set_asleep(true);
  ASSERT_TRUE(own->fall_asleep());
  box.reset();
  EXPECT_TRUE(os::wait_readable(own->wake_fd(), milliseconds(5000)));
}

TEST_F(OutboxTest, ADeliveryWakesASleepingSenderEveryTime) {
  auto own = make_mailbox(dir.path(), kSender);
  Peer sleeper(dir.path(), kSender);
  sleeper.sender.waker = own->sender().waker;
  ASSERT_TRUE(sleeper.open(kOwner));
  std::atomic<bool> over{false};
  std::thread receiver([&] {
    while (!over) {
      box->poll(log);
      std::this_thread::yield();
    }
  });
  Bytes bytes = pattern(20'000, 1);
  const auto end = std::chrono::steady_clock::now() + milliseconds(500);
  bool woken = true;
  for (std::uint64_t i = 0; woken && std::chrono::steady_clock::now() < end; ++i) {
    ASSERT_EQ(sleeper.send(i, bytes, i % 2 != 0).state, State::kPending);
    while (sleeper.box->busy() && woken) {
      sleeper.box->set_asleep(true);
      if (own->fall_asleep() && !sleeper.box->ready()) {
        woken = os::wait_readable(own->wake_fd(), milliseconds(5000));
      }
      own->wake_up();
      sleeper.box->set_asleep(false);
      sleeper.box->progress(flow);
    }
  }
  over = true;
  receiver.join();
  EXPECT_TRUE(woken);
  for (const auto& [tag, error] : flow.finished) EXPECT_EQ(error, 0) << tag;
}

struct KilledOwner : ::testing::Test {
  RuntimeDir dir;
  Child child{[this](Child& self) {
    auto box = make_mailbox(dir.path(), kOwner);
    InboxLog log(box.get());
    log.accepts = false;
    self.tell();
    self.await_word();
    while (log.messages.empty()) box->poll(log);
    self.tell();
    pause();
  }};
  Peer peer{dir.path(), kSender};
  FlowLog flow;
  Bytes bytes = pattern(100'000, 1);

  void SetUp() override {
    child.tell();
    ASSERT_TRUE(child.await_word());
    ASSERT_TRUE(peer.open(kOwner));
    ASSERT_EQ(peer.send(1, bytes).state, State::kPending);
    child.tell();
    ASSERT_TRUE(child.await_word());
  }
};

TEST_F(KilledOwner, WhileItLivesNothingIsReported) {
  EXPECT_EQ(peer.box->process(), child.pid());
  EXPECT_EQ(peer.box->check_peer(flow), PeerState::kAlive);
  EXPECT_TRUE(peer.box->busy());
  EXPECT_TRUE(flow.finished.empty());
}

TEST_F(KilledOwner, FailsWhatIsPendingOnceAndEverythingAfter) {
  child.kill_it();
  EXPECT_EQ(peer.box->check_peer(flow), PeerState::kDied);
  EXPECT_EQ(flow.finished, (std::map<std::uint64_t, int>{{1, ECONNRESET}}));
  EXPECT_EQ(peer.box->check_peer(flow), PeerState::kDied);
  EXPECT_EQ(flow.finished.size(), 1u);
  EXPECT_EQ(peer.send(2, bytes).error, ECONNRESET);
  EXPECT_EQ(peer.box->access({}).error, ECONNRESET);
}

TEST_F(KilledOwner, InTheMiddleOfACopyDoesNotKeepTheSenderFromLeaving) {
  const SlotView slot(dir.path(), kOwner, 0);
  slot.rendezvous(0).matched_length = bytes.size();
  slot.rendezvous(0).target_count = 1;
  slot.rendezvous(0).sges[0].target = {reinterpret_cast<void*>(16), bytes.size()};
  slot.rendezvous(0).claims = 1;
  slot.rendezvous(0).state = RendezvousState::kMatched;
  child.kill_it();
  peer.box->give_up(flow);
  EXPECT_EQ(flow.finished.at(1), ECONNRESET);
}

TEST_F(KilledOwner, LeavesItsAddressToItsSuccessor) {
  child.kill_it();
  EXPECT_EQ(peer.box->check_peer(flow), PeerState::kDied);
  peer.box.reset();
  auto successor = make_mailbox(dir.path(), kOwner);
  ASSERT_NE(successor, nullptr);
  EXPECT_TRUE(peer.open(kOwner));
}

// The receiver has taken a chunk (as a thread of it would): parting waits until it is copied.
struct Parting : OutboxTest {
  Bytes bytes = pattern(4 * 16 * 1024, 1);
  Bytes target = Bytes(bytes.size());
  std::atomic<bool> finished{false};
  std::thread copying;

  void begin() {
    ASSERT_EQ(peer.send(1, bytes).state, State::kPending);
    auto slot = std::make_shared<SlotView>(dir.path(), kOwner, 0);
    Rendezvous& rendezvous = slot->rendezvous(0);
    rendezvous.sges[0].target = {target.data(), target.size()};
    rendezvous.target_count = 1;
    rendezvous.matched_length = bytes.size();
    rendezvous.claims = 1;
    rendezvous.state = RendezvousState::kMatched;
    copying = std::thread([this, slot] {
      std::this_thread::sleep_for(milliseconds(50));
      finished = true;
      slot->rendezvous(0).copied.fetch_add(1);
    });
  }
  void TearDown() override { copying.join(); }
};

TEST_F(Parting, GivingUpWaitsForTheChunkThatTheReceiverIsCopying) {
  begin();
  peer.box->give_up(flow);
  EXPECT_TRUE(finished.load());
  EXPECT_EQ(flow.finished, (std::map<std::uint64_t, int>{{1, ECONNRESET}}));
  EXPECT_FALSE(peer.box->busy());
}

TEST_F(Parting, TheDestructorWaitsForTheChunkThatTheReceiverIsCopying) {
  begin();
  peer.box.reset();
  EXPECT_TRUE(finished.load());
}

// One-sided operations.
struct AccessTest : ::testing::Test {
  RuntimeDir dir;
  std::unique_ptr<memory::RegionTable> table =
      std::move(memory::RegionTable::create(dir.path())).value();
  std::unique_ptr<Mailbox> box =
      std::move(
          Mailbox::create({dir.path(), loopback(kOwner), DomainId{5}, table->name(), kCountsReads,
                           memory::RegionTableView::open(dir.path(), table->name()).value()}))
          .value();
  InboxLog log{box.get()};
  Peer peer{dir.path(), kSender};
  Bytes region = pattern(4096, 1);
  memory::Registration readable = add(Access::kRemoteRead, RegionKey{10});
  memory::Registration writable = add(Access::kRemoteWrite, RegionKey{11});
  Bytes local = pattern(100, 2);

  void SetUp() override { ASSERT_TRUE(peer.open(kOwner)); }
  memory::Registration add(Access access, RegionKey key) {
    return table
        ->add({DomainId{5}, access, reinterpret_cast<std::uint64_t>(region.data()), region.size(),
               0, false, key})
        .value();
  }
  link::Outcome access(bool write, RemoteRange remote, bool has_data = false) {
    const LocalRange sge{local.data(), remote.length};
    return peer.box->access({write, has_data, 0x55, {&sge, 1}, {&remote, 1}, remote.length});
  }
};

TEST_F(AccessTest, AWriteAndAReadMoveExactlyTheirRange) {
  const Bytes before = region;
  EXPECT_EQ(access(true, {200, 100, RegionKey{11}}).state, State::kDone);
  EXPECT_TRUE(std::equal(local.begin(), local.end(), region.begin() + 200));
  EXPECT_TRUE(std::equal(region.begin(), region.begin() + 200, before.begin()));
  EXPECT_TRUE(std::equal(region.begin() + 300, region.end(), before.begin() + 300));
  EXPECT_EQ(access(false, {3996, 100, RegionKey{10}}).state, State::kDone);
  EXPECT_TRUE(std::equal(local.begin(), local.end(), before.begin() + 3996));
}

TEST_F(AccessTest, ARefusedAccessTouchesNothingAndSaysWhy) {
  const Bytes before = region;
  const Bytes mine = local;
  const auto refused = [&](bool write, RemoteRange remote) {
    const link::Outcome outcome = access(write, remote);
    EXPECT_EQ(outcome.error, EACCES);
    return static_cast<memory::AccessError>(outcome.detail);
  };
  EXPECT_EQ(refused(true, {0, 100, RegionKey{10}}), memory::AccessError::kNoRight);
  EXPECT_EQ(refused(false, {0, 100, RegionKey{11}}), memory::AccessError::kNoRight);
  EXPECT_EQ(refused(true, {3997, 100, RegionKey{11}}), memory::AccessError::kPastEnd);
  EXPECT_EQ(refused(true, {~0ull - 10, 100, RegionKey{11}}), memory::AccessError::kWraps);
  EXPECT_EQ(refused(true, {0, 100, RegionKey{12}}), memory::AccessError::kUnknownKey);
  ASSERT_TRUE(table->remove(writable).ok());
  EXPECT_EQ(refused(true, {0, 100, RegionKey{11}}), memory::AccessError::kUnknownKey);
  EXPECT_TRUE(region == before);
  EXPECT_TRUE(local == mine);
}

TEST_F(AccessTest, OnlyAccessesThatTheOwnerCountsOrThatCarryDataAreAnnounced) {
  access(true, {0, 100, RegionKey{11}});
  access(true, {0, 50, RegionKey{11}}, true);
  access(false, {0, 100, RegionKey{10}});
  box->poll(log);
  ASSERT_EQ(log.messages.size(), 2u);
  EXPECT_EQ(log.messages[0].arrival.operation, link::MessageOperation::kWriteData);
  EXPECT_EQ(log.messages[0].arrival.data, 0x55u);
  EXPECT_EQ(log.messages[0].arrival.tag, 50u) << "the length";
  EXPECT_EQ(log.messages[1].arrival.operation, link::MessageOperation::kReadEvent);
}

TEST_F(AccessTest, AnAccessThatCannotBeAnnouncedIsNotBegun) {
  Bytes none;
  while (peer.send(1, none).state == State::kDone) {
  }
  const Bytes before = region;
  EXPECT_EQ(access(true, {0, 50, RegionKey{11}}, true).state, State::kAgain);
  EXPECT_TRUE(region == before);
  EXPECT_EQ(access(true, {0, 50, RegionKey{11}}).state, State::kDone) << "silent ones go on";
}

TEST_F(AccessTest, TheOwnerHearsOfTheFirstRefusalOfASecond) {
  for (int i = 0; i < 100; ++i) access(true, {4040, 100, RegionKey{11}});
  box->poll(log);
  ASSERT_FALSE(log.refusals.empty());
  EXPECT_LT(log.refusals.size(), 50u);
  const auto& [operation, refused] = log.refusals[0];
  EXPECT_EQ(operation, "write");
  EXPECT_EQ(refused.reason, static_cast<int>(memory::AccessError::kPastEnd));
  EXPECT_EQ(refused.range.address, 4040u);
  EXPECT_EQ(refused.range.length, 100u);
  EXPECT_EQ(refused.range.key, RegionKey{11});
  EXPECT_EQ(refused.region_length, region.size());
  EXPECT_TRUE(log.messages.empty());
  EXPECT_EQ(access(true, {0, 100, RegionKey{11}}).state, State::kDone) << "it goes on";
}

// The owner believes its own table only.
TEST_F(AccessTest, TheOwnerHearsOfNoRefusalThatItWouldAllow) {
  access(true, {0, 100, RegionKey{12}});
  const memory::Registration added = add(Access::kRemoteWrite, RegionKey{12});
  box->poll(log);
  EXPECT_TRUE(log.refusals.empty());
  EXPECT_TRUE(table->remove(added).ok()) << "nothing is pinned";
}

TEST_F(AccessTest, ARefusalNeedsNoRoomInTheRing) {
  Bytes none;
  while (peer.send(1, none).state == State::kDone) {
  }
  EXPECT_EQ(access(true, {0, 100, RegionKey{12}}).error, EACCES);
}

using Accessed = InboxLog::Accessed;

TEST_F(AccessTest, TheOwnerHearsOfAccessesToTheRegionsThatItAskedFor) {
  table->report_accesses(writable, Access::kRemoteWrite);
  access(true, {0, 100, RegionKey{11}});
  access(true, {4000, 100, RegionKey{11}});  // refused
  access(true, {0, 0, RegionKey{11}}, true);
  access(false, {0, 100, RegionKey{10}});
  box->poll(log);
  const Accessed once{Access::kRemoteWrite, {RegionKey{11}}};
  EXPECT_EQ(log.accesses, (std::vector{once, once}));
  EXPECT_EQ(log.messages.size(), 2u) << "announcements come besides";
}

TEST_F(AccessTest, AnAccessThatTheOwnerWouldNotHearOfIsNotBegun) {
  table->report_accesses(writable, Access::kRemoteWrite);
  Bytes none;
  while (peer.send(1, none).state == State::kDone) {
  }
  const Bytes before = region;
  EXPECT_EQ(access(true, {0, 50, RegionKey{11}}).state, State::kAgain);
  EXPECT_TRUE(region == before);
  while (log.messages.size() < kCells) box->poll(log);
  EXPECT_EQ(access(true, {0, 50, RegionKey{11}}).state, State::kDone);
  box->poll(log);
  EXPECT_EQ(log.accesses.size(), 1u);
}

}  // namespace
}  // namespace weft::shm
