// SPDX-License-Identifier: BSD-2-Clause
// Do files in /dev/shm that no region has made, or that another user has changed, do no harm?
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "os/fd.h"
#include "region_test_support.h"

namespace weft::shared_memory {
namespace {

using namespace testing_support;

constexpr std::uint32_t kId = 0xabcd;
constexpr const char* kFile = "/dev/shm/weft-mr.0000abcd.0123456789abcdef";

os::Fd make_file(const std::string& path, off_t size = kPage) {
  os::Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  EXPECT_TRUE(file.valid());
  EXPECT_EQ(::ftruncate(file.get(), size), 0);
  return file;
}

bool lock_range(int fd, off_t begin, off_t length, short type = F_WRLCK) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = begin;
  lock.l_len = length;
  return ::fcntl(fd, F_SETLK, &lock) == 0;
}

// A process that has a file with those locked bytes.
struct Holder {
  explicit Holder(off_t size, off_t begin, off_t length, short type = F_WRLCK)
      : process([&] {
          static os::Fd file;
          file = make_file(kFile, size);
          return lock_range(file.get(), begin, length, type);
        }) {}
  os::Sleeper process;
};

std::string path_of(std::uint32_t id) {
  char prefix[32];
  std::snprintf(prefix, sizeof prefix, "weft-mr.%08x.", id);
  return "/dev/shm/" + os::names_in("/dev/shm", prefix).value().at(0);
}

TEST(HostileFiles, OfOneIdAreNotAttachedBecauseOneIsForged) {
  in_own_shm([] {
    const Creator creator;
    const std::string path = path_of(creator.id());
    const std::string forged = path.substr(0, path.rfind('.')) + ".forged";
    const os::Sleeper forger([&] {
      static os::Fd file;
      file = make_file(forged);
      return lock_range(file.get(), 0, kPage);
    });
    EXPECT_EQ(attach_error(creator.id()), EINVAL);
    ASSERT_EQ(::unlink(forged.c_str()), 0);
    EXPECT_EQ(attach_error(creator.id()), 0);
  });
}

TEST(HostileFiles, WithTheNextIdsHaveTheCreatorTakeAnother) {
  in_own_shm([] {
    constexpr std::uint32_t kForged = 64;
    const auto first = share();
    for (std::uint32_t i = 1; i <= kForged; ++i) {
      char forged[64];
      std::snprintf(forged, sizeof forged, "/dev/shm/weft-mr.%08x.forged", first->id() + i);
      ASSERT_EQ(::symlink("nothing", forged), 0);
    }
    const auto second = share();
    EXPECT_GT(second->id() - first->id(), kForged);
    EXPECT_EQ(region_names().size(), kForged + 2);
    EXPECT_EQ(os::in_child([&] { return attach_error(second->id()); }), 0);
  });
}

TEST(HostileFiles, ThatAreNoRegularFilesAreInvalid) {
  in_own_shm([] {
    const Creator creator;
    ASSERT_EQ(::symlink(path_of(creator.id()).c_str(), kFile), 0);
    EXPECT_EQ(attach_error(kId), EINVAL);
    ASSERT_EQ(::unlink(kFile), 0);
    ASSERT_EQ(::mkfifo(kFile, 0666), 0);
    EXPECT_EQ(attach_error(kId), EINVAL);
    ASSERT_EQ(::unlink(kFile), 0);
    ASSERT_EQ(::mkdir(kFile, 0777), 0);
    EXPECT_EQ(attach_error(kId), EINVAL);
    EXPECT_EQ(region_names().size(), 2U);
  });
}

TEST(HostileFiles, OfALengthThatIsNotLockedPagesAreInvalid) {
  in_own_shm([] {
    struct Case {
      off_t size, begin, length;
      int error;
    };
    const off_t page = kPage;
    for (const Case& c :
         {Case{2 * page, 0, 2 * page, 0}, Case{2 * page, 0, page, 0}, Case{0, 0, page, EINVAL},
          Case{page - 1, 0, page, EINVAL}, Case{page, 0, 2 * page, EINVAL},
          Case{page, 0, 100, EINVAL}, Case{page, 0, 0, EINVAL}, Case{1, 0, off_t{1} << 62, EINVAL},
          Case{2 * page, page, page, ENOENT}}) {
      const Holder holder(c.size, c.begin, c.length);
      EXPECT_EQ(attach_error(kId), c.error) << c.size << ", " << c.begin << ", " << c.length;
      ::unlink(kFile);
    }
  });
}

// A process that may only read can lock for reading only.
TEST(HostileFiles, ThatAreLockedForReadingHaveNoCreator) {
  in_own_shm([] {
    const Holder holder(kPage, 0, kPage, F_RDLCK);
    EXPECT_EQ(attach_error(kId), ENOENT);
    EXPECT_TRUE(region_names().empty()) << "swept";
  });
}

TEST(HostileFiles, ThatAreNotLockedAreSwept) {
  in_own_shm([] {
    make_file(kFile);
    make_file("/dev/shm/weft-mr.no_region");
    make_file("/dev/shm/other");
    EXPECT_EQ(attach_error(kId), ENOENT);
    EXPECT_TRUE(region_names().empty());
    EXPECT_TRUE(std::filesystem::exists("/dev/shm/other"));
  });
}

// Their owner has no right to open them.
TEST(HostileFiles, WithoutRightsOfTheirOwnerAreSweptAndKeepTheirModeWhileTheyLive) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  in_own_shm([] {
    EXPECT_EQ(os::in_child([] {
                if (::setuid(1001) != 0) return 1;
                Creator living(0006);
                const auto more = share(0060);
                struct stat info {};
                if (::stat(path_of(living.id()).c_str(), &info) != 0) return 2;
                if (info.st_mode != (S_IFREG | 0006)) return 3;
                living.kill();
                if (attach_error(living.id()) != ENOENT) return 4;
                return region_names().size() == 1 ? 0 : 5;
              }),
              0);
  });
}

// Each sweep gives itself a right for a moment, and takes it back.
TEST(HostileFiles, KeepTheirGrantsWhenSeveralProcessesSweep) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  in_own_shm([] {
    EXPECT_EQ(os::in_child([] {
                constexpr int kSweepers = 3;
                constexpr int kSweeps = 3000;
                if (::setuid(1001) != 0) return 1;
                const Creator living(0004);
                for (int i = 0; i < kSweepers; ++i) {
                  if (::fork() != 0) continue;
                  for (int k = 0; k < kSweeps; ++k) attach_error(living.id() + 1);
                  ::_exit(0);
                }
                for (int i = 0; i < kSweepers; ++i) ::wait(nullptr);
                struct stat info {};
                if (::stat(path_of(living.id()).c_str(), &info) != 0) return 2;
                return info.st_mode == (S_IFREG | 0004) ? 0 : 3;
              }),
              0);
  });
}

TEST(HostileFiles, OfARegionThatIsTruncatedAreInvalid) {
  in_own_shm([] {
    const Creator creator(0600, 2 * kPage);
    ASSERT_EQ(::truncate(path_of(creator.id()).c_str(), kPage), 0);
    EXPECT_EQ(attach_error(creator.id()), EINVAL);
  });
}

// Closing any descriptor of the file would drop the creator's lock.
TEST(HostileFiles, WithASecondNameOfARegionKeepItsLock) {
  in_own_shm([] {
    const auto region = share();
    ASSERT_EQ(::link(path_of(region->id()).c_str(), kFile), 0);
    EXPECT_EQ(attach_error(kId), 0);
    const auto other = share();
    EXPECT_EQ(os::in_child([&] { return attach_error(region->id()); }), 0);
    EXPECT_EQ(region_names().size(), 3U);
  });
}

TEST(HostileFiles, OfOtherUsersAreNeitherSweptNorFollowed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  in_own_shm([] {
    EXPECT_EQ(os::in_child([] {
                if (::setuid(1001) != 0) return 1;
                for (int i = 0; i < 2000; ++i)
                  make_file("/dev/shm/weft-mr.f00d." + std::to_string(i), 0);
                return ::symlink("/dev/shm/other", "/dev/shm/weft-mr.f00d.link");
              }),
              0);
    make_file("/dev/shm/other");
    const auto region = share();
    EXPECT_EQ(attach_error(region->id()), 0);
    EXPECT_EQ(region_names().size(), 2002U);
    EXPECT_TRUE(std::filesystem::exists("/dev/shm/other"));
  });
}

// A sweep looks at a bounded number of names, wherever the dead ones are among them.
TEST(HostileFiles, OfThisUserHideNoDeadOneForEver) {
  in_own_shm([] {
    constexpr int kLiving = 600;
    make_file("/dev/shm/weft-mr.dead.early");
    const os::Sleeper holder([] {
      static std::vector<os::Fd> files;
      for (int i = 0; i < kLiving; ++i) {
        files.push_back(make_file("/dev/shm/weft-mr.f00d." + std::to_string(i), 1));
        if (!lock_range(files.back().get(), 0, 1)) return false;
      }
      return true;
    });
    make_file("/dev/shm/weft-mr.dead.late");
    int sweeps = 0;
    for (; region_names().size() != kLiving && sweeps < 1000; ++sweeps) attach_error(kId);
    EXPECT_LT(sweeps, 1000);
    for (int i = 0; i < kLiving; ++i) make_file("/dev/shm/weft-mr.more." + std::to_string(i), 1);
    attach_error(kId);
    EXPECT_GE(region_names().size(), std::size_t{2 * kLiving - 256}) << "a sweep has a bound";
  });
}

// All users that the namespace does not know look like user 65534, and so does this process.
TEST(HostileFiles, OfStrangersInAUserNamespaceAreStrange) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  in_own_shm([] {
    const Creator living(0600, kPage, [] { return ::setuid(1001) == 0; });
    Creator dead(0600, kPage, [] { return ::setuid(1001) == 0; });
    dead.kill();
    const int status = os::in_child([&] {
      if (::setgid(1002) != 0 || ::setuid(1002) != 0) return 1;
      if (::unshare(CLONE_NEWUSER) != 0) return 77;
      struct stat info {};
      if (::stat(path_of(living.id()).c_str(), &info) != 0) return 2;
      if (info.st_uid != ::geteuid()) return 3;
      if (attach_error(living.id()) != EACCES) return 4;
      if (attach_error(dead.id()) != EACCES) return 5;
      const auto own = share(0600);
      return attach_error(own->id()) == 0 ? 0 : 6;
    });
    EXPECT_EQ(region_names().size(), 2U);
    EXPECT_TRUE(std::filesystem::exists(path_of(dead.id())));
    if (status == 77) GTEST_SKIP() << "no user namespace may be made here";
    EXPECT_EQ(status, 0);
  });
}

}  // namespace
}  // namespace weft::shared_memory
