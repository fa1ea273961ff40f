// SPDX-License-Identifier: BSD-2-Clause
// Does a small access come out the same, whether its owner carries it out or the sender does?
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <thread>

#include "memory/region_table.h"
#include "os/user_memory.h"
#include "test_support.h"

namespace weft::shm {
namespace {

using namespace testing;
using Bytes = std::vector<std::byte>;
using State = link::Outcome::State;

constexpr std::size_t kRegionBytes = 16 * 1024;
constexpr int kBothWays = 32;  // both ways are tried at first

// What the owner's process and this one share.
struct Stage {
  std::atomic<bool> polls{true};
  std::atomic<bool> idle{false};  // it has noticed that it must not poll
  std::atomic<unsigned> announced{0};
  std::atomic<unsigned> told{0};         // of accesses to the region with key 14
  std::atomic<bool> gate{false};         // closed: the owner stops when it touches the region
  std::atomic<bool> gate_closed{false};  // it has noticed
  std::atomic<bool> held{false};         // it is stopped there
  std::atomic<bool> dies{false};         // instead of being stopped
  alignas(4096) std::byte region[kRegionBytes];
};

// In the owner.
Stage* stage_of_owner = nullptr;
struct sigaction fault_before;

void close_gate(bool closed) {
  ::mprotect(stage_of_owner->region, kRegionBytes, closed ? PROT_NONE : PROT_READ | PROT_WRITE);
  stage_of_owner->gate_closed = closed;
}

// Between an instruction that touches the region and its next try.
void at_gate(int signal, siginfo_t* info, void* context) {
  Stage& stage = *stage_of_owner;
  const auto* at = static_cast<const std::byte*>(info->si_addr);
  const bool in_region = at >= stage.region && at < stage.region + kRegionBytes;
  if (!in_region) return fault_before.sa_sigaction(signal, info, context);
  if (stage.dies) ::kill(::getpid(), SIGKILL);
  stage.held = true;
  while (stage.gate) ::sched_yield();
  close_gate(false);
  stage.held = false;
}

Stage* make_stage() {
  void* place =
      ::mmap(nullptr, sizeof(Stage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return new (place) Stage;
}

// The position of a cell that asks for an assisted access and is not withdrawn; nothing when there
// is none.
std::optional<std::uint64_t> assisted_asked_for(const SlotView& slot) {
  for (std::uint32_t i = 0; i < kCells; ++i) {
    const CellWord word = CellWord::unpack(slot.cell(i).word.load());
    if (word.lap == 0 ||
        (word.kind != CellKind::kAssisted && word.kind != CellKind::kAtomicAssisted))
      continue;
    const std::uint64_t position = std::uint64_t{word.lap - 1} * kCells + i;
    const bool answered = slot.header().assisted.word.load() >> 2 >= position && position != 0;
    if (!answered && read_once(slot.cell(i).assisted.withdrawn) == 0) return position;
  }
  return std::nullopt;
}

// The owner: polls whenever it is told to.
void own(const std::string& directory, Stage& stage, Child& self) {
  os::handle_user_faults();
  stage_of_owner = &stage;
  struct sigaction action {};
  action.sa_sigaction = at_gate;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSEGV, &action, &fault_before);
  auto table = std::move(memory::RegionTable::create(directory)).value();
  const auto add = [&](Access access, void* base, std::uint64_t key) {
    return table
        ->add({DomainId{5}, access, reinterpret_cast<std::uint64_t>(base), kRegionBytes, 0, false,
               RegionKey{key}})
        .value();
  };
  add(Access::kRemoteRead, stage.region, 10);
  add(Access::kRemoteWrite, stage.region, 11);
  const Access both = Access::kRemoteRead | Access::kRemoteWrite;
  add(both, stage.region, 13);
  table->report_accesses(add(both, stage.region, 14), both);
  void* gone =
      ::mmap(nullptr, kRegionBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  add(both, gone, 12);
  // Not unmapped: the next mapping of this process might take its place.
  ::mprotect(gone, kRegionBytes, PROT_NONE);
  auto box =
      std::move(Mailbox::create({directory, loopback(kOwner), DomainId{5}, table->name(), 0,
                                 memory::RegionTableView::open(directory, table->name()).value()}))
          .value();
  InboxLog log(box.get());
  self.tell();
  for (;;) {
    stage.idle = !stage.polls;
    if (stage.gate != stage.gate_closed) close_gate(stage.gate);
    if (stage.polls) box->poll(log);
    stage.told = static_cast<unsigned>(log.accesses.size());
    stage.announced = static_cast<unsigned>(log.messages.size());
  }
}

// Puts two processes on processors of their own while it lives. On one, which the scheduler of a
// busy machine may choose for both, no owner is ever fast enough.
class Apart {
 public:
  Apart() {
    ::sched_getaffinity(0, sizeof allowed_, &allowed_);
    for (unsigned i = 0; i < CPU_SETSIZE; ++i) {
      if (!CPU_ISSET(i, &allowed_)) continue;
      CPU_ZERO(&mine_);
      CPU_SET(i, &mine_);
      if (CPU_COUNT(&others_) == 0) others_ = mine_;
    }
    ::sched_setaffinity(0, sizeof mine_, &mine_);
  }
  Apart(const Apart&) = delete;
  Apart& operator=(const Apart&) = delete;
  ~Apart() { go_anywhere(); }

  // For a third one.
  void go_anywhere() const { ::sched_setaffinity(0, sizeof allowed_, &allowed_); }
  // For the other process.
  void go_away() const { ::sched_setaffinity(0, sizeof others_, &others_); }
  bool possible() const { return CPU_EQUAL(&mine_, &others_) == 0; }

 private:
  cpu_set_t allowed_{};
  cpu_set_t mine_{};
  cpu_set_t others_{};
};

struct AssistedAccessTest : ::testing::Test {
  RuntimeDir dir;
  Stage* stage = make_stage();
  Apart apart;
  Child child{[this](Child& self) {
    apart.go_away();
    own(dir.path(), *stage, self);
  }};
  Peer peer{dir.path(), kSender};
  std::optional<SlotView> slot;

  void SetUp() override { open(); }
  void open() {
    child.tell();
    ASSERT_TRUE(child.await_word());
    ASSERT_TRUE(peer.open(kOwner));
    // The owner listens once it has looked at the slot.
    slot.emplace(dir.path(), kOwner, 0);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (slot->header().attention != Attention::kPolled) {
      ASSERT_LT(std::chrono::steady_clock::now(), end);
      std::this_thread::yield();
    }
  }
  ~AssistedAccessTest() override {
    child.kill_it();
    ::munmap(stage, sizeof(Stage));
  }
  link::Outcome access(bool write, std::span<std::byte> local, RemoteRange remote,
                       bool has_data = false) {
    const LocalRange halves[] = {
        {local.data(), local.size() / 2},
        {local.data() + local.size() / 2, local.size() - local.size() / 2}};
    return peer.box->access({write, has_data, 0x55, halves, {&remote, 1}, local.size()});
  }
  link::Outcome atomic(AtomicAction action, RemoteRange remote, std::span<std::byte> operand,
                       std::span<std::byte> compare, std::span<std::byte> result) {
    const LocalRange o{operand.data(), operand.size()};
    const LocalRange c{compare.data(), compare.size()};
    const LocalRange r{result.data(), result.size()};
    link::AtomicRequest request;
    request.action = action;
    request.operand = {&o, 1};
    request.compare = {&c, 1};
    request.result = {&r, 1};
    request.remote = {&remote, 1};
    request.length = remote.length;
    return peer.box->atomic(request);
  }
  AssistedState assisted() const {
    return static_cast<AssistedState>(slot->header().assisted.word.load() & 3);
  }
  // Accesses go on until the owner was fast enough to carry one out: on a busy machine it seldom
  // is, and on one processor never.
  bool owner_carries_out(bool write) {
    if (!apart.possible()) return true;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    Bytes bytes(8);
    const RemoteRange remote{0, 8, RegionKey{write ? 11u : 10u}};
    while (assisted() != AssistedState::kDone) {
      if (access(write, bytes, remote).state != State::kDone) return false;
      if (std::chrono::steady_clock::now() > end) return false;
    }
    return true;
  }
  void stop_polling() {
    stage->polls = false;
    while (!stage->idle) std::this_thread::yield();
  }
};

TEST_F(AssistedAccessTest, AWriteArrivesWholeAndNowhereElse) {
  EXPECT_TRUE(owner_carries_out(true));
  unsigned seed = 1;
  for (const std::size_t length : {1u, 8u, 31u, 32u, 33u, 100u, 2039u, 2040u, 2041u, 4096u}) {
    for (int i = 0; i < kBothWays; ++i) {
      std::fill(std::begin(stage->region), std::end(stage->region), std::byte{0});
      Bytes bytes = pattern(length, ++seed);
      ASSERT_EQ(access(true, bytes, {1000, length, RegionKey{11}}).state, State::kDone);
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), stage->region + 1000)) << length;
      EXPECT_EQ(stage->region[999], std::byte{0});
      EXPECT_EQ(stage->region[1000 + length], std::byte{0});
    }
  }
}

struct AssistedAccessInASmallRing : AssistedAccessTest {
  void SetUp() override {
    peer.sender.geometry = {16, 16, 16 * 1024};
    open();
  }
};

TEST_F(AssistedAccessInASmallRing, ReadsAndWritesGoThroughManyLaps) {
  EXPECT_TRUE(owner_carries_out(true));
  for (unsigned i = 1; i <= 1000; ++i) {
    Bytes bytes = pattern(8, i);
    ASSERT_EQ(access(true, bytes, {0, 8, RegionKey{13}}).state, State::kDone) << i;
    ASSERT_TRUE(std::equal(bytes.begin(), bytes.end(), stage->region)) << i;
    Bytes read(8);
    ASSERT_EQ(access(false, read, {0, 8, RegionKey{13}}).state, State::kDone) << i;
    ASSERT_EQ(read, bytes) << i;
  }
}

TEST_F(AssistedAccessTest, AReadBringsWhatIsThere) {
  EXPECT_TRUE(owner_carries_out(false));
  unsigned seed = 1;
  for (const std::size_t length : {1u, 8u, 32u, 100u, 2040u, 2041u, 4096u}) {
    for (int i = 0; i < kBothWays; ++i) {
      const Bytes there = pattern(kRegionBytes, ++seed);
      std::copy(there.begin(), there.end(), stage->region);
      Bytes bytes(length);
      ASSERT_EQ(access(false, bytes, {777, length, RegionKey{10}}).state, State::kDone);
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), there.begin() + 777)) << length;
    }
  }
}

TEST_F(AssistedAccessTest, ARefusalHasItsReasonAndLeavesTheRegionAlone) {
  const Bytes before = pattern(kRegionBytes, 1);
  std::copy(before.begin(), before.end(), stage->region);
  Bytes bytes = pattern(100, 2);
  const auto refused = [&](bool write, RemoteRange remote, memory::AccessError reason) {
    for (int i = 0; i < kBothWays; ++i) {
      const link::Outcome outcome = access(write, bytes, remote);
      EXPECT_EQ(outcome.error, EACCES);
      EXPECT_EQ(outcome.detail, static_cast<int>(reason));
    }
  };
  refused(true, {0, 100, RegionKey{10}}, memory::AccessError::kNoRight);
  refused(false, {0, 100, RegionKey{11}}, memory::AccessError::kNoRight);
  refused(true, {kRegionBytes - 99, 100, RegionKey{11}}, memory::AccessError::kPastEnd);
  refused(false, {~0ull - 10, 100, RegionKey{10}}, memory::AccessError::kWraps);
  refused(true, {0, 100, RegionKey{99}}, memory::AccessError::kUnknownKey);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), stage->region));
  EXPECT_TRUE(bytes == pattern(100, 2));
}

constexpr AtomicAction kFetchAdd{AtomicForm::kFetch, AtomicOp::kSum, AtomicType::kUint64};
constexpr AtomicAction kAdd{AtomicForm::kBase, AtomicOp::kSum, AtomicType::kUint64};
constexpr AtomicAction kSwap{AtomicForm::kCompare, AtomicOp::kSwapIfEqual, AtomicType::kUint8};

// Bytes from the operand in the cell, from the largest in the assisted access, and past that.
TEST_F(AssistedAccessTest, AnAtomicOperationIsDoneOnceAndBringsWhatWasThere) {
  Bytes none;
  for (const std::size_t length : {8u, 24u, 32u, 256u, 1016u, 1024u, 4096u}) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    std::fill(std::begin(stage->region), std::end(stage->region), std::byte{0});
    Bytes one(length);
    for (std::size_t i = 0; i < length; i += 8) one[i] = std::byte{1};
    Bytes result(length);
    std::uint64_t done = 0;
    bool by_owner = length > 1016 || !apart.possible();
    for (; done < kBothWays || !by_owner; ++done) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << "never by the owner: " << length;
      const std::uint64_t last_assisted = slot->header().assisted.word.load();
      ASSERT_EQ(atomic(kFetchAdd, {1000, length, RegionKey{13}}, one, none, result).state,
                State::kDone);
      const bool asked = slot->header().assisted.word.load() != last_assisted;
      by_owner = by_owner || (asked && assisted() == AssistedState::kDone);
      for (std::size_t i = 0; i < length; i += 8) {
        std::uint64_t value = 0;
        std::memcpy(&value, result.data() + i, 8);
        ASSERT_EQ(value, done) << length << " at " << i;
      }
    }
    std::uint64_t last = 0;
    std::memcpy(&last, stage->region + 1000 + length - 8, 8);
    EXPECT_EQ(last, done);
    EXPECT_EQ(stage->region[1000 + length], std::byte{0});
  }
}

TEST_F(AssistedAccessTest, ASwapComparesWithWhatItBroughtAlong) {
  for (const std::size_t length : {3u, 14u, 15u, 200u}) {
    for (int i = 0; i < kBothWays; ++i) {
      const Bytes before = pattern(length, static_cast<unsigned>(i));
      std::copy(before.begin(), before.end(), stage->region);
      Bytes operand(length, std::byte{0xee});
      Bytes compare = before;
      compare[length - 1] ^= std::byte{1};
      Bytes result(length);
      ASSERT_EQ(atomic(kSwap, {0, length, RegionKey{13}}, operand, compare, result).state,
                State::kDone);
      EXPECT_TRUE(result == before);
      EXPECT_TRUE(std::equal(operand.begin(), operand.end() - 1, stage->region));
      EXPECT_EQ(stage->region[length - 1], before[length - 1]);
    }
  }
}

TEST_F(AssistedAccessTest, ARefusedAtomicOperationHasItsReasonAndChangesNothing) {
  Bytes one(8, std::byte{1});
  Bytes none;
  Bytes result(8);
  const Bytes before = pattern(kRegionBytes, 1);
  std::copy(before.begin(), before.end(), stage->region);
  for (int i = 0; i < kBothWays; ++i) {
    EXPECT_EQ(atomic(kFetchAdd, {0, 8, RegionKey{10}}, one, none, result).error, EACCES);
    EXPECT_EQ(atomic(kFetchAdd, {0, 8, RegionKey{11}}, one, none, result).error, EACCES);
    EXPECT_EQ(atomic(kAdd, {0, 8, RegionKey{10}}, one, none, none).error, EACCES);
    EXPECT_EQ(atomic(kAdd, {0, 8, RegionKey{12}}, one, none, none).error, EFAULT);
  }
  EXPECT_TRUE(std::equal(before.begin(), before.end(), stage->region));
  EXPECT_EQ(atomic(kAdd, {0, 8, RegionKey{11}}, one, none, none).state, State::kDone);
}

// One sender asks the owner, others do it by themselves: no count is lost.
TEST_F(AssistedAccessTest, CountsOfTheOwnerAndOfSendersAddUp) {
  std::fill(std::begin(stage->region), std::end(stage->region), std::byte{0});
  constexpr unsigned kEach = 3000;
  const auto hammer = [&](Peer& mine, bool asks) {
    std::uint64_t one = 1;
    const LocalRange operand{&one, 8};
    const RemoteRange remote[] = {{64, 8, RegionKey{13}}, {64, asks ? 0u : 8u, RegionKey{13}}};
    const LocalRange twice[] = {operand, operand};
    for (unsigned i = 0; i < kEach; ++i) {
      link::AtomicRequest request;
      request.action = kAdd;
      request.operand = {twice, asks ? 1u : 2u};
      request.remote = {remote, asks ? 1u : 2u};  // two ranges are no assisted access
      request.length = asks ? 8 : 16;
      EXPECT_EQ(mine.box->atomic(request).state, State::kDone);
    }
  };
  Peer other(dir.path(), kSender + 1);
  ASSERT_TRUE(other.open(kOwner));
  std::thread thread([&] {
    apart.go_anywhere();
    hammer(other, false);
  });
  hammer(peer, true);
  thread.join();
  std::uint64_t sum = 0;
  std::memcpy(&sum, stage->region + 64, 8);
  EXPECT_EQ(sum, 3u * kEach);
}

TEST_F(AssistedAccessTest, ARegionWhoseMemoryIsGoneIsAnErrorAndTheOwnerLivesOn) {
  Bytes bytes = pattern(64, 1);
  for (int i = 0; i < kBothWays; ++i) {
    EXPECT_EQ(access(true, bytes, {0, 64, RegionKey{12}}).error, EFAULT);
    EXPECT_EQ(access(false, bytes, {0, 64, RegionKey{12}}).error, EFAULT);
  }
  EXPECT_EQ(access(true, bytes, {0, 64, RegionKey{11}}).state, State::kDone);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), stage->region));
}

TEST_F(AssistedAccessTest, AnOwnerThatDoesNotPollIsNotNeeded) {
  stop_polling();
  for (unsigned i = 1; i <= 2 * kCells; ++i) {
    Bytes bytes = pattern(8, i);
    ASSERT_EQ(access(true, bytes, {0, 8, RegionKey{11}}).state, State::kDone);
    ASSERT_TRUE(std::equal(bytes.begin(), bytes.end(), stage->region)) << i;
  }
  EXPECT_FALSE(assisted_asked_for(*slot)) << "not withdrawn";
  stage->polls = true;
  Bytes last = pattern(8, 99);
  ASSERT_EQ(access(true, last, {0, 8, RegionKey{11}}).state, State::kDone);
  while (peer.send(1, last).state != State::kDone) std::this_thread::yield();
  while (stage->announced == 0) std::this_thread::yield();
  EXPECT_TRUE(std::equal(last.begin(), last.end(), stage->region))
      << "what was withdrawn has been carried out late";
}

TEST_F(AssistedAccessTest, AnnouncementsComeOncePerAccess) {
  Bytes bytes = pattern(8, 1);
  for (unsigned i = 0; i < 4 * kBothWays; ++i) {
    while (access(true, bytes, {0, 8, RegionKey{11}}, true).state == State::kAgain) {
    }
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (stage->announced < 4 * kBothWays && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  EXPECT_EQ(stage->announced, 4u * kBothWays);
}

TEST_F(AssistedAccessTest, TheOwnerHearsOncePerAccessOfEitherExecutor) {
  Bytes bytes = pattern(8, 1);
  Bytes none;
  const RemoteRange remote{0, 8, RegionKey{14}};
  constexpr unsigned kEach = 2 * kBothWays;
  constexpr unsigned kAccesses = 3 * kEach;
  static_assert(2 * kAccesses < kCells, "there is room for all that is told");
  for (unsigned i = 0; i < kEach; ++i) {
    ASSERT_EQ(access(true, bytes, remote).state, State::kDone);
    ASSERT_EQ(access(false, bytes, remote).state, State::kDone);
    ASSERT_EQ(atomic(kFetchAdd, remote, bytes, none, bytes).state, State::kDone);
  }
  ASSERT_EQ(peer.send(1, bytes).state, State::kDone);
  while (stage->announced == 0) std::this_thread::yield();
  EXPECT_EQ(stage->told, kAccesses);
}

// The owner's mapping of the region is protected, so it is stopped within an assisted access when
// it touches the region. Until then an access that the sender makes by itself fails (EFAULT).
struct StoppedOwnerTest : AssistedAccessTest {
  void SetUp() override {
    if (!apart.possible()) GTEST_SKIP() << "needs two processors";
    AssistedAccessTest::SetUp();
    stage->gate = true;
    while (!stage->gate_closed) std::this_thread::yield();
  }
  ~StoppedOwnerTest() override { stage->gate = false; }

  // Starts accesses until the owner has taken one and is held in it.
  template <class Start>
  link::Outcome until_held(Start start) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    link::Outcome outcome;
    while (!stage->held && std::chrono::steady_clock::now() < end) outcome = start();
    EXPECT_TRUE(stage->held);
    return outcome;
  }
  std::uint64_t number_at(std::size_t offset) const {
    std::uint64_t number = 0;
    std::memcpy(&number, stage->region + offset, sizeof number);
    return number;
  }
};

TEST_F(StoppedOwnerTest, AnAccessOfUnknownOutcomeFailsAndNoLaterOneIsOverwrittenByIt) {
  Bytes older = pattern(8, 1);
  Bytes newer = pattern(8, 2);
  const RemoteRange remote{0, 8, RegionKey{11}};
  EXPECT_EQ(until_held([&] { return access(true, older, remote); }).error, ETIMEDOUT);
  std::fill(std::begin(stage->region), std::end(stage->region), std::byte{0});
  Bytes result(8);
  EXPECT_EQ(access(true, newer, remote).error, ETIMEDOUT);
  EXPECT_EQ(access(false, result, {0, 8, RegionKey{10}}).error, ETIMEDOUT);
  EXPECT_EQ(atomic(kAdd, {0, 8, RegionKey{13}}, newer, result, result).error, ETIMEDOUT);
  FlowLog log;
  EXPECT_EQ(peer.box->check_peer(log), link::PeerState::kAlive);
  EXPECT_EQ(number_at(0), 0u);

  stage->gate = false;
  link::Outcome outcome;
  do {
    outcome = access(true, newer, remote);
  } while (outcome.error == ETIMEDOUT);
  EXPECT_EQ(outcome.state, State::kDone);
  ASSERT_EQ(peer.send(1, newer).state, State::kDone);
  while (stage->announced == 0) std::this_thread::yield();
  EXPECT_TRUE(std::equal(newer.begin(), newer.end(), stage->region));
}

TEST_F(StoppedOwnerTest, AnAtomicOperationOfUnknownOutcomeIsDoneOnce) {
  std::fill(std::begin(stage->region), std::end(stage->region), std::byte{0});
  Bytes one(8);
  one[0] = std::byte{1};
  Bytes none;
  std::uint64_t done = 0;
  const auto add = [&] {
    const link::Outcome outcome = atomic(kAdd, {0, 8, RegionKey{13}}, one, none, none);
    if (outcome.state == State::kDone) ++done;
    return outcome;
  };
  EXPECT_EQ(until_held(add).error, ETIMEDOUT);
  EXPECT_EQ(add().error, ETIMEDOUT);
  EXPECT_EQ(number_at(0), done);

  stage->gate = false;
  while (add().error == ETIMEDOUT) {
  }
  EXPECT_EQ(number_at(0), done + 1);
}

TEST_F(StoppedOwnerTest, AnOwnerThatDiesInTheMiddleIsReported) {
  stage->dies = true;
  Bytes bytes = pattern(8, 1);
  int error = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while ((error == 0 || error == EFAULT) && std::chrono::steady_clock::now() < end) {
    error = access(true, bytes, {0, 8, RegionKey{11}}).error;
  }
  EXPECT_EQ(error, ECONNRESET);
  EXPECT_NE(slot->header().assisted_taken.load(), 0u);
}

}  // namespace
}  // namespace weft::shm
