// SPDX-License-Identifier: BSD-2-Clause
// Does a process survive what its program does to memory that peers access?
#include "memory/own_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "memory/region_table.h"
#include "os/user_memory.h"

namespace weft::memory {
namespace {

constexpr DomainId kDomain{1};
constexpr std::size_t kPart = 1000;  // parts and pages do not coincide
constexpr std::size_t kParts = 64;
constexpr std::size_t kLength = kParts * kPart;
constexpr std::size_t kPage = 4096;

using Bytes = std::vector<std::byte>;

class OwnMemoryTest : public testing::Test {
 protected:
  OwnMemoryTest() {
    os::handle_user_faults();
    EXPECT_NE(::mkdtemp(directory_.data()), nullptr);
    table_ = std::move(RegionTable::create(directory_)).value();
    const auto foreign = RegionTableView::open(directory_, table_->name()).value();
    memory_ = std::make_unique<OwnMemory>(foreign, kDomain);
    region_ = add(1, Access::kRemoteRead | Access::kRemoteWrite);
  }
  ~OwnMemoryTest() override {
    ::munmap(bytes_, kLength);
    std::filesystem::remove_all(directory_);
  }

  Registration add(std::uint64_t key, Access access) {
    return table_
        ->add({.domain = kDomain,
               .access = access,
               .base = reinterpret_cast<std::uint64_t>(bytes_),
               .length = kLength,
               .start = 0,
               .choose_key = false,
               .key = RegionKey{key}})
        .value();
  }
  static RemoteRange part(std::size_t number) { return {number * kPart, kPart, RegionKey{1}}; }
  Accessed write(std::size_t number) {
    const Bytes bytes(kPart, static_cast<std::byte>(number + 1));
    return memory_->write(part(number), bytes);
  }
  Accessed read(std::size_t number, Bytes& out) {
    out.assign(kPart, std::byte{});
    return memory_->read(part(number), out);
  }

  std::string directory_ = "/dev/shm/weft-own-memory-XXXXXX";
  std::byte* bytes_ = static_cast<std::byte*>(
      ::mmap(nullptr, kLength, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::unique_ptr<RegionTable> table_;
  std::unique_ptr<OwnMemory> memory_;
  Registration region_;
};

TEST_F(OwnMemoryTest, PartsOfALongAccessArriveWhereTheyBelong) {
  for (std::size_t i = 0; i < kParts; ++i) ASSERT_TRUE(write(i).ok()) << i;
  for (std::size_t i = 0; i < kLength; ++i) {
    ASSERT_EQ(bytes_[i], static_cast<std::byte>(i / kPart + 1)) << i;
  }
  Bytes out;
  for (std::size_t i = 0; i < kParts; ++i) {
    ASSERT_TRUE(read(i, out).ok()) << i;
    ASSERT_EQ(out, Bytes(kPart, static_cast<std::byte>(i + 1))) << i;
  }
}

TEST_F(OwnMemoryTest, UnmappedMemoryIsAnErrorAndTheRestIsNot) {
  ::munmap(bytes_ + 8 * kPage, kLength - 8 * kPage);
  Bytes out;
  for (std::size_t i = 0; i < kParts; ++i) {
    const bool there = (i + 1) * kPart <= 8 * kPage;
    EXPECT_EQ(write(i).error, there ? 0 : EFAULT) << i;
    EXPECT_EQ(read(i, out).error, there ? 0 : EFAULT) << i;
  }
}

TEST_F(OwnMemoryTest, MemoryUnmappedMeanwhileIsAnError) {
  Bytes out;
  ASSERT_TRUE(write(0).ok());
  ASSERT_TRUE(read(0, out).ok());
  // The pages go, but their addresses stay taken: the runtime of a sanitizer maps memory of its own
  // where it finds a gap, and does so while it handles the first fault.
  const void* const gone =
      ::mmap(bytes_, kLength, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  ASSERT_EQ(gone, bytes_);
  EXPECT_EQ(write(1).error, EFAULT);
  EXPECT_EQ(read(1, out).error, EFAULT);
}

TEST_F(OwnMemoryTest, ReadOnlyMemoryIsNotWritten) {
  ASSERT_TRUE(write(0).ok());
  ::mprotect(bytes_, kLength, PROT_READ);
  Bytes out;
  EXPECT_TRUE(read(0, out).ok());
  EXPECT_EQ(out, Bytes(kPart, std::byte{1}));
  EXPECT_EQ(write(0).error, EFAULT) << "though it is there to be read";
  EXPECT_EQ(bytes_[0], std::byte{1});
}

// A part is allowed by the table each time, whatever was asked of the kernel.
TEST_F(OwnMemoryTest, APartOfARegionThatIsClosedMeanwhileIsRefused) {
  ASSERT_TRUE(write(0).ok());
  ASSERT_TRUE(table_->remove(region_).ok());
  EXPECT_EQ(write(1).refusal, AccessError::kUnknownKey);
  EXPECT_EQ(bytes_[kPart], std::byte{});
}

TEST_F(OwnMemoryTest, ACheckedWriteIsNotLookedUpAgain) {
  ASSERT_TRUE(memory_->check(Access::kRemoteWrite, {0, kLength, RegionKey{1}}).ok());
  // Only a second lookup could notice that.
  table_->report_accesses(region_, Access::kRemoteWrite);
  ASSERT_TRUE(write(0).ok());
  EXPECT_EQ(bytes_[0], std::byte{1});
  EXPECT_TRUE(memory_->keys_to_report().empty());
  ASSERT_TRUE(write(1).ok());
  EXPECT_EQ(memory_->keys_to_report().size(), 1U) << "the write behind it was looked up";
}

TEST_F(OwnMemoryTest, MemoryThatACheckDidNotAllowIsLookedUp) {
  const auto pinned = [&](Access need, const RemoteRange& range, bool atomic) {
    EXPECT_TRUE(memory_->check(need, range, atomic).ok());
    const bool closed = table_->remove(region_, 0).ok();
    EXPECT_FALSE(closed) << "the check has pinned it";
    return write(1).refusal == AccessError::kNone;
  };
  EXPECT_FALSE(pinned(Access::kRemoteWrite, {0, 2 * kPart - 1, RegionKey{1}}, false)) << "longer";
  EXPECT_TRUE(table_->remove(region_, 0).ok()) << "nothing is pinned behind a write";
}

TEST_F(OwnMemoryTest, ACheckOfAReadOrAnAtomicOperationAllowsNoWrite) {
  for (const bool atomic : {false, true}) {
    const Registration region = add(2, atomic ? Access::kRemoteWrite : Access::kRemoteRead);
    const Access need = atomic ? Access::kRemoteWrite : Access::kRemoteRead;
    ASSERT_TRUE(memory_->check(need, {0, kLength, RegionKey{2}}, atomic).ok());
    EXPECT_FALSE(table_->remove(region, 0).ok());
    const Bytes bytes(kPart);
    EXPECT_NE(memory_->write({0, kPart, RegionKey{2}}, bytes).refusal, AccessError::kNone);
    EXPECT_TRUE(table_->remove(region, 0).ok());
  }
}

TEST_F(OwnMemoryTest, ACheckedRegionIsPinnedUntilItIsReleased) {
  ASSERT_TRUE(memory_->check(Access::kRemoteWrite, part(0)).ok());
  EXPECT_FALSE(table_->remove(region_, 0).ok());
  memory_->release();
  EXPECT_TRUE(table_->remove(region_, 0).ok());
  EXPECT_EQ(write(0).refusal, AccessError::kUnknownKey);
}

TEST_F(OwnMemoryTest, AnAtomicOperationOnWhatHasGoneIsAnError) {
  constexpr AtomicAction kAdd{AtomicForm::kFetch, AtomicOp::kSum, AtomicType::kUint64};
  const std::uint64_t one = 1;
  std::uint64_t before = 99;
  const auto add_one = [&] {
    return memory_->change(kAdd, {8, 8, RegionKey{1}}, reinterpret_cast<const std::byte*>(&one),
                           reinterpret_cast<std::byte*>(&before), LockWait::kBrief);
  };
  EXPECT_TRUE(add_one().ok());
  EXPECT_TRUE(add_one().ok());
  EXPECT_EQ(before, 1U);
  ::mprotect(bytes_, kLength, PROT_READ);
  EXPECT_EQ(add_one().error, EFAULT);
  ::munmap(bytes_, kLength);
  EXPECT_EQ(add_one().error, EFAULT);
}

}  // namespace
}  // namespace weft::memory
