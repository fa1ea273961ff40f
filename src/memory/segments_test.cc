// SPDX-License-Identifier: BSD-2-Clause
// Are the segments of a region one range to its peers?
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <vector>

#include "base/slices.h"
#include "memory/own_memory.h"
#include "memory/region_table.h"
#include "os/user_memory.h"

namespace weft::memory {
namespace {

using Bytes = std::vector<std::byte>;

constexpr DomainId kDomain{1};
constexpr RegionKey kKey{7};
constexpr std::uint64_t kStart = 0x10'0000;  // the first byte's address for peers
constexpr Access kBoth = Access::kRemoteRead | Access::kRemoteWrite;

class SegmentsTest : public testing::Test {
 protected:
  SegmentsTest() {
    os::handle_user_faults();
    EXPECT_NE(::mkdtemp(directory_.data()), nullptr);
    table_ = std::move(RegionTable::create(directory_)).value();
    guard_ = std::move(AccessGuard::attach(foreign())).value();
    own_ = std::make_unique<OwnMemory>(table_->for_owner(), kDomain);
  }
  ~SegmentsTest() override { std::filesystem::remove_all(directory_); }

  std::shared_ptr<RegionTableView> foreign() const {
    return RegionTableView::open(directory_, table_->name()).value();
  }

  // A region of segments of those lengths, in an order of addresses that is not theirs.
  Result<Registration> add(const std::vector<std::size_t>& lengths, RegionKey key = kKey) {
    segments_.clear();
    std::size_t end = memory_.size();
    for (const std::size_t length : lengths) {
      end -= length + 1;
      segments_.push_back({memory_.data() + end, length});
    }
    RegionAttributes region;
    region.domain = kDomain;
    region.access = kBoth;
    region.base = reinterpret_cast<std::uint64_t>(segments_[0].base);
    region.length = segments_[0].length;
    region.start = kStart;
    region.key = key;
    region.rest = std::span(segments_).subspan(1);
    return table_->add(region);
  }
  std::byte& at(std::size_t offset) const {
    for (const LocalRange& segment : segments_) {
      if (offset < segment.length) return static_cast<std::byte*>(segment.base)[offset];
      offset -= segment.length;
    }
    ADD_FAILURE() << "no such byte";
    return *static_cast<std::byte*>(segments_[0].base);
  }
  static RemoteRange part(std::uint64_t offset, std::uint64_t length, RegionKey key = kKey) {
    return {kStart + offset, length, key};
  }
  AccessError check(const RemoteRange& range, std::size_t element = 1) {
    const AccessError error = guard_->check_and_pin(kDomain, kBoth, {&range, 1}, element).error;
    guard_->release();
    return error;
  }

  std::string directory_ = "/dev/shm/weft-test-XXXXXX";
  Bytes memory_ = Bytes(64 * 1024);
  std::vector<LocalRange> segments_;
  std::unique_ptr<RegionTable> table_;
  std::unique_ptr<AccessGuard> guard_;
  std::unique_ptr<OwnMemory> own_;
};

TEST_F(SegmentsTest, ARefusalOfNoRangesNamesNone) {
  const Grant grant = guard_->check_and_pin({kDomain, Access::kNone}, Access::kRemoteRead, {});
  ASSERT_EQ(grant.error, AccessError::kNotServed);
  const RefusedAccess refused = guard_->refused(grant.error, {});
  EXPECT_EQ(refused.ranges, 0u);
  EXPECT_EQ(refused.range.length, 0u);
}

TEST_F(SegmentsTest, EveryRangeOfARegionIsWhereItsSegmentsAre) {
  for (const std::vector<std::size_t>& lengths :
       {std::vector<std::size_t>{5}, {5, 1}, {1, 0, 4, 7}, {0, 3, 0}, {1, 2, 3, 4, 5, 6, 7, 8}}) {
    const auto registration = add(lengths);
    ASSERT_TRUE(registration.ok());
    const std::size_t whole = std::accumulate(lengths.begin(), lengths.end(), std::size_t{0});
    for (std::size_t begin = 0; begin < whole; ++begin) {
      for (std::size_t length = 1; begin + length <= whole; ++length) {
        const RemoteRange range = part(begin, length);
        const Grant grant = guard_->check_and_pin(kDomain, kBoth, {&range, 1});
        ASSERT_TRUE(grant.ok());
        std::size_t offset = begin;
        for (const LocalRange& place : grant.segments) {
          ASSERT_NE(place.length, 0U);
          for (std::size_t i = 0; i < place.length; ++i) {
            EXPECT_EQ(static_cast<std::byte*>(place.base) + i, &at(offset++));
          }
        }
        EXPECT_EQ(offset, begin + length);
      }
    }
    guard_->release();
    EXPECT_EQ(check(part(0, whole + 1)), AccessError::kPastEnd);
    EXPECT_EQ(check(part(whole, 1)), AccessError::kPastEnd);
    EXPECT_EQ(check(part(std::uint64_t(0) - 1, 2)), AccessError::kBeforeStart);
    ASSERT_TRUE(table_->remove(registration.value()).ok());
    EXPECT_EQ(check(part(0, 1)), AccessError::kUnknownKey);
  }
}

TEST_F(SegmentsTest, AnOperationOnTheMostRangesReachesTheMostSegmentsOfEach) {
  std::vector<RemoteRange> ranges;
  for (std::uint64_t key = 0; key < kHazards; ++key) {
    ASSERT_TRUE(add(std::vector<std::size_t>(kMaxSegments, 3), RegionKey{key}).ok());
    ranges.push_back(part(1, 3 * kMaxSegments - 2, RegionKey{key}));
  }
  const Grant grant = guard_->check_and_pin(kDomain, kBoth, ranges);
  ASSERT_TRUE(grant.ok());
  ASSERT_EQ(grant.segments.size(), std::size_t{kHazards} * kMaxSegments);
  EXPECT_EQ(total_length(grant.segments), ranges.size() * ranges[0].length);
}

TEST_F(SegmentsTest, ARegionOfTooManySegmentsOrOfOneThatWrapsIsRefused) {
  EXPECT_EQ(add(std::vector<std::size_t>(kMaxSegments + 1, 1)).error().code, EINVAL);
  LocalRange wraps{memory_.data(), ~std::size_t{0}};
  RegionAttributes region;
  region.domain = kDomain;
  region.key = kKey;
  region.base = reinterpret_cast<std::uint64_t>(memory_.data());
  region.length = 8;
  region.rest = {&wraps, 1};
  EXPECT_EQ(table_->add(region).error().code, EINVAL);
  wraps.length = 8;
  region.start = ~std::uint64_t{0} - 14;  // the 16th byte would be at 0
  EXPECT_EQ(table_->add(region).error().code, EINVAL);
  region.start -= 1;
  EXPECT_TRUE(table_->add(region).ok());
}

TEST_F(SegmentsTest, SlotsOfAllSegmentsAreUsedAgain) {
  const auto first = add({8, 8, 8});
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(table_->remove(first.value()).ok());
  for (std::uint64_t key = 0; key < 3; ++key) {
    const auto again = add({8}, RegionKey{key});
    ASSERT_TRUE(again.ok());
    EXPECT_LT(again.value().slot, 3U);
  }
  EXPECT_EQ(add({8}, RegionKey{3}).value().slot, 3U);
}

TEST_F(SegmentsTest, TheOwnerWritesAndReadsAcrossThem) {
  ASSERT_TRUE(add({100, 1, 50}).ok());
  Bytes bytes(60);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i + 1);
  ASSERT_TRUE(own_->write(part(80, bytes.size()), bytes).ok());
  for (std::size_t i = 0; i < bytes.size(); ++i) EXPECT_EQ(at(80 + i), bytes[i]) << i;
  EXPECT_EQ(at(79), std::byte{});
  EXPECT_EQ(at(140), std::byte{});
  Bytes back(bytes.size());
  ASSERT_TRUE(own_->read(part(80, back.size()), back).ok());
  EXPECT_EQ(back, bytes);
  ASSERT_TRUE(own_->check(Access::kRemoteWrite, part(90, 20)).ok());
  ASSERT_TRUE(own_->write(part(98, 4), std::span(bytes).first(4)).ok());
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(at(98 + i), bytes[i]) << i;
}

struct Sums {
  static constexpr AtomicAction kAdd{AtomicForm::kFetch, AtomicOp::kSum, AtomicType::kUint32};
};

TEST_F(SegmentsTest, AnAtomicOperationChangesElementsInSeveral) {
  ASSERT_TRUE(add({8, 4, 8}).ok());
  const std::uint32_t initial[] = {1, 2, 3, 4, 5};
  for (std::size_t i = 0; i < sizeof initial; ++i) {
    at(i) = reinterpret_cast<const std::byte*>(initial)[i];
  }
  const std::uint32_t added[] = {10, 20, 30, 40};
  std::uint32_t fetched[4] = {};
  const auto* operands = reinterpret_cast<const std::byte*>(added);
  auto* found = reinterpret_cast<std::byte*>(fetched);
  EXPECT_EQ(own_->change(Sums::kAdd, part(4, 16), operands, found, LockWait::kBrief).error, EBUSY)
      << "an initiator does it by itself then";
  EXPECT_EQ(at(4), std::byte{2});
  ASSERT_TRUE(own_->change(Sums::kAdd, part(4, 16), operands, found, LockWait::kUsual).ok());
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(fetched[i], i + 2);
    EXPECT_EQ(at(4 + 4 * i), static_cast<std::byte>(i + 2 + added[i])) << i;
  }
}

TEST_F(SegmentsTest, AnAtomicOperationOnAnElementInTwoIsRefusedAndChangesNothing) {
  ASSERT_TRUE(add({8, 2, 8}).ok());
  EXPECT_EQ(check(part(0, 12), 4), AccessError::kSplitElement);
  EXPECT_EQ(check(part(0, 8), 4), AccessError::kNone);
  EXPECT_EQ(check(part(8, 4), 4), AccessError::kSplitElement);
  EXPECT_EQ(check(part(8, 4), 2), AccessError::kNone);
  const std::uint32_t added[] = {1, 1, 1};
  const Accessed done =
      own_->change(Sums::kAdd, part(0, 12), reinterpret_cast<const std::byte*>(added), nullptr,
                   LockWait::kUsual);
  EXPECT_EQ(done.refusal, AccessError::kSplitElement);
  EXPECT_EQ(at(0), std::byte{});
}

}  // namespace
}  // namespace weft::memory
