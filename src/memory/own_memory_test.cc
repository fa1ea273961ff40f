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
#include "os/all_or_nothing.h"

namespace weft::memory {
namespace {

constexpr DomainId kDomain{1};
constexpr std::size_t kPart = 1000;  // parts and pages do not coincide
constexpr std::size_t kParts = 64;
constexpr std::size_t kLength = kParts * kPart;
constexpr std::size_t kPage = 4096;

using Bytes = std::vector<std::byte>;

// The parameter: whether the process may use the processor's transactions. There is no way back
// from that, so the tests with them come first.
class OwnMemoryTest : public testing::TestWithParam<bool> {
 protected:
  OwnMemoryTest() {
    if (!GetParam()) os::forgo_transactions();
    EXPECT_NE(::mkdtemp(directory_.data()), nullptr);
    table_ = std::move(RegionTable::create(directory_)).value();
    const auto foreign = RegionTableView::open(directory_, table_->name()).value();
    memory_ = std::make_unique<OwnMemory>(foreign, kDomain);
    const auto added = table_->add({.domain = kDomain,
                                    .access = Access::kRemoteRead | Access::kRemoteWrite,
                                    .base = reinterpret_cast<std::uint64_t>(bytes_),
                                    .length = kLength,
                                    .start = 0,
                                    .choose_key = false,
                                    .key = RegionKey{1}});
    EXPECT_TRUE(added.ok());
    region_ = added.value();
  }
  ~OwnMemoryTest() override {
    ::munmap(bytes_, kLength);
    std::filesystem::remove_all(directory_);
  }

  static RemoteRange part(std::size_t number) { return {number * kPart, kPart, RegionKey{1}}; }
  static std::uint64_t behind(std::size_t number) { return kLength - (number + 1) * kPart; }
  Accessed write(std::size_t number) {
    const Bytes bytes(kPart, static_cast<std::byte>(number + 1));
    return memory_->write(part(number), bytes, behind(number));
  }
  Accessed read(std::size_t number, Bytes& out) {
    out.assign(kPart, std::byte{});
    return memory_->read(part(number), out, behind(number));
  }

  std::string directory_ = "/dev/shm/weft-own-memory-XXXXXX";
  std::byte* bytes_ = static_cast<std::byte*>(
      ::mmap(nullptr, kLength, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::unique_ptr<RegionTable> table_;
  std::unique_ptr<OwnMemory> memory_;
  Registration region_;
};

TEST_P(OwnMemoryTest, PartsOfALongAccessArriveWhereTheyBelong) {
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

TEST_P(OwnMemoryTest, WhatHasGoneIsAnErrorAndWhatIsLeftIsNot) {
  ::munmap(bytes_ + 8 * kPage, kLength - 8 * kPage);
  Bytes out;
  for (std::size_t i = 0; i < kParts; ++i) {
    const bool there = (i + 1) * kPart <= 8 * kPage;
    EXPECT_EQ(write(i).error, there ? 0 : EFAULT) << i;
    EXPECT_EQ(read(i, out).error, there ? 0 : EFAULT) << i;
  }
}

TEST_P(OwnMemoryTest, WhatGoesMeanwhileIsAnErrorOnceItIsForgotten) {
  Bytes out;
  ASSERT_TRUE(write(0).ok());
  ASSERT_TRUE(read(0, out).ok());
  memory_->forget(kLength);
  ::munmap(bytes_, kLength);
  EXPECT_EQ(write(1).error, EFAULT);
  EXPECT_EQ(read(1, out).error, EFAULT);
}

TEST_P(OwnMemoryTest, WhatMayOnlyBeReadIsNotWritten) {
  ASSERT_TRUE(write(0).ok());
  ::mprotect(bytes_, kLength, PROT_READ);
  memory_->forget(kLength);
  Bytes out;
  EXPECT_TRUE(read(0, out).ok());
  EXPECT_EQ(out, Bytes(kPart, std::byte{1}));
  EXPECT_EQ(write(0).error, EFAULT) << "though it is there to be read";
  EXPECT_EQ(bytes_[0], std::byte{1});
}

// A part is allowed by the table each time, whatever was asked of the kernel.
TEST_P(OwnMemoryTest, APartOfARegionThatIsClosedMeanwhileIsRefused) {
  ASSERT_TRUE(write(0).ok());
  ASSERT_TRUE(table_->remove(region_).ok());
  EXPECT_EQ(write(1).refusal, AccessError::kUnknownKey);
  EXPECT_EQ(bytes_[kPart], std::byte{});
}

INSTANTIATE_TEST_SUITE_P(By, OwnMemoryTest, testing::Values(true, false),
                         [](const auto& info) { return info.param ? "Transactions" : "Kernel"; });

}  // namespace
}  // namespace weft::memory
