// SPDX-License-Identifier: BSD-2-Clause
// Is a local buffer copied only as its local key allows?
#include "memory/local_access.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cstring>
#include <memory>

#include "memory/region_table.h"
#include "os/user_memory.h"

namespace weft::memory {
namespace {

constexpr DomainId kDomain{3};
constexpr DomainId kOtherDomain{4};

class LocalAccessTest : public testing::Test {
 protected:
  LocalAccessTest() {
    os::handle_user_faults();
    table_ = RegionTable::create("").value();
    view_ = table_->for_owner();
    reader_ = AccessGuard::attach(view_).value();
    writer_ = AccessGuard::attach(view_).value();
    access_ = std::make_unique<LocalAccess>(*reader_, *writer_, kDomain);
    for (std::size_t i = 0; i < buffer_.size(); ++i) buffer_[i] = static_cast<std::byte>(i);
  }

  std::uint32_t add(void* base, std::size_t length, Access rights, DomainId domain = kDomain) {
    RegionAttributes attributes;
    attributes.domain = domain;
    attributes.access = rights;
    attributes.base = attributes.start = reinterpret_cast<std::uint64_t>(base);
    attributes.length = length;
    attributes.choose_key = attributes.short_key = true;
    last_ = table_->add(attributes).value();
    return static_cast<std::uint32_t>(last_.key.v);
  }
  work::Segment part(std::size_t offset, std::size_t length, std::uint32_t key) {
    return {buffer_.data() + offset, length, key};
  }
  bool gathers(std::span<const work::Segment> segments, std::size_t offset, std::size_t length) {
    return access_->gather(segments, offset, {out_.data(), length});
  }
  bool scatters(std::span<const work::Segment> segments, std::size_t length) {
    return access_->scatter(segments, 0, {out_.data(), length});
  }

  std::unique_ptr<RegionTable> table_;
  std::shared_ptr<RegionTableView> view_;
  std::unique_ptr<AccessGuard> reader_;
  std::unique_ptr<AccessGuard> writer_;
  std::unique_ptr<LocalAccess> access_;
  std::array<std::byte, 256> buffer_{};
  std::array<std::byte, 256> out_{};
  Registration last_;
};

TEST_F(LocalAccessTest, BytesOfSeveralEntriesComeInTheirOrder) {
  const std::uint32_t first = add(buffer_.data(), 100, kLocalRead);
  const std::uint32_t second = add(buffer_.data() + 200, 56, kLocalRead);
  const work::Segment list[] = {part(90, 10, first), part(200, 20, second)};
  ASSERT_TRUE(gathers(list, 5, 15));
  EXPECT_EQ(std::memcmp(out_.data(), buffer_.data() + 95, 5), 0);
  EXPECT_EQ(std::memcmp(out_.data() + 5, buffer_.data() + 200, 10), 0);
}

TEST_F(LocalAccessTest, AnUnknownKeyIsRefused) {
  add(buffer_.data(), 100, kLocalRead | kLocalWrite);
  const work::Segment list[] = {part(0, 10, kInvalidLocalKey)};
  EXPECT_FALSE(gathers(list, 0, 10));
  EXPECT_EQ(access_->gather_error(), AccessError::kUnknownKey);
  EXPECT_FALSE(scatters(list, 10));
  EXPECT_EQ(access_->scatter_error(), AccessError::kUnknownKey);
}

TEST_F(LocalAccessTest, AKeyOfAnotherDomainIsUnknown) {
  const std::uint32_t key = add(buffer_.data(), 100, kLocalRead, kOtherDomain);
  const work::Segment list[] = {part(0, 10, key)};
  EXPECT_FALSE(gathers(list, 0, 10));
  EXPECT_EQ(access_->gather_error(), AccessError::kUnknownKey);
}

TEST_F(LocalAccessTest, AnEntryPastTheEndOfItsRegionIsRefused) {
  const std::uint32_t key = add(buffer_.data(), 100, kLocalRead);
  const work::Segment list[] = {part(95, 6, key)};
  EXPECT_FALSE(gathers(list, 0, 6));
  EXPECT_EQ(access_->gather_error(), AccessError::kPastEnd);
  EXPECT_TRUE(gathers(list, 0, 5)) << "only bytes that are copied are checked";
}

TEST_F(LocalAccessTest, NothingIsWrittenWithoutTheRight) {
  const std::uint32_t key = add(buffer_.data(), 100, kLocalRead);
  const work::Segment list[] = {part(7, 1, key)};
  EXPECT_FALSE(scatters(list, 1));
  EXPECT_EQ(access_->scatter_error(), AccessError::kNoRight);
  EXPECT_EQ(buffer_[7], std::byte{7});
}

TEST_F(LocalAccessTest, AKeyIsCheckedAgainAtEachCopy) {
  const std::uint32_t key = add(buffer_.data(), 100, kLocalRead);
  const work::Segment list[] = {part(0, 10, key)};
  ASSERT_TRUE(gathers(list, 0, 10));
  ASSERT_TRUE(table_->remove(last_).ok());
  EXPECT_FALSE(gathers(list, 0, 10));
}

TEST_F(LocalAccessTest, MemoryThatHasGoneIsNoRefusal) {
  void* const page = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const std::uint32_t key = add(page, 4096, kLocalRead);
  ::munmap(page, 4096);
  const work::Segment list[] = {{page, 8, key}};
  EXPECT_FALSE(gathers(list, 0, 8));
  EXPECT_EQ(access_->gather_error(), AccessError::kNone);
}

TEST_F(LocalAccessTest, FewerBytesThanWantedAreAnError) {
  const std::uint32_t key = add(buffer_.data(), 100, kLocalRead | kLocalWrite);
  const work::Segment list[] = {part(0, 10, key)};
  EXPECT_FALSE(gathers(list, 0, 11));
  EXPECT_FALSE(scatters(list, 11));
}

TEST_F(LocalAccessTest, ARegionCanChangeUnderItsKey) {
  const std::uint32_t key = add(buffer_.data(), 100, kLocalRead);
  RegionAttributes other;
  other.domain = kOtherDomain;
  other.access = kLocalRead | kLocalWrite;
  other.base = other.start = reinterpret_cast<std::uint64_t>(buffer_.data() + 100);
  other.length = 50;
  ASSERT_TRUE(table_->replace(last_, other).ok());
  const work::Segment before[] = {part(0, 10, key)};
  const work::Segment after[] = {part(100, 10, key)};
  EXPECT_FALSE(gathers(before, 0, 10));
  EXPECT_FALSE(gathers(after, 0, 10)) << "it is in another domain now";
  LocalAccess there(*reader_, *writer_, kOtherDomain);
  EXPECT_TRUE(there.gather(after, 0, {out_.data(), 10}));
  EXPECT_TRUE(there.scatter(after, 0, {out_.data(), 10}));
  EXPECT_TRUE(table_->remove(last_).ok());
  EXPECT_FALSE(there.gather(after, 0, {out_.data(), 10}));
}

TEST_F(LocalAccessTest, NoAccessIsAllowedWhileARegionIsDisabled) {
  const std::uint32_t key = add(buffer_.data(), 100, kLocalRead);
  const work::Segment list[] = {part(0, 10, key)};
  const auto while_disabled = [&](RegionParts&) {
    EXPECT_FALSE(gathers(list, 0, 10));
    EXPECT_EQ(access_->gather_error(), AccessError::kDisabled);
  };
  EXPECT_TRUE(table_->refresh(last_, while_disabled).ok());
  EXPECT_TRUE(gathers(list, 0, 10));
}

TEST_F(LocalAccessTest, ABoundRegionIsAccessedThroughItsEndpointAlone) {
  RegionAttributes bound;
  bound.domain = kDomain;
  bound.access = Access::kRemoteRead;
  bound.base = bound.start = reinterpret_cast<std::uint64_t>(buffer_.data());
  bound.length = 100;
  bound.choose_key = true;
  bound.binding = 7;
  const RemoteRange range{bound.start, 10, table_->add(bound).value().key};
  const auto error_at = [&](std::uint32_t endpoint) {
    return reader_
        ->check_and_pin({kDomain, Access::kRemoteRead, endpoint}, Access::kRemoteRead, {&range, 1})
        .error;
  };
  EXPECT_EQ(error_at(7), AccessError::kNone);
  EXPECT_EQ(error_at(8), AccessError::kOtherBinding);
  EXPECT_EQ(error_at(0), AccessError::kOtherBinding);
}

}  // namespace
}  // namespace weft::memory
