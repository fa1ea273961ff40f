// SPDX-License-Identifier: BSD-2-Clause
// Is every access outside of its region refused, for the right reason and at every boundary?
#include "memory/access_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "memory/region_table.h"
#include "os/shared_file.h"

namespace weft::memory {
namespace {

constexpr DomainId kDomain{1};
constexpr std::uint64_t kBase = 0x7f0000000000;
constexpr std::uint64_t kLength = 4096;
constexpr std::uint64_t kHighest = ~std::uint64_t{0};

class TableUserTest : public testing::Test {
 protected:
  TableUserTest() {
    EXPECT_NE(::mkdtemp(directory_.data()), nullptr);
    table_ = std::move(RegionTable::create(directory_)).value();
    foreign_ = RegionTableView::open(directory_, table_->name()).value();
    user_ = std::move(AccessGuard::attach(foreign_)).value();
  }
  ~TableUserTest() override { std::filesystem::remove_all(directory_); }

  // Registers kLength bytes at kBase that peers call `start`.
  void add(std::uint64_t key, std::uint64_t start = 0, Access access = Access::kRemoteRead,
           std::uint64_t length = kLength) {
    const auto added = table_->add({.domain = kDomain,
                                    .access = access,
                                    .base = kBase,
                                    .length = length,
                                    .start = start,
                                    .choose_key = false,
                                    .key = RegionKey{key}});
    ASSERT_TRUE(added.ok()) << added.error().message;
    last_added_ = added.value();
  }

  AccessError check_and_pin(std::span<const RemoteRange> ranges,
                            Access need = Access::kRemoteRead) {
    const Grant grant = user_->check_and_pin(kDomain, need, ranges);
    std::copy(grant.segments.begin(), grant.segments.end(), out_.begin());
    culprit_ = grant.culprit;
    user_->release();
    return grant.error;
  }
  AccessError check_and_pin(std::uint64_t address, std::uint64_t length,
                            Access need = Access::kRemoteRead) {
    const RemoteRange range{address, length, RegionKey{1}};
    return check_and_pin({&range, 1}, need);
  }
  std::uint64_t address(std::size_t i) const {
    return reinterpret_cast<std::uint64_t>(out_[i].base);
  }

  int error_of_open(const std::string& name) const {
    const auto table = RegionTableView::open(directory_, name);
    return table.ok() ? 0 : table.error().code;
  }

  std::string directory_ = "/dev/shm/weft-test-XXXXXX";
  std::unique_ptr<RegionTable> table_;
  std::shared_ptr<RegionTableView> foreign_;
  std::unique_ptr<AccessGuard> user_;
  std::array<LocalRange, kHazards + 1> out_{};
  std::size_t culprit_ = 99;
  Registration last_added_;
};

TEST_F(TableUserTest, AnAccessInsideIsGrantedAtTheOwnersAddress) {
  add(1);
  EXPECT_EQ(check_and_pin(0, kLength), AccessError::kNone);
  EXPECT_EQ(address(0), kBase);
  EXPECT_EQ(out_[0].length, kLength);
  EXPECT_EQ(check_and_pin(kLength - 1, 1), AccessError::kNone);
  EXPECT_EQ(address(0), kBase + kLength - 1);
}

TEST_F(TableUserTest, AnAccessThatEndsOneBytePastTheEndIsRefused) {
  add(1);
  EXPECT_EQ(check_and_pin(0, kLength + 1), AccessError::kPastEnd);
  EXPECT_EQ(check_and_pin(1, kLength), AccessError::kPastEnd);
  EXPECT_EQ(check_and_pin(kLength, 1), AccessError::kPastEnd);
  EXPECT_EQ(check_and_pin(kHighest, 1), AccessError::kPastEnd);
}

TEST_F(TableUserTest, AnAccessThatBeginsOneByteBeforeTheStartIsRefused) {
  add(1, kBase);
  EXPECT_EQ(check_and_pin(kBase, 1), AccessError::kNone);
  EXPECT_EQ(check_and_pin(kBase - 1, 1), AccessError::kBeforeStart);
  EXPECT_EQ(check_and_pin(kBase - 1, 2), AccessError::kBeforeStart);
  EXPECT_EQ(check_and_pin(0, kLength), AccessError::kBeforeStart);
}

TEST_F(TableUserTest, AnEmptyAccessIsGrantedAnywhere) {
  add(1, kBase, Access::kNone);
  for (const std::uint64_t at :
       {kBase, kBase + kLength, kBase + kLength + 1, kBase - 1, kHighest, std::uint64_t{0}}) {
    EXPECT_EQ(check_and_pin(at, 0), AccessError::kNone) << at;
  }
}

TEST_F(TableUserTest, AnAccessThatWrapsTheAddressSpaceIsRefused) {
  add(1, kHighest - kLength + 1);
  EXPECT_EQ(check_and_pin(kHighest - kLength + 1, kLength), AccessError::kNone);
  EXPECT_EQ(check_and_pin(kHighest, 1), AccessError::kNone);
  EXPECT_EQ(check_and_pin(kHighest, 2), AccessError::kWraps);
  EXPECT_EQ(check_and_pin(kHighest - kLength + 1, kLength + 1), AccessError::kWraps);
  EXPECT_EQ(check_and_pin(1, kHighest), AccessError::kBeforeStart);
  EXPECT_EQ(check_and_pin(2, kHighest), AccessError::kWraps);
}

TEST_F(TableUserTest, AnEmptyRegionGrantsTheEmptyAccessOnly) {
  add(1, 0, Access::kRemoteRead, 0);
  EXPECT_EQ(check_and_pin(0, 0), AccessError::kNone);
  EXPECT_EQ(check_and_pin(0, 1), AccessError::kPastEnd);
}

TEST_F(TableUserTest, EveryMissingRightIsRefused) {
  add(1, 0, Access::kRemoteRead);
  add(2, 0, Access::kRemoteWrite);
  add(3, 0, Access::kNone);
  add(4, 0, Access::kSend | Access::kReceive | Access::kRead | Access::kWrite);
  for (const std::uint64_t key : {1, 2, 3, 4}) {
    const RemoteRange range{0, 1, RegionKey{key}};
    EXPECT_EQ(check_and_pin({&range, 1}, Access::kRemoteRead),
              key == 1 ? AccessError::kNone : AccessError::kNoRight)
        << key;
    EXPECT_EQ(check_and_pin({&range, 1}, Access::kRemoteWrite),
              key == 2 ? AccessError::kNone : AccessError::kNoRight)
        << key;
  }
}

TEST_F(TableUserTest, AnUnknownKeyIsRefusedForAnyByte) {
  add(2);
  EXPECT_EQ(check_and_pin(0, 1), AccessError::kUnknownKey);
  EXPECT_EQ(check_and_pin(0, 0), AccessError::kNone);
}

TEST_F(TableUserTest, UpToEightRangesAreGrantedTogether) {
  std::array<RemoteRange, kHazards> ranges{};
  for (std::size_t i = 0; i < kHazards; ++i) {
    add(i);
    ranges[i] = {i, i + 1, RegionKey{i}};
  }
  for (std::size_t count = 0; count <= kHazards; ++count) {
    EXPECT_EQ(check_and_pin({ranges.data(), count}), AccessError::kNone) << count;
  }
  for (std::size_t i = 0; i < kHazards; ++i) {
    EXPECT_EQ(address(i), kBase + i);
    EXPECT_EQ(out_[i].length, i + 1);
  }
}

TEST_F(TableUserTest, TheOwnerIsToldOfTheRegionsAndAccessesThatItAskedFor) {
  const Access both = Access::kRemoteRead | Access::kRemoteWrite;
  add(1, 0, both);
  table_->report_accesses(last_added_, Access::kRemoteWrite);
  add(2, 0, both);
  add(3, 0, both);
  table_->report_accesses(last_added_, both);
  const RemoteRange ranges[] = {
      {0, 1, RegionKey{1}}, {0, 1, RegionKey{2}}, {0, 1, RegionKey{3}}, {8, 1, RegionKey{1}}};
  const auto told = [&](Access need) {
    EXPECT_EQ(check_and_pin(ranges, need), AccessError::kNone);
    const auto keys = user_->keys_to_report();
    return std::vector<RegionKey>(keys.begin(), keys.end());
  };
  EXPECT_EQ(told(Access::kRemoteWrite), (std::vector{RegionKey{1}, RegionKey{3}}));
  EXPECT_EQ(told(Access::kRemoteRead), std::vector{RegionKey{3}});
  EXPECT_EQ(told(both), (std::vector{RegionKey{1}, RegionKey{3}}));
  EXPECT_EQ(check_and_pin({&ranges[1], 1}, both), AccessError::kNone);
  EXPECT_TRUE(user_->keys_to_report().empty());
}

TEST_F(TableUserTest, OneRangeMoreThanPossibleIsRefused) {
  add(1);
  std::array<RemoteRange, kHazards + 1> ranges{};
  ranges.fill({0, 1, RegionKey{1}});
  out_[kHazards] = {};
  EXPECT_EQ(check_and_pin(ranges), AccessError::kTooMany);
  EXPECT_EQ(culprit_, kHazards);
  EXPECT_EQ(out_[kHazards].base, nullptr);
}

TEST_F(TableUserTest, TheCulpritIsTheFirstRangeThatIsRefused) {
  add(1);
  for (std::size_t bad = 0; bad < kHazards; ++bad) {
    std::array<RemoteRange, kHazards> ranges{};
    ranges.fill({0, 1, RegionKey{1}});
    for (std::size_t i = bad; i < kHazards; ++i) ranges[i].length = kLength + 1;
    EXPECT_EQ(check_and_pin(ranges), AccessError::kPastEnd);
    EXPECT_EQ(culprit_, bad);
  }
}

TEST_F(TableUserTest, EveryRefusalIsExplainedInWordsOfItsOwn) {
  std::set<std::string> words;
  constexpr int kLast = static_cast<int>(kLastAccessError);
  for (int i = 0; i <= kLast; ++i) words.insert(describe(static_cast<AccessError>(i)));
  EXPECT_EQ(words.size(), static_cast<std::size_t>(kLast + 1));
  EXPECT_STREQ(describe(static_cast<AccessError>(99)), "unknown refusal");
}

TEST_F(TableUserTest, AnExplanationNamesTheKeyTheAccessAndHowFarItMisses) {
  add(0x1a, kBase);
  const auto explained = [&](Access need, RemoteRange range) {
    return user_->explain(user_->check_and_pin(kDomain, need, {&range, 1}).error, need, range);
  };
  EXPECT_EQ(explained(Access::kRemoteRead, {kBase + 4000, 100, RegionKey{0x1a}}),
            "rkey 0x1a: read of 100 bytes at 0x7f0000000fa0 ends 4 bytes past the region "
            "(region: 4096 bytes from 0x7f0000000000)");
  EXPECT_EQ(explained(Access::kRemoteRead, {kBase - 16, 8, RegionKey{0x1a}}),
            "rkey 0x1a: read of 8 bytes at 0x7efffffffff0 begins 16 bytes before the region "
            "(region: 4096 bytes from 0x7f0000000000)");
  EXPECT_THAT(explained(Access::kRemoteWrite, {kBase, 8, RegionKey{0x1a}}),
              testing::HasSubstr("write of 8 bytes at 0x7f0000000000: the region was not"));
  EXPECT_THAT(
      explained(Access::kRemoteRead, {kBase, 8, RegionKey{0x1b}}),
      testing::AllOf(testing::HasSubstr("rkey 0x1b"), testing::Not(testing::HasSubstr("region:"))));
}

TEST_F(TableUserTest, EvenTheLongestExplanationIsWhole) {
  add(kHighest, kHighest - kLength + 1);
  const RemoteRange range{kHighest, kHighest, RegionKey{kHighest}};
  ASSERT_EQ(check_and_pin({&range, 1}), AccessError::kWraps);
  EXPECT_TRUE(user_->explain(AccessError::kWraps, Access::kRemoteRead, range).ends_with(")"));
}

TEST_F(TableUserTest, ANameThatIsNoFileNameIsRefused) {
  EXPECT_EQ(error_of_open(""), EPROTO);
  EXPECT_EQ(error_of_open("../" + table_->name()), EPROTO);
  EXPECT_EQ(error_of_open("table-0"), ENOENT);
}

TEST_F(TableUserTest, AFileThatIsNoTableIsRefused) {
  std::ofstream(directory_ + "/short") << "short";
  EXPECT_NE(error_of_open("short"), 0);
  const auto file = os::SharedFile::create(directory_ + "/zeros", kTableSize);
  ASSERT_TRUE(file.ok() && file.value()->publish().ok());
  EXPECT_EQ(error_of_open("zeros"), EPROTO);
}

TEST_F(TableUserTest, ATableOfAnotherVersionIsRefused) {
  const auto file = os::SharedFile::open(directory_ + "/" + table_->name());
  const auto memory = file.value()->map(0, 4096);
  memory.value().at<TableHeader>(0)->version = kTableVersion + 1;
  EXPECT_EQ(error_of_open(table_->name()), EPROTO);
}

TEST_F(TableUserTest, WhenEveryRecordIsTakenAttachingFailsUntilOneIsFree) {
  const auto file = os::SharedFile::open(directory_ + "/" + table_->name());
  for (std::uint32_t i = 1; i < kMaxUsers; ++i) ASSERT_TRUE(file.value()->claim(kUserLock + i));
  const auto refused = AccessGuard::attach(foreign_);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, EUSERS);
  file.value()->disclaim(kUserLock + kMaxUsers - 1);
  EXPECT_TRUE(AccessGuard::attach(foreign_).ok());
}

TEST_F(TableUserTest, RecordsTakeMemoryWhenTheyAreUsed) {
  constexpr std::uint32_t kTaken = 4000;
  struct stat before {};
  ASSERT_EQ(::stat((directory_ + "/" + table_->name()).c_str(), &before), 0);
  const auto file = os::SharedFile::open(directory_ + "/" + table_->name());
  for (std::uint32_t i = 1; i < kTaken; ++i) ASSERT_TRUE(file.value()->claim(kUserLock + i));
  ASSERT_TRUE(AccessGuard::attach(foreign_).ok());
  struct stat after {};
  ASSERT_EQ(::stat((directory_ + "/" + table_->name()).c_str(), &after), 0);
  const std::uint64_t grown = (after.st_blocks - before.st_blocks) * 512;
  EXPECT_GT(grown, (kTaken - 64) * sizeof(UserRecord));
  EXPECT_LT(grown, (kTaken + 64) * sizeof(UserRecord));
}

TEST_F(TableUserTest, WithoutMemoryForARecordAttachingFailsUntilThereIsSome) {
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &usual), 0);
  const rlimit none{kUsersAt, usual.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
  const auto refused = AccessGuard::attach(foreign_);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &usual), 0);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, EFBIG);
  const auto file = os::SharedFile::open(directory_ + "/" + table_->name());
  EXPECT_TRUE(file.value()->claim(kUserLock + 1)) << "the record was given back";
  EXPECT_TRUE(AccessGuard::attach(foreign_).ok());
}

// Everything that a hostile owner can write. Nothing is asked of the answers but that they come.
class HostileTable : public TableUserTest {
 protected:
  HostileTable() {
    file_ = os::SharedFile::open(directory_ + "/" + table_->name()).value();
    EXPECT_TRUE(file_->reserve(kIndexAt, 2 * (std::uint64_t{4} << kMaxIndexBits)).ok());
    memory_ = std::move(file_->map(0, kTableSize)).value();
  }

  std::uint32_t* index(IndexWord word) const { return memory_.at<std::uint32_t>(word.at()); }

  void look_up(int times) {
    for (int i = 0; i < times; ++i) {
      std::array<RemoteRange, kHazards> ranges{};
      for (RemoteRange& range : ranges) range = {random_(), random_(), RegionKey{random_() % 64}};
      const AccessError refusal = check_and_pin({ranges.data(), 1 + random_() % kHazards});
      EXPECT_STRNE(describe(refusal), "unknown refusal");
    }
  }

  std::mt19937_64 random_{1};
  os::SharedFilePtr file_;
  os::Mapping memory_;
};

TEST_F(HostileTable, RandomIndexEntriesAreSurvived) {
  for (int round = 0; round < 200; ++round) {
    for (std::uint64_t i = 0; i < IndexWord{}.entries(); ++i) {
      const auto wild = static_cast<std::uint32_t>(random_());
      index({})[i] = wild % 2 == 0 ? wild : kMaxRegions - 1 + wild % 4;  // around the limit
    }
    look_up(10);
  }
}

TEST_F(HostileTable, RandomSlotsAreSurvived) {
  auto* slots = memory_.at<RegionSlot>(kSlotsAt);
  for (int round = 0; round < 100; ++round) {
    for (std::uint64_t i = 0; i < IndexWord{}.entries(); ++i) {
      const std::uint64_t number = i % 256;
      index({})[i] = static_cast<std::uint32_t>(number + 1);
      slots[number].sequence = static_cast<std::uint32_t>(random_());
      slots[number].access = static_cast<std::uint32_t>(random_());
      slots[number].key = random_() % 64;
      slots[number].domain = random_() % 4;
      slots[number].base = random_();
      slots[number].length = random_();
      slots[number].start = random_();
    }
    look_up(50);
  }
}

TEST_F(HostileTable, EveryIndexWordIsSurvived) {
  auto& word = memory_.at<TableHeader>(0)->index_word;
  for (std::uint32_t bits = 0; bits < 256; ++bits) {
    for (const std::uint32_t generation : {0U, 1U, 0xffffffU}) {
      word.store(generation << 8 | bits);
      look_up(4);
    }
  }
}

TEST_F(HostileTable, AnIndexWithoutAnEndIsSearchedOnceOnly) {
  const IndexWord largest{1, kMaxIndexBits};
  std::fill_n(index(largest), largest.entries(), kTombstone);
  memory_.at<TableHeader>(0)->index_word.store(largest.pack());
  EXPECT_EQ(check_and_pin(0, 1), AccessError::kUnknownKey);
}

TEST_F(HostileTable, RandomUserCountsAreSurvivedByUsersAndOwner) {
  auto& end = memory_.at<TableHeader>(0)->users_end;
  for (int i = 0; i < 50; ++i) {
    end.store(static_cast<std::uint32_t>(random_()));
    const auto another = AccessGuard::attach(foreign_);
    EXPECT_TRUE(another.ok());
    const auto added = table_->add({.domain = kDomain, .key = RegionKey{1}});
    ASSERT_TRUE(added.ok());
    EXPECT_TRUE(table_->remove(added.value()).ok());
  }
}

}  // namespace
}  // namespace weft::memory
