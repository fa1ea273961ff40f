// SPDX-License-Identifier: BSD-2-Clause
// Is the directory of shared files private, and does a sweep take the dead's files only?
#include "os/runtime_dir.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "os/shared_file.h"

namespace weft::os {
namespace {

class RuntimeDirectory : public testing::Test {
 protected:
  RuntimeDirectory() { EXPECT_NE(::mkdtemp(base_.data()), nullptr); }
  ~RuntimeDirectory() override { std::filesystem::remove_all(base_); }

  static int error_of(const std::string& base) {
    const auto directory = runtime_directory(base);
    return directory.ok() ? 0 : directory.error().code;
  }

  // Makes `name` in the base directory as a process does that is then killed.
  void abandon(const std::string& name) const {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto file = SharedFile::create(base_ + "/" + name, 4096);
      ::_exit(file.ok() && file.value()->publish().ok() ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    ASSERT_EQ(status, 0);
  }

  bool exists(const std::string& name) const { return std::filesystem::exists(base_ + "/" + name); }

  std::string base_ = "/dev/shm/weft-test-XXXXXX";
};

TEST_F(RuntimeDirectory, IsMadeWhenItIsNotThereAndNobodyElseCanEnter) {
  const std::string base = base_ + "/new";
  const auto directory = runtime_directory(base);
  ASSERT_TRUE(directory.ok()) << directory.error().message;
  for (const std::string& path : {base, directory.value()}) {
    struct stat info {};
    ASSERT_EQ(::stat(path.c_str(), &info), 0) << path;
    EXPECT_EQ(info.st_mode & 07777, 0700U) << path;
  }
}

TEST_F(RuntimeDirectory, IsTheSameEveryTimeAndLiesInTheBase) {
  const auto first = runtime_directory(base_);
  const auto second = runtime_directory(base_);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first.value(), second.value());
  EXPECT_EQ(std::filesystem::path(first.value()).parent_path(), base_);
}

TEST_F(RuntimeDirectory, TheEnvironmentNamesTheBaseWhenTheCallerDoesNot) {
  ASSERT_EQ(::setenv("WEFT_RUNTIME_DIR", base_.c_str(), 1), 0);
  const auto directory = runtime_directory("");
  ::unsetenv("WEFT_RUNTIME_DIR");
  ASSERT_TRUE(directory.ok()) << directory.error().message;
  EXPECT_TRUE(directory.value().starts_with(base_ + "/"));
}

TEST_F(RuntimeDirectory, OneThatIsOpenToOthersIsRefused) {
  for (const mode_t mode : {0750, 0705, 0701, 0710, 0777}) {
    ASSERT_EQ(::chmod(base_.c_str(), mode), 0);
    EXPECT_EQ(error_of(base_), EACCES) << std::oct << mode;
  }
  ASSERT_EQ(::chmod(base_.c_str(), 0700), 0);
  EXPECT_EQ(error_of(base_), 0);
}

TEST_F(RuntimeDirectory, OneOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give directories away";
  ASSERT_EQ(::chown(base_.c_str(), 65534, 65534), 0);
  EXPECT_EQ(error_of(base_), EACCES);
}

TEST_F(RuntimeDirectory, WhatIsNoDirectoryIsRefused) {
  std::ofstream(base_ + "/file") << "x";
  ASSERT_EQ(::mkdir((base_ + "/real").c_str(), 0700), 0);
  ASSERT_EQ(::symlink((base_ + "/real").c_str(), (base_ + "/link").c_str()), 0);
  EXPECT_EQ(error_of(base_ + "/file"), EACCES);
  EXPECT_EQ(error_of(base_ + "/link"), EACCES);
}

TEST_F(RuntimeDirectory, OnlyTheLastPartIsMade) {
  EXPECT_EQ(error_of(base_ + "/missing/deeper"), ENOENT);
}

TEST_F(RuntimeDirectory, ASweepTakesTheFilesOfTheDeadAndNoOthers) {
  abandon("dead");
  const auto live = SharedFile::create(base_ + "/live", 4096);
  ASSERT_TRUE(live.ok() && live.value()->publish().ok());
  ASSERT_EQ(::mkdir((base_ + "/directory").c_str(), 0700), 0);
  sweep(base_);
  EXPECT_FALSE(exists("dead"));
  EXPECT_TRUE(exists("live"));
  EXPECT_TRUE(exists("directory"));
}

TEST_F(RuntimeDirectory, ASweepByAStrangerSparesTheLiving) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t owner = ::fork();
  if (owner == 0) {
    const auto file = SharedFile::create(base_ + "/live", 4096);
    const bool good = file.ok() && file.value()->publish().ok();
    if (good && ::write(ends[1], "", 1) == 1) ::pause();
    ::_exit(1);
  }
  ::close(ends[1]);
  char byte = 0;
  ASSERT_EQ(::read(ends[0], &byte, 1), 1);
  ::close(ends[0]);
  sweep(base_);
  EXPECT_TRUE(exists("live"));
  ::kill(owner, SIGKILL);
  ::waitpid(owner, nullptr, 0);
  sweep(base_);
  EXPECT_FALSE(exists("live"));
}

TEST_F(RuntimeDirectory, ASweepOfWhatIsNotThereDoesNothing) {
  sweep(base_ + "/missing");
  EXPECT_FALSE(exists("missing"));
}

TEST(RandomNumber, IsDifferentEveryTime) {
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random_number());
  EXPECT_EQ(seen.size(), 1000U);
}

}  // namespace
}  // namespace weft::os
