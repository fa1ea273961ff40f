// SPDX-License-Identifier: BSD-2-Clause
// Does Weft copy by the driver of each kind of device?
#include "hmem/drivers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <numeric>
#include <thread>
#include <vector>

#include "stand_in.h"

namespace weft::hmem {
namespace {

using devices::StandIn;

struct DriverCase {
  const char* name;
  MemoryKind kind;
  const char* library;
};

class Copies : public ::testing::TestWithParam<DriverCase> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(stand_in.is_there());
    ASSERT_TRUE(drivers.use(place).ok());
  }
  void TearDown() override {
    for (void* each : allocated) stand_in.free(each);
  }
  LocalRange allocate(std::size_t length, int device = 0) {
    allocated.push_back(stand_in.allocate(length, device));
    return {allocated.back(), length};
  }

  Drivers& drivers = Drivers::of_process();
  const MemoryPlace place{GetParam().kind, 0};
  const StandIn stand_in{GetParam().library};
  std::vector<void*> allocated;
};

TEST_P(Copies, ReachEveryPartOfEveryBuffer) {
  const LocalRange buffers[] = {allocate(5), allocate(0), allocate(7000), allocate(11)};
  const std::size_t total = 5 + 7000 + 11;
  std::vector<unsigned char> bytes(total);
  std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(1));
  ASSERT_EQ(drivers.from_host(place, buffers, 0, bytes.data(), total), 0);
  for (const std::size_t offset : {0, 3, 5, 4000, 7004, 7016}) {
    const std::size_t length = std::min<std::size_t>(total - offset, 3333);
    std::vector<unsigned char> read(length);
    ASSERT_EQ(drivers.to_host(read.data(), place, buffers, offset, length), 0) << offset;
    EXPECT_TRUE(std::equal(read.begin(), read.end(), bytes.begin() + static_cast<long>(offset)));
  }
  const unsigned char change[] = {0xAA, 0xBB, 0xCC};
  ASSERT_EQ(drivers.from_host(place, buffers, 4, change, 3), 0);
  EXPECT_EQ(std::to_integer<int>(*stand_in.bytes(static_cast<std::byte*>(buffers[0].base) + 4, 1)),
            0xAA);
  EXPECT_EQ(std::to_integer<int>(*stand_in.bytes(buffers[2].base, 1)), 0xBB);
}

TEST_P(Copies, BeyondTheBuffersAreRefused) {
  const LocalRange buffers[] = {allocate(8), allocate(8)};
  std::byte bytes[32] = {};
  EXPECT_EQ(drivers.to_host(bytes, place, buffers, 0, 17), EINVAL);
  EXPECT_EQ(drivers.from_host(place, buffers, 16, bytes, 1), EINVAL);
  EXPECT_EQ(drivers.from_host(place, buffers, 16, bytes, 0), 0);
}

TEST_P(Copies, EndWithTheErrorOfTheDriver) {
  const LocalRange buffers[] = {allocate(8), allocate(8)};
  std::byte bytes[16] = {};
  for (const int number : {1, 2}) {
    stand_in.fail(static_cast<std::uint64_t>(number));
    EXPECT_EQ(drivers.to_host(bytes, place, buffers, 0, 16), EIO) << number;
    stand_in.fail(static_cast<std::uint64_t>(number));
    EXPECT_EQ(drivers.from_host(place, buffers, 0, bytes, 16), EIO) << number;
  }
  stand_in.fail_no_more();
  EXPECT_EQ(drivers.to_host(bytes, place, buffers, 0, 16), 0);
}

TEST_P(Copies, AreMadeByAnyThread) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  const LocalRange buffer = allocate(4 * 4096);
  for (unsigned char number = 0; number < 4; ++number) {
    threads.emplace_back([&, number] {
      const LocalRange mine{static_cast<std::byte*>(buffer.base) + number * 4096, 4096};
      std::vector<unsigned char> bytes(4096, number);
      std::vector<unsigned char> read(4096);
      for (int i = 0; i < 100; ++i) {
        if (drivers.from_host(place, {&mine, 1}, 0, bytes.data(), bytes.size()) != 0) ++wrong;
        if (drivers.to_host(read.data(), place, {&mine, 1}, 0, read.size()) != 0) ++wrong;
        if (read != bytes) ++wrong;
      }
    });
  }
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST_P(Copies, FindTheDeviceOfAnAddress) {
  const LocalRange buffer = allocate(8192, GetParam().kind == MemoryKind::kRocr ? 0 : 1);
  const MemoryPlace found = drivers.find(static_cast<std::byte*>(buffer.base) + 8191);
  EXPECT_EQ(found.kind, GetParam().kind);
  EXPECT_EQ(found.device, GetParam().kind == MemoryKind::kRocr ? 0U : 1U);
  EXPECT_TRUE(drivers.find(&found).is_host());
  EXPECT_TRUE(drivers.find(nullptr).is_host());
}

INSTANTIATE_TEST_SUITE_P(Kinds, Copies,
                         ::testing::Values(DriverCase{"Cuda", MemoryKind::kCuda, "libcuda.so.1"},
                                           DriverCase{"Rocr", MemoryKind::kRocr,
                                                      "libhsa-runtime64.so.1"},
                                           DriverCase{"Ze", MemoryKind::kZe, "libze_loader.so.1"}),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(DriversOfDevices, HaveTheDevicesThatTheyName) {
  Drivers& drivers = Drivers::of_process();
  EXPECT_TRUE(drivers.use({MemoryKind::kSystem, 9}).ok());
  EXPECT_TRUE(drivers.use({MemoryKind::kCuda, 1}).ok());
  EXPECT_EQ(drivers.use({MemoryKind::kCuda, 2}).error().code, EINVAL);
  EXPECT_EQ(drivers.use({MemoryKind::kZe, 2}).error().code, EINVAL);
}

TEST(DriversOfDevices, CopyNoMemoryOfTheHost) {
  std::byte bytes[8] = {};
  const LocalRange buffer{bytes, sizeof bytes};
  EXPECT_EQ(Drivers::of_process().to_host(bytes, {}, {&buffer, 1}, 0, 8), ENOSYS);
  EXPECT_EQ(Drivers::of_process().from_host({}, {&buffer, 1}, 0, bytes, 8), ENOSYS);
}

// An address of CUDA belongs to a context, which Weft makes current for the copy.
TEST(DriversOfDevices, LeaveTheCurrentContextAlone) {
  const StandIn stand_in("libcuda.so.1");
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW);
  const auto push = reinterpret_cast<int (*)(void*)>(::dlsym(library, "cuCtxPushCurrent_v2"));
  const auto pop = reinterpret_cast<int (*)(void**)>(::dlsym(library, "cuCtxPopCurrent_v2"));
  const auto get = reinterpret_cast<int (*)(void**)>(::dlsym(library, "cuCtxGetCurrent"));
  ASSERT_TRUE(Drivers::of_process().use({MemoryKind::kCuda, 0}).ok());
  const LocalRange buffer{stand_in.allocate(16, 1), 16};
  std::byte bytes[16] = {};
  int own = 0;
  void* found = nullptr;
  ASSERT_EQ(push(&own), 0);
  EXPECT_EQ(Drivers::of_process().to_host(bytes, {MemoryKind::kCuda, 1}, {&buffer, 1}, 0, 16), 0);
  EXPECT_EQ(Drivers::of_process().from_host({MemoryKind::kCuda, 1}, {&buffer, 1}, 0, bytes, 16), 0);
  EXPECT_EQ(get(&found), 0);
  EXPECT_EQ(found, &own);
  EXPECT_EQ(pop(&found), 0);
  EXPECT_EQ(get(&found), 0);
  EXPECT_EQ(found, nullptr);
  stand_in.free(buffer.base);
}

}  // namespace
}  // namespace weft::hmem
