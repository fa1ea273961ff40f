// SPDX-License-Identifier: BSD-2-Clause
// Is the directory of shared files private, and does a sweep take the dead's files only?
#include "os/runtime_dir.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>

#include "os/own_process_support.h"
#include "os/shared_file.h"

namespace weft::os {

// So many of the next calls of mkdir(2) for a directory of namespaces find one that its last
// process removes at once. The function below stands in for that of the C library.
int& leavers() {
  static int left = 0;
  return left;
}

extern "C" int mkdir(const char* path, mode_t mode) noexcept {
  if (leavers() == 0 || std::string_view(path).find("/net-") == std::string_view::npos)
    return ::mkdirat(AT_FDCWD, path, mode);
  --leavers();
  errno = EEXIST;
  return -1;
}

namespace {

class RuntimeDirectoryTest : public testing::Test {
 protected:
  RuntimeDirectoryTest() { EXPECT_NE(::mkdtemp(base_.data()), nullptr); }
  ~RuntimeDirectoryTest() override { std::filesystem::remove_all(base_); }

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

TEST_F(RuntimeDirectoryTest, IsMadeWhenItIsNotThereForItsOwnerOnly) {
  const std::string base = base_ + "/new";
  const auto directory = runtime_directory(base);
  ASSERT_TRUE(directory.ok()) << directory.error().message;
  for (const std::string& path : {base, directory.value()}) {
    struct stat info {};
    ASSERT_EQ(::stat(path.c_str(), &info), 0) << path;
    EXPECT_EQ(info.st_mode & 07777, 0700U) << path;
  }
}

TEST_F(RuntimeDirectoryTest, IsTheSameEveryTimeAndLiesInTheBase) {
  const auto first = runtime_directory(base_);
  const auto second = runtime_directory(base_);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first.value(), second.value());
  EXPECT_EQ(std::filesystem::path(first.value()).parent_path(), base_);
}

TEST_F(RuntimeDirectoryTest, TheEnvironmentNamesTheBaseWhenTheCallerDoesNot) {
  ASSERT_EQ(::setenv("WEFT_RUNTIME_DIR", base_.c_str(), 1), 0);
  const auto directory = runtime_directory("");
  ::unsetenv("WEFT_RUNTIME_DIR");
  ASSERT_TRUE(directory.ok()) << directory.error().message;
  EXPECT_TRUE(directory.value().starts_with(base_ + "/"));
}

TEST_F(RuntimeDirectoryTest, OneThatIsOpenToOthersIsRefused) {
  for (const mode_t mode : {0750, 0705, 0701, 0710, 0777}) {
    ASSERT_EQ(::chmod(base_.c_str(), mode), 0);
    EXPECT_EQ(error_of(base_), EACCES) << std::oct << mode;
  }
  ASSERT_EQ(::chmod(base_.c_str(), 0700), 0);
  EXPECT_EQ(error_of(base_), 0);
}

TEST_F(RuntimeDirectoryTest, OneOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give directories away";
  ASSERT_EQ(::chown(base_.c_str(), 65534, 65534), 0);
  EXPECT_EQ(error_of(base_), EACCES);
}

TEST_F(RuntimeDirectoryTest, AFileInPlaceOfTheDirectoryIsRefused) {
  std::ofstream(base_ + "/file") << "x";
  ASSERT_EQ(::mkdir((base_ + "/real").c_str(), 0700), 0);
  ASSERT_EQ(::symlink((base_ + "/real").c_str(), (base_ + "/link").c_str()), 0);
  EXPECT_EQ(error_of(base_ + "/file"), EACCES);
  EXPECT_EQ(error_of(base_ + "/link"), EACCES);
}

TEST_F(RuntimeDirectoryTest, OnlyTheLastPartIsMade) {
  EXPECT_EQ(error_of(base_ + "/missing/deeper"), ENOENT);
}

TEST_F(RuntimeDirectoryTest, OneThatAnotherProcessRemovesIsMadeAgain) {
  leavers() = 3;
  const auto directory = runtime_directory(base_);
  EXPECT_EQ(leavers(), 0);
  ASSERT_TRUE(directory.ok()) << directory.error().message;
  EXPECT_TRUE(std::filesystem::is_directory(directory.value()));
}

TEST_F(RuntimeDirectoryTest, OneThatIsAlwaysRemovedIsAnError) {
  leavers() = 1'000'000;
  EXPECT_EQ(error_of(base_), ENOENT);
  leavers() = 0;
}

TEST_F(RuntimeDirectoryTest, ASweepTakesTheFilesOfTheDeadAndNoOthers) {
  abandon("dead");
  const auto live = SharedFile::create(base_ + "/live", 4096);
  ASSERT_TRUE(live.ok() && live.value()->publish().ok());
  ASSERT_EQ(::mkdir((base_ + "/directory").c_str(), 0700), 0);
  sweep(base_);
  EXPECT_FALSE(exists("dead"));
  EXPECT_TRUE(exists("live"));
  EXPECT_TRUE(exists("directory"));
}

TEST_F(RuntimeDirectoryTest, ASweepByAnotherProcessSparesTheLiving) {
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

TEST_F(RuntimeDirectoryTest, ASweepOfWhatIsNotThereDoesNothing) {
  sweep(base_ + "/missing");
  EXPECT_FALSE(exists("missing"));
}

// A child that has a namespace of its own where processes have numbers.
std::string directory_in_another_pid_namespace(const std::string& base) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0 || !enter_namespaces(CLONE_NEWPID)) return {};
  const pid_t child = ::fork();
  if (child == 0) {
    const auto directory = runtime_directory(base);
    const std::string text = directory.ok() ? directory.value() : directory.error().message;
    ::_exit(::write(ends[1], text.data(), text.size()) > 0 ? 0 : 1);
  }
  std::array<char, 300> text{};
  const ssize_t length = ::read(ends[0], text.data(), text.size());
  ::waitpid(child, nullptr, 0);
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0))};
}

TEST_F(RuntimeDirectoryTest, IsAnotherOneWhereProcessesHaveOtherNumbers) {
  in_own_process("a namespace of processes", [&] {
    const std::string there = directory_in_another_pid_namespace(base_);
    if (there.empty()) return false;
    EXPECT_TRUE(there.starts_with(base_ + "/")) << there;
    EXPECT_NE(there, runtime_directory(base_).value());
    return true;
  });
}

// What systemd and others set for some processes of a user, and not for those of cron or mpirun.
TEST_F(RuntimeDirectoryTest, TheDefaultDoesNotDependOnTheSession) {
  in_own_process("an empty /dev/shm", [&] {
    if (!enter_empty_directories()) return false;
    ::unsetenv("WEFT_RUNTIME_DIR");
    ::unsetenv("XDG_RUNTIME_DIR");
    const auto without = runtime_directory("");
    ::setenv("XDG_RUNTIME_DIR", base_.c_str(), 1);
    const auto with = runtime_directory("");
    EXPECT_TRUE(without.ok() && with.ok());
    EXPECT_EQ(with.value(), without.value());
    EXPECT_TRUE(with.value().starts_with("/dev/shm/weft-" + std::to_string(::geteuid()) + "/"));
    return true;
  });
}

TEST_F(RuntimeDirectoryTest, AProcessThatStartsAsTheLastOtherOneEndsHasTheDefault) {
  in_own_process("an empty /dev/shm", [&] {
    if (!enter_empty_directories()) return false;
    ::unsetenv("WEFT_RUNTIME_DIR");
    leavers() = 1;
    const auto directory = RuntimeDirectory::open("");
    EXPECT_TRUE(directory.ok());
    EXPECT_NE(directory.value().path(), "") << directory.value().problem().message;
    return true;
  });
}

// Takes the name of the default, as another user can, in an empty /dev/shm.
bool take_the_name() {
  ::unsetenv("WEFT_RUNTIME_DIR");
  const std::string name = "/dev/shm/weft-" + std::to_string(::geteuid());
  return enter_empty_directories() && ::mkdir(name.c_str(), 0755) == 0;
}

TEST_F(RuntimeDirectoryTest, ThereIsNoneWhereAnotherUserHasTakenItsName) {
  in_own_process("an empty /dev/shm", [&] {
    if (!take_the_name()) return false;
    const auto directory = RuntimeDirectory::open("");
    EXPECT_TRUE(directory.ok());
    EXPECT_EQ(directory.value().path(), "");
    EXPECT_NE(directory.value().problem().message.find("/dev/shm/weft-"), std::string::npos);
    return true;
  });
}

TEST_F(RuntimeDirectoryTest, ThereIsNoneWhereTheFileSystemHasNoRoom) {
  in_own_process("a small /dev/shm", [&] {
    if (!enter_empty_directories("nr_inodes=2")) return false;
    EXPECT_EQ(::mkdir("/dev/shm/base", 0700), 0);
    const auto directory = RuntimeDirectory::open("/dev/shm/base");
    EXPECT_TRUE(directory.ok());
    if (!directory.ok()) return true;
    EXPECT_EQ(directory.value().path(), "");
    EXPECT_EQ(directory.value().problem().code, ENOSPC);
    return true;
  });
}

TEST_F(RuntimeDirectoryTest, IsInThatOfTheSessionWhereAnotherUserHasTakenItsName) {
  in_own_process("an empty /dev/shm", [&] {
    if (!take_the_name()) return false;
    const std::string user = std::to_string(::geteuid());
    std::filesystem::create_directories("/run/user/" + user);
    EXPECT_FALSE(runtime_directory("").ok()) << "/run/user/UID is open to others";
    EXPECT_EQ(::chmod(("/run/user/" + user).c_str(), 0700), 0);
    const auto directory = runtime_directory("");
    EXPECT_TRUE(directory.ok());
    EXPECT_TRUE(directory.value().starts_with("/run/user/" + user + "/weft/"));
    EXPECT_EQ(::rmdir(("/dev/shm/weft-" + user).c_str()), 0);
    EXPECT_EQ(runtime_directory("").value(), directory.value()) << "processes do not meet";
    return true;
  });
}

TEST_F(RuntimeDirectoryTest, GoesWithTheLastProcessThatUsesIt) {
  std::string path;
  {
    const auto one = RuntimeDirectory::open(base_);
    ASSERT_TRUE(one.ok());
    path = one.value().path();
    const auto file = SharedFile::create(path + "/live", 4096);
    ASSERT_TRUE(file.ok() && file.value()->publish().ok());
    { const auto other = RuntimeDirectory::open(base_); }
    EXPECT_TRUE(std::filesystem::exists(path)) << "it is in use";
  }
  EXPECT_TRUE(RuntimeDirectory::open(base_).ok());
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(RuntimeDirectoryTest, GoesWithAProcessThatEndsWithoutClosingIt) {
  const pid_t child = ::fork();
  if (child == 0) {
    static auto* directory = new auto(std::move(RuntimeDirectory::open(base_)).value());
    static auto* file = new auto(SharedFile::create(directory->path() + "/live", 4096).value());
    if (!(*file)->publish()) ::_exit(1);
    std::exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(std::filesystem::is_empty(base_));
}

TEST_F(RuntimeDirectoryTest, OpeningItRemovesWhatOtherNamespacesLeftBehind) {
  for (const char* name : {"/net-1", "/net-2", "/net-3", "/mine"}) {
    ASSERT_EQ(::mkdir((base_ + name).c_str(), 0700), 0);
  }
  abandon("net-1/dead");
  const auto live = SharedFile::create(base_ + "/net-2/live", 4096);
  ASSERT_TRUE(live.ok() && live.value()->publish().ok());
  const auto directory = RuntimeDirectory::open(base_);
  EXPECT_FALSE(exists("net-1"));
  EXPECT_TRUE(exists("net-2/live"));
  EXPECT_FALSE(exists("net-3"));
  EXPECT_TRUE(exists("mine"));
}

TEST(RandomNumber, IsDifferentEveryTime) {
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random_number());
  EXPECT_EQ(seen.size(), 1000U);
}

}  // namespace
}  // namespace weft::os
