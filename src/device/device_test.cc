// SPDX-License-Identifier: BSD-2-Clause
// Is there one device per process, with a table and domains of its own?
#include "device/device.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <thread>
#include <vector>

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
