// SPDX-License-Identifier: BSD-2-Clause
// Is there one device per process, with a table and domains of its own?
#include "device/device.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <thread>
#include <vector>

#include "os/descriptor_count_support.h"
#include "os/own_process_support.h"

namespace weft::device {
namespace {

class DeviceTest : public testing::Test {
 protected:
  DeviceTest() { EXPECT_NE(::mkdtemp(base_.data()), nullptr); }
  ~DeviceTest() override { std::filesystem::remove_all(base_); }

  std::shared_ptr<Device> get() const {
    auto device = Device::get(base_);
    EXPECT_TRUE(device.ok()) << device.error().message;
    return device.value();
  }

  // Of one device: its region table and its statistics.
  static constexpr std::size_t kFiles = 2;
  std::size_t files() const {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(base_)) {
      count += entry.is_regular_file() ? 1 : 0;
    }
    return count;
  }

  std::string base_ = "/dev/shm/weft-test-XXXXXX";
};

TEST_F(DeviceTest, AllCallersInAProcessGetTheSameOne) {
  const auto device = get();
  EXPECT_EQ(get(), device);
  const auto elsewhere = Device::get("/dev/shm/never-made");
  ASSERT_TRUE(elsewhere.ok());
  EXPECT_EQ(elsewhere.value(), device);
}

TEST_F(DeviceTest, ThreadsThatAskAtOnceGetTheSameOne) {
  std::vector<std::shared_ptr<Device>> got(4);
  std::vector<std::thread> threads;
  for (auto& device : got) threads.emplace_back([&] { device = get(); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::set(got.begin(), got.end()).size(), 1U);
}

TEST_F(DeviceTest, ItIsClosedWithItsLastUserAndLeavesNoFile) {
  auto device = get();
  EXPECT_EQ(files(), kFiles);
  device.reset();
  EXPECT_EQ(files(), 0U);
  device = get();
  EXPECT_EQ(files(), kFiles);
}

TEST_F(DeviceTest, DomainNumbersAreNeverZeroAndNeverGivenTwice) {
  const auto device = get();
  std::set<DomainId> numbers{DomainId{0}};
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(numbers.insert(device->new_domain()).second);
}

TEST_F(DeviceTest, OpeningSweepsTheFilesOfDeadProcesses) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto device = get();
    ::_exit(files() == kFiles ? 0 : 1);  // as if it were killed: nothing is closed
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  ASSERT_EQ(files(), kFiles);
  const auto device = get();
  EXPECT_EQ(files(), kFiles);
  EXPECT_TRUE(std::filesystem::exists(device->directory() + "/" + device->regions().name()));
}

TEST_F(DeviceTest, ADirectoryThatOthersCanEnterIsRefused) {
  std::filesystem::permissions(base_, std::filesystem::perms(0755));
  const auto device = Device::get(base_);
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().code, EACCES);
  std::filesystem::permissions(base_, std::filesystem::perms(0700));
  EXPECT_TRUE(Device::get(base_).ok());
}

// The device has no file, and serves its process all the same.
void expect_a_nameless_device(const std::string& base, int reason) {
  const auto device = Device::get(base);
  ASSERT_TRUE(device.ok()) << device.error().message;
  EXPECT_EQ(device.value()->directory(), "");
  EXPECT_EQ(device.value()->no_directory().code, reason) << device.value()->no_directory().message;
  const memory::RegionAttributes attributes{
      .domain = DomainId{1}, .access = Access::kRemoteRead, .base = 4096, .length = 1, .key = {7}};
  EXPECT_TRUE(device.value()->regions().add(attributes).ok());
  const auto guard = memory::AccessGuard::attach(device.value()->regions_of_users());
  ASSERT_TRUE(guard.ok()) << guard.error().message;
  const RemoteRange range{0, 1, {7}};
  EXPECT_TRUE(guard.value()->check_and_pin(DomainId{1}, Access::kRemoteRead, {&range, 1}).ok());
  EXPECT_EQ(device.value()->stats().take("a port")->of(Stat::kRequests), 0U);
}

TEST(DeviceShortage, WithoutRoomForAFileThereIsANamelessDevice) {
  os::in_own_process("a small /dev/shm", [] {
    if (!os::enter_empty_directories()) return false;
    ::unsetenv("WEFT_RUNTIME_DIR");
    for (const char* base : {"", "/dev/shm/base"}) {
      const os::FullFileSystem full("/dev/shm");
      expect_a_nameless_device(base, ENOSPC);
    }
    EXPECT_NE(Device::get("").value()->directory(), "");
    return true;
  });
}

TEST(DeviceShortage, WithoutAnInodeForAFileThereIsANamelessDevice) {
  os::in_own_process("a small /dev/shm", [] {
    ::unsetenv("WEFT_RUNTIME_DIR");
    for (const char* inodes : {"nr_inodes=1", "nr_inodes=2", "nr_inodes=3"}) {
      if (!os::enter_empty_directories(inodes)) return false;
      expect_a_nameless_device("", ENOSPC);
    }
    return true;
  });
}

TEST_F(DeviceTest, UnderALimitOfFileSizesThereIsANamelessDevice) {
  os::in_own_process("a limit", [this] {
    const rlimit limit{100 * 1024, RLIM_INFINITY};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
    expect_a_nameless_device(base_, EFBIG);
    return true;
  });
}

TEST_F(DeviceTest, WithoutADescriptorThereIsNoneUntilThereIsOne) {
  {
    const os::NoDescriptors none;
    const auto device = Device::get(base_);
    ASSERT_FALSE(device.ok());
    EXPECT_EQ(device.error().code, EMFILE);
  }
  EXPECT_NE(get()->directory(), "");
}

TEST_F(DeviceTest, AForkedChildGetsADeviceOfItsOwn) {
  const auto device = get();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(get()->regions().name() != device->regions().name() ? 0 : 1);
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << "the child would write into its parent's region table";
}

}  // namespace
}  // namespace weft::device
