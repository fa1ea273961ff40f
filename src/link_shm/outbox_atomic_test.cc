// SPDX-License-Identifier: BSD-2-Clause
// Does an atomic operation change exactly what it may, and bring back what was there?
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <thread>

#include "link_shm/outbox.h"
#include "memory/region_table.h"
#include "test_support.h"

namespace weft::shm {
namespace {

using namespace testing;
using Bytes = std::vector<std::byte>;
using State = link::Outcome::State;
using Words = std::vector<std::uint64_t>;

constexpr AtomicAction kAdd{AtomicForm::kBase, AtomicOp::kSum, AtomicType::kUint64};
constexpr AtomicAction kFetchAdd{AtomicForm::kFetch, AtomicOp::kSum, AtomicType::kUint64};
constexpr AtomicAction kFetch{AtomicForm::kFetch, AtomicOp::kRead, AtomicType::kUint64};
constexpr AtomicAction kSwap{AtomicForm::kCompare, AtomicOp::kSwapIfEqual, AtomicType::kUint64};

struct AtomicTest : ::testing::Test {
  RuntimeDir dir;
  std::unique_ptr<memory::RegionTable> table =
      std::move(memory::RegionTable::create(dir.path())).value();
  std::unique_ptr<Mailbox> box =
      std::move(
          Mailbox::create({dir.path(), loopback(kOwner), DomainId{5}, table->name(), kCountsReads}))
          .value();
  InboxLog log{box.get()};
  Peer peer{dir.path(), kSender};
  alignas(8) std::uint64_t region[1024];
  memory::Registration both = add(Access::kRemoteRead | Access::kRemoteWrite, RegionKey{10});
  memory::Registration readable = add(Access::kRemoteRead, RegionKey{11});
  memory::Registration writable = add(Access::kRemoteWrite, RegionKey{12});

  void SetUp() override {
    ASSERT_TRUE(peer.open(kOwner));
    for (std::size_t i = 0; i < std::size(region); ++i) region[i] = 1000 * i;
  }
  memory::Registration add(Access access, RegionKey key) {
    return table
        ->add({DomainId{5}, access, reinterpret_cast<std::uint64_t>(region), sizeof region, 0,
               false, key})
        .value();
  }
  link::Outcome atomic(AtomicAction action, std::span<const RemoteRange> remote, Words& operand,
                       Words& compare, Words& result, bool has_data = false) {
    link::AtomicRequest request;
    const LocalRange o{operand.data(), operand.size() * 8};
    const LocalRange c{compare.data(), compare.size() * 8};
    const LocalRange r{result.data(), result.size() * 8};
    request.action = action;
    request.has_data = has_data;
    request.data = 0x66;
    if (action.has_operand()) request.operand = {&o, 1};
    if (action.compares()) request.compare = {&c, 1};
    if (action.fetches()) request.result = {&r, 1};
    request.remote = remote;
    for (const RemoteRange& range : remote) request.length += range.length;
    return peer.box->atomic(request);
  }
  link::Outcome atomic(AtomicAction action, RemoteRange remote, bool has_data = false) {
    Words operand(remote.length / 8 + 1, 1);
    Words compare(operand);
    Words result(operand);
    return atomic(action, {&remote, 1}, operand, compare, result, has_data);
  }
};

TEST_F(AtomicTest, AFetchAddChangesItsElementsAndBringsTheInitialValues) {
  Words operand{5, 6, 7};
  Words none;
  Words result(3);
  const RemoteRange remote{80, 24, RegionKey{10}};
  ASSERT_EQ(atomic(kFetchAdd, {&remote, 1}, operand, none, result).state, State::kDone);
  EXPECT_EQ(result, (Words{10000, 11000, 12000}));
  EXPECT_EQ(region[9], 9000u);
  EXPECT_EQ(region[10], 10005u);
  EXPECT_EQ(region[11], 11006u);
  EXPECT_EQ(region[12], 12007u);
  EXPECT_EQ(region[13], 13000u);
}

TEST_F(AtomicTest, ASwapComparesEachElement) {
  Words operand{7, 7};
  Words compare{1000, 2001};
  Words result(2);
  const RemoteRange remote{8, 16, RegionKey{10}};
  ASSERT_EQ(atomic(kSwap, {&remote, 1}, operand, compare, result).state, State::kDone);
  EXPECT_EQ(result, (Words{1000, 2000}));
  EXPECT_EQ(region[1], 7u);
  EXPECT_EQ(region[2], 2000u);
}

TEST_F(AtomicTest, SeveralRangesTakeTheirPartsInOrderAndScatteredSgesToo) {
  Words operand{1, 2, 3};
  Words result(3);
  const RemoteRange remote[] = {{0, 8, RegionKey{10}}, {800, 16, RegionKey{10}}};
  // 12 bytes, then 12: SGEs need not be whole elements.
  auto* o = reinterpret_cast<std::byte*>(operand.data());
  auto* r = reinterpret_cast<std::byte*>(result.data());
  const LocalRange operands[] = {{o, 12}, {o + 12, 12}};
  const LocalRange results[] = {{r, 4}, {r + 4, 20}};
  link::AtomicRequest request;
  request.action = kFetchAdd;
  request.operand = operands;
  request.result = results;
  request.remote = remote;
  request.length = 24;
  ASSERT_EQ(peer.box->atomic(request).state, State::kDone);
  EXPECT_EQ(result, (Words{0, 100000, 101000}));
  EXPECT_EQ(region[0], 1u);
  EXPECT_EQ(region[100], 100002u);
  EXPECT_EQ(region[101], 101003u);
}

TEST_F(AtomicTest, TheLargestOperationAtAnOddAddressAcrossPagesIsWhole) {
  Words operand(kMaxAtomicBytes / 8, 1);
  Words none;
  Words result(operand.size());
  Bytes before(sizeof region);
  std::memcpy(before.data(), region, sizeof region);
  const RemoteRange remote{3, kMaxAtomicBytes, RegionKey{10}};
  ASSERT_EQ(atomic(kFetchAdd, {&remote, 1}, operand, none, result).state, State::kDone);
  EXPECT_EQ(0, std::memcmp(result.data(), before.data() + 3, kMaxAtomicBytes));
  const auto* after = reinterpret_cast<const std::byte*>(region);
  for (std::size_t i = 0; i < result.size(); ++i) {
    std::uint64_t value = 0;
    std::memcpy(&value, after + 3 + 8 * i, 8);
    ASSERT_EQ(value, result[i] + 1) << i;
  }
  EXPECT_TRUE(std::equal(before.begin(), before.begin() + 3, after));
  EXPECT_TRUE(
      std::equal(before.begin() + 3 + kMaxAtomicBytes, before.end(), after + 3 + kMaxAtomicBytes));
}

TEST_F(AtomicTest, ARefusedOperationTouchesNothingAndSaysWhy) {
  const auto refused = [&](AtomicAction action, RemoteRange remote) {
    const link::Outcome outcome = atomic(action, remote);
    EXPECT_EQ(outcome.error, EACCES);
    return static_cast<memory::AccessError>(outcome.detail);
  };
  EXPECT_EQ(refused(kAdd, {0, 8, RegionKey{11}}), memory::AccessError::kNoRight);
  EXPECT_EQ(refused(kFetchAdd, {0, 8, RegionKey{11}}), memory::AccessError::kNoRight);
  EXPECT_EQ(refused(kFetchAdd, {0, 8, RegionKey{12}}), memory::AccessError::kNoRight);
  const RemoteRange both[] = {{0, 8, RegionKey{10}}, {8, 8, RegionKey{12}}};
  Words operand(2);
  Words compare(2);
  Words result(2);
  const link::Outcome outcome = atomic(kFetchAdd, both, operand, compare, result);
  const RefusedAccess known = peer.box->refused(outcome.detail, both);
  EXPECT_EQ(known.reason, static_cast<int>(memory::AccessError::kNoRight));
  EXPECT_EQ(known.range.key, RegionKey{12});
  EXPECT_EQ(known.ranges, 1u);
  EXPECT_EQ(known.region_length, sizeof region);
  EXPECT_EQ(refused(kSwap, {0, 8, RegionKey{12}}), memory::AccessError::kNoRight);
  EXPECT_EQ(refused(kFetch, {0, 8, RegionKey{12}}), memory::AccessError::kNoRight);
  EXPECT_EQ(refused(kAdd, {sizeof region - 7, 8, RegionKey{10}}), memory::AccessError::kPastEnd);
  EXPECT_EQ(refused(kAdd, {0, 8, RegionKey{99}}), memory::AccessError::kUnknownKey);
  for (std::size_t i = 0; i < std::size(region); ++i) ASSERT_EQ(region[i], 1000 * i);
  EXPECT_EQ(atomic(kAdd, {0, 8, RegionKey{12}}).state, State::kDone);
  EXPECT_EQ(atomic(kFetch, {0, 8, RegionKey{11}}).state, State::kDone);
}

TEST_F(AtomicTest, OneRefusedRangeOfSeveralRefusesAll) {
  Words operand{1, 1};
  Words none;
  Words result(2);
  const RemoteRange remote[] = {{0, 8, RegionKey{10}}, {0, 8, RegionKey{11}}};
  EXPECT_EQ(atomic(kFetchAdd, remote, operand, none, result).error, EACCES);
  EXPECT_EQ(region[0], 0u);
  EXPECT_EQ(result, Words(2));
}

TEST_F(AtomicTest, MemoryThatIsGoneIsAnError) {
  void* gone = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_TRUE(table
                  ->add({DomainId{5}, Access::kRemoteRead | Access::kRemoteWrite,
                         reinterpret_cast<std::uint64_t>(gone), 4096, 0, false, RegionKey{20}})
                  .ok());
  EXPECT_EQ(atomic(kFetchAdd, {0, 8, RegionKey{20}}).state, State::kDone);
  ::munmap(gone, 4096);
  EXPECT_EQ(atomic(kFetchAdd, {0, 8, RegionKey{20}}).error, EFAULT);
  EXPECT_EQ(atomic(kFetchAdd, {0, 8, RegionKey{10}}).state, State::kDone) << "nothing stays locked";
}

TEST_F(AtomicTest, MemoryThatAnotherUserHoldsTooLongIsAnError) {
  const auto foreign = memory::RegionTableView::open(dir.path(), table->name()).value();
  const auto other = std::move(memory::AccessGuard::attach(foreign)).value();
  const RemoteRange word{0, 8, RegionKey{10}};
  ASSERT_TRUE(other->check_and_pin(DomainId{5}, Access::kRemoteRead, {&word, 1}).ok());
  ASSERT_EQ(other->lock(0, memory::LockWait::kUsual), 0);
  EXPECT_EQ(atomic(kFetchAdd, {0, 8, RegionKey{10}}).error, ETIMEDOUT);
  EXPECT_EQ(region[0], 0u);
  other->unlock();
  EXPECT_EQ(atomic(kFetchAdd, {0, 8, RegionKey{10}}).state, State::kDone);
  EXPECT_EQ(region[0], 1u);
}

TEST_F(AtomicTest, OnlyOperationsThatTheOwnerCountsOrThatCarryDataAreAnnounced) {
  atomic(kAdd, {0, 8, RegionKey{10}});
  atomic(kFetchAdd, {0, 16, RegionKey{10}});
  atomic(kAdd, {0, 24, RegionKey{10}}, true);
  atomic(kSwap, {0, 32, RegionKey{10}}, true);
  box->poll(log);
  ASSERT_EQ(log.messages.size(), 3u);
  const auto arrival = [&](std::size_t i) { return log.messages[i].arrival; };
  EXPECT_EQ(arrival(0).operation, link::MessageOperation::kReadEvent);
  EXPECT_EQ(arrival(0).tag, 16u) << "the length";
  EXPECT_EQ(arrival(1).operation, link::MessageOperation::kAtomicWriteData);
  EXPECT_TRUE(arrival(1).has_data);
  EXPECT_EQ(arrival(1).data, 0x66u);
  EXPECT_EQ(arrival(2).operation, link::MessageOperation::kAtomicReadData);
}

TEST_F(AtomicTest, ThreadsWithWaysOfTheirOwnLoseNoCount) {
  constexpr int kEach = 2000;
  const auto hammer = [&](std::uint16_t port) {
    Peer mine(dir.path(), port);
    if (!mine.open(kOwner)) return;
    std::uint64_t one = 1;
    std::uint64_t before = 0;
    const LocalRange operand{&one, 8};
    const LocalRange result{&before, 8};
    const RemoteRange remote{2044, 8, RegionKey{10}};
    for (int i = 0; i < kEach; ++i) {
      link::AtomicRequest request;
      request.action = i % 2 == 0 ? kAdd : kFetchAdd;
      request.operand = {&operand, 1};
      request.result = {&result, 1};
      request.remote = {&remote, 1};
      request.length = 8;
      while (mine.box->atomic(request).state == State::kAgain) std::this_thread::yield();
    }
  };
  std::uint64_t start = 0;
  std::memcpy(&start, reinterpret_cast<std::byte*>(region) + 2044, 8);
  // Announcements of the fetching ones must be taken.
  std::atomic<bool> over{false};
  std::thread taker([&] {
    while (!over) box->poll(log);
  });
  std::thread one(hammer, 7102);
  std::thread two(hammer, 7103);
  std::thread three(hammer, 7104);
  one.join();
  two.join();
  three.join();
  over = true;
  taker.join();
  std::uint64_t end = 0;
  std::memcpy(&end, reinterpret_cast<std::byte*>(region) + 2044, 8);
  EXPECT_EQ(end - start, 3u * kEach);
}

}  // namespace
}  // namespace weft::shm
