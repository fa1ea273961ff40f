// SPDX-License-Identifier: BSD-2-Clause
// Are regions in memory of devices accessed by their copier, and by their owner alone?
#include "memory/device_regions.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "memory/own_memory.h"
#include "memory/region_table.h"

namespace weft::memory {
namespace {

constexpr DomainId kDomain{1};
constexpr std::size_t kBytes = 8192;

// A device whose memory is no memory of the processor: addresses are offsets from kDeviceBase.
class DeviceOfTest final : public Copier {
 public:
  static constexpr std::uint64_t kDeviceBase = 0x7F00'0000'0000;

  int to_host(void* host, const MemoryPlace& place, std::span<const LocalRange> buffers,
              std::uint64_t offset, std::uint64_t length) override {
    return each(place, buffers, offset, length,
                [&](std::byte* at, std::size_t done, std::size_t part) {
                  std::memcpy(static_cast<std::byte*>(host) + done, at, part);
                });
  }
  int from_host(const MemoryPlace& place, std::span<const LocalRange> buffers, std::uint64_t offset,
                const void* host, std::uint64_t length) override {
    return each(place, buffers, offset, length,
                [&](std::byte* at, std::size_t done, std::size_t part) {
                  std::memcpy(at, static_cast<const std::byte*>(host) + done, part);
                });
  }

  std::array<std::byte, kBytes> bytes{};
  int error = 0;
  unsigned calls = 0;

 private:
  template <class Copy>
  int each(const MemoryPlace& place, std::span<const LocalRange> buffers, std::uint64_t offset,
           std::uint64_t length, Copy copy) {
    ++calls;
    EXPECT_EQ(place.device, 3U);
    if (error != 0) return error;
    std::size_t done = 0;
    for (const LocalRange& buffer : buffers) {
      const std::size_t skipped = std::min<std::uint64_t>(offset, buffer.length);
      const std::size_t part = std::min<std::uint64_t>(buffer.length - skipped, length - done);
      const auto at = reinterpret_cast<std::uint64_t>(buffer.base) + skipped - kDeviceBase;
      EXPECT_LE(at + part, kBytes);
      copy(bytes.data() + at, done, part);
      done += part;
      offset -= skipped;
    }
    return done == length ? 0 : EINVAL;
  }
};

class DeviceRegion : public testing::Test {
 protected:
  DeviceRegion() {
    EXPECT_NE(::mkdtemp(directory_.data()), nullptr);
    table_ = std::move(RegionTable::create(directory_.data())).value();
    const LocalRange rest{reinterpret_cast<void*>(DeviceOfTest::kDeviceBase + 5000), 1000};
    RegionAttributes wanted;
    wanted.domain = kDomain;
    wanted.access = Access::kRemoteRead | Access::kRemoteWrite;
    wanted.base = DeviceOfTest::kDeviceBase;
    wanted.length = 4000;
    wanted.key = RegionKey{1};
    wanted.rest = {&rest, 1};
    wanted.device = {&device_, {MemoryKind::kCuda, 3}};
    region_ = table_->add(wanted).value();
  }
  ~DeviceRegion() override { std::filesystem::remove_all(directory_.data()); }

  std::array<char, 32> directory_{"/tmp/weft-device-XXXXXX"};
  std::unique_ptr<RegionTable> table_;
  DeviceOfTest device_;
  Registration region_;
};

TEST_F(DeviceRegion, IsReadAndWrittenByItsCopierAcrossSegments) {
  OwnMemory memory(table_->for_owner(), kDomain);
  std::vector<std::byte> bytes(600, std::byte{7});
  ASSERT_TRUE(memory.write({3700, 600, RegionKey{1}}, bytes).ok());
  EXPECT_EQ(device_.bytes[3699], std::byte{0});
  EXPECT_EQ(device_.bytes[3700], std::byte{7});
  EXPECT_EQ(device_.bytes[3999], std::byte{7});
  EXPECT_EQ(device_.bytes[5000], std::byte{7});
  EXPECT_EQ(device_.bytes[5299], std::byte{7});
  EXPECT_EQ(device_.bytes[5300], std::byte{0});
  std::vector<std::byte> read(600);
  ASSERT_TRUE(memory.read({3700, 600, RegionKey{1}}, read).ok());
  EXPECT_EQ(read, bytes);
}

TEST_F(DeviceRegion, TakesFurtherPartsOfACheckedWrite) {
  OwnMemory memory(table_->for_owner(), kDomain);
  ASSERT_TRUE(memory.check(Access::kRemoteWrite, {100, 200, RegionKey{1}}).ok());
  const std::vector<std::byte> bytes(100, std::byte{9});
  ASSERT_TRUE(memory.write({200, 100, RegionKey{1}}, bytes).ok());
  EXPECT_EQ(device_.bytes[199], std::byte{0});
  EXPECT_EQ(device_.bytes[200], std::byte{9});
}

TEST_F(DeviceRegion, IsChangedByAtomicOperations) {
  OwnMemory memory(table_->for_owner(), kDomain);
  const AtomicAction add{AtomicForm::kFetch, AtomicOp::kSum, AtomicType::kUint64};
  const std::uint64_t operand = 5;
  std::uint64_t before = 1;
  device_.bytes[16] = std::byte{3};
  ASSERT_TRUE(memory
                  .change(add, {16, 8, RegionKey{1}}, reinterpret_cast<const std::byte*>(&operand),
                          reinterpret_cast<std::byte*>(&before), LockWait::kUsual)
                  .ok());
  EXPECT_EQ(before, 3U);
  EXPECT_EQ(device_.bytes[16], std::byte{8});
}

TEST_F(DeviceRegion, FailsWithTheErrorOfItsCopier) {
  OwnMemory memory(table_->for_owner(), kDomain);
  device_.error = EIO;
  std::vector<std::byte> bytes(8);
  EXPECT_EQ(memory.read({0, 8, RegionKey{1}}, bytes).error, EIO);
  EXPECT_EQ(memory.write({0, 8, RegionKey{1}}, bytes).error, EIO);
}

TEST_F(DeviceRegion, IsCheckedBeforeItsCopierIsAsked) {
  OwnMemory memory(table_->for_owner(), kDomain);
  std::vector<std::byte> bytes(8);
  EXPECT_EQ(memory.read({4996, 8, RegionKey{1}}, bytes).refusal, AccessError::kPastEnd);
  EXPECT_EQ(memory.read({0, 8, RegionKey{2}}, bytes).refusal, AccessError::kUnknownKey);
  EXPECT_EQ(device_.calls, 0U);
}

TEST_F(DeviceRegion, ServesNoOtherProcess) {
  const auto foreign = RegionTableView::open(directory_.data(), table_->name()).value();
  const auto guard = AccessGuard::attach(foreign).value();
  const RemoteRange range{0, 8, RegionKey{1}};
  EXPECT_EQ(guard->check_and_pin(kDomain, Access::kRemoteRead, {&range, 1}).error,
            AccessError::kNotServed);
}

TEST_F(DeviceRegion, LeavesItsSlotToMemoryOfTheHost) {
  ASSERT_TRUE(table_->remove(region_).ok());
  std::array<std::byte, 64> host{};
  RegionAttributes wanted;
  wanted.domain = kDomain;
  wanted.access = Access::kRemoteWrite;
  wanted.base = reinterpret_cast<std::uint64_t>(host.data());
  wanted.length = host.size();
  wanted.key = RegionKey{1};
  ASSERT_TRUE(table_->add(wanted).ok());
  OwnMemory memory(table_->for_owner(), kDomain);
  const std::vector<std::byte> bytes(8, std::byte{4});
  ASSERT_TRUE(memory.write({8, 8, RegionKey{1}}, bytes).ok());
  EXPECT_EQ(host[8], std::byte{4});
  EXPECT_EQ(device_.calls, 0U);
}

}  // namespace
}  // namespace weft::memory
