// SPDX-License-Identifier: BSD-2-Clause
// Do claims and names of shared files follow the life of the processes behind them?
#include "os/shared_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>

#include "os/child_process_support.h"

namespace weft::os {
namespace {

constexpr std::uint64_t kSize = 1 << 16;

class SharedFileTest : public testing::Test {
 protected:
  SharedFileTest() { EXPECT_NE(::mkdtemp(directory_.data()), nullptr); }
  ~SharedFileTest() override { std::filesystem::remove_all(directory_); }

  std::string path(const std::string& name = "file") const { return directory_ + "/" + name; }
  bool exists() const { return std::filesystem::exists(path()); }

  SharedFilePtr published() const {
    auto file = SharedFile::create(path(), kSize);
    EXPECT_TRUE(file.ok()) << file.error().message;
    EXPECT_TRUE(file.value()->publish().ok());
    return file.value();
  }

  // A process of its own that has claimed byte `offset` of the file.
  Sleeper claimant(std::uint64_t offset) const {
    return Sleeper([&] {
      static SharedFilePtr file;
      auto opened = SharedFile::open(path());
      if (opened.ok()) file = opened.value();
      return file != nullptr && file->claim(offset);
    });
  }

  // Leaves the file behind, as a process that is killed does.
  void abandon() const {
    ASSERT_EQ(in_child([&] {
                const auto file = SharedFile::create(path(), kSize);
                const bool good = file.ok() && file.value()->publish().ok();
                ::_exit(good ? 0 : 1);
                return 0;
              }),
              0);
    ASSERT_TRUE(exists());
  }

  // What the kernel says to another process: is byte `offset` locked by this one?
  bool locked_for_others(std::uint64_t offset) const {
    return in_child([&] {
             struct flock lock {};
             lock.l_type = F_WRLCK;
             lock.l_start = static_cast<off_t>(offset);
             lock.l_len = 1;
             const int fd = ::open(path().c_str(), O_RDWR);
             ::fcntl(fd, F_GETLK, &lock);
             return lock.l_type != F_UNLCK && lock.l_pid == ::getppid() ? 1 : 0;
           }) == 1;
  }

  std::string directory_ = "/dev/shm/weft-test-XXXXXX";
};

int error_of_open(const std::string& path) {
  const auto file = SharedFile::open(path);
  return file.ok() ? 0 : file.error().code;
}

TEST_F(SharedFileTest, AFileHasNoNameUntilItIsPublished) {
  const auto file = SharedFile::create(path(), kSize);
  ASSERT_TRUE(file.ok());
  EXPECT_FALSE(exists());
  EXPECT_TRUE(file.value()->publish().ok());
  EXPECT_TRUE(exists());
}

TEST_F(SharedFileTest, TheNameGoesWithTheLastUseOfItsCreator) {
  SharedFilePtr file = published();
  SharedFilePtr second = file;
  file.reset();
  EXPECT_TRUE(exists());
  second.reset();
  EXPECT_FALSE(exists());
}

TEST_F(SharedFileTest, UnlinkingTwiceTakesOnlyTheFilesOwnName) {
  const SharedFilePtr file = published();
  file->unlink();
  EXPECT_FALSE(exists());
  std::ofstream(path()) << "another's";
  file->unlink();
  EXPECT_TRUE(exists());
}

TEST_F(SharedFileTest, AForkedChildsCopyLeavesTheFileAlone) {
  SharedFilePtr file = published();
  EXPECT_EQ(in_child([&] {
              file.reset();
              return 0;
            }),
            0);
  EXPECT_TRUE(exists());
  EXPECT_TRUE(locked_for_others(0));
}

TEST_F(SharedFileTest, AProgramThatExitsWithoutClosingLeavesNoFile) {
  static SharedFilePtr never_closed;
  EXPECT_EQ(in_child([&]() -> int {
              never_closed = published();
              static auto* const leaked = new SharedFilePtr(never_closed);
              std::exit(leaked == nullptr);
            }),
            0);
  EXPECT_FALSE(exists());
}

TEST_F(SharedFileTest, AnOwnerIsSeenByOthersFromTheFirstMoment) {
  const SharedFilePtr file = published();
  EXPECT_TRUE(locked_for_others(0));
  EXPECT_EQ(file->holder(0), ::getpid());
}

TEST_F(SharedFileTest, OpeningTwiceInAProcessSharesTheFile) {
  const SharedFilePtr file = published();
  const auto again = SharedFile::open(path());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again.value(), file);
}

TEST_F(SharedFileTest, ClosingOneUseDropsNoLock) {
  const SharedFilePtr file = published();
  ASSERT_TRUE(file->claim(5));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(SharedFile::open(path()).ok());
  EXPECT_FALSE(SharedFile::abandoned(path()));
  EXPECT_FALSE(SharedFile::remove_abandoned(path()));
  EXPECT_TRUE(locked_for_others(0));
  EXPECT_TRUE(locked_for_others(5));
}

TEST_F(SharedFileTest, AClaimIsRefusedToOtherProcesses) {
  const SharedFilePtr file = published();
  const Sleeper other = claimant(7);
  EXPECT_FALSE(file->claim(7));
  EXPECT_EQ(file->holder(7), other.pid());
  EXPECT_TRUE(file->claim(8));
}

TEST_F(SharedFileTest, AClaimIsRefusedToAnotherPartOfTheSameProcess) {
  const SharedFilePtr file = published();
  EXPECT_TRUE(file->claim(7));
  EXPECT_FALSE(file->claim(7));
}

TEST_F(SharedFileTest, AClaimIsDroppedWhenItsHolderIsKilled) {
  const SharedFilePtr file = published();
  Sleeper other = claimant(7);
  other.kill();
  EXPECT_EQ(file->holder(7), std::nullopt);
  EXPECT_TRUE(file->claim(7));
}

TEST_F(SharedFileTest, ADisclaimedByteIsFreeForOthers) {
  const SharedFilePtr file = published();
  ASSERT_TRUE(file->claim(7));
  file->disclaim(7);
  file->disclaim(7);
  EXPECT_EQ(file->holder(7), std::nullopt);
  const Sleeper other = claimant(7);
  EXPECT_EQ(file->holder(7), other.pid());
}

TEST_F(SharedFileTest, DisclaimingWhatAnotherHoldsChangesNothing) {
  const SharedFilePtr file = published();
  const Sleeper other = claimant(7);
  file->disclaim(7);
  EXPECT_EQ(file->holder(7), other.pid());
}

TEST_F(SharedFileTest, AForkedChildDoesNotInheritAClaim) {
  const SharedFilePtr file = published();
  ASSERT_TRUE(file->claim(7));
  const pid_t parent = ::getpid();
  EXPECT_EQ(in_child([&] {
              const auto opened = SharedFile::open(path());
              if (!opened.ok()) return 1;
              if (opened.value()->holder(7) != parent || opened.value()->claim(7)) return 2;
              return opened.value()->claim(8) ? 0 : 3;
            }),
            0);
}

TEST_F(SharedFileTest, AnInheritedCopyClaimsAndDisclaimsNothing) {
  const SharedFilePtr file = published();
  ASSERT_TRUE(file->claim(7));
  EXPECT_FALSE(file->inherited());
  const pid_t parent = ::getpid();
  EXPECT_EQ(in_child([&] {
              file->disclaim(7);
              file->unlink();
              const bool unchanged = file->holder(7) == parent && !file->claim(7);
              return file->inherited() && unchanged && !file->claim(8) ? 0 : 1;
            }),
            0);
  EXPECT_TRUE(exists());
  EXPECT_TRUE(locked_for_others(7));
}

TEST_F(SharedFileTest, LettingAnInheritedCopyGoDropsNoLockOfTheChild) {
  SharedFilePtr file = published();
  EXPECT_EQ(in_child([&] {
              const auto opened = SharedFile::open(path());
              if (!opened.ok() || !opened.value()->claim(7)) return 1;
              file.reset();
              return locked_for_others(7) ? 0 : 2;
            }),
            0);
}

TEST_F(SharedFileTest, AForkedChildOfADeadOwnerDoesNotTakeItsPlace) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  // The owner ends; its child, which has the file open, lives on until `ends` is closed.
  EXPECT_EQ(in_child([&] {
              const SharedFilePtr file = published();
              if (::fork() == 0) {
                char byte = 0;
                ::close(ends[1]);
                ::_exit(static_cast<int>(::read(ends[0], &byte, 1)));
              }
              ::_exit(0);
              return 0;
            }),
            0);
  EXPECT_TRUE(SharedFile::abandoned(path()));
  ::close(ends[1]);
  ::close(ends[0]);
}

TEST_F(SharedFileTest, AFileWhoseOwnerLivesIsNotAbandoned) {
  const Sleeper owner([&] {
    static const SharedFilePtr file = published();
    return file != nullptr;
  });
  EXPECT_FALSE(SharedFile::abandoned(path()));
  EXPECT_FALSE(SharedFile::remove_abandoned(path()));
  EXPECT_TRUE(exists());
}

TEST_F(SharedFileTest, AFileWhoseOwnerWasKilledIsAbandonedAndCanBeRemoved) {
  Sleeper owner([&] {
    static const SharedFilePtr file = published();
    return file != nullptr;
  });
  owner.kill();
  EXPECT_TRUE(SharedFile::abandoned(path()));
  EXPECT_TRUE(SharedFile::remove_abandoned(path()));
  EXPECT_FALSE(exists());
}

TEST_F(SharedFileTest, AMissingFileIsNotAbandoned) { EXPECT_FALSE(SharedFile::abandoned(path())); }

TEST_F(SharedFileTest, PublishReplacesAnAbandonedFile) {
  abandon();
  const SharedFilePtr file = published();
  const auto again = SharedFile::open(path());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again.value(), file);
}

TEST_F(SharedFileTest, PublishReplacesAnAbandonedFileThatThisProcessStillHasOpen) {
  abandon();
  const auto corpse = SharedFile::open(path());
  ASSERT_TRUE(corpse.ok());
  const auto file = SharedFile::create(path(), kSize);
  ASSERT_TRUE(file.ok());
  const Status named = file.value()->publish();
  EXPECT_TRUE(named.ok()) << named.error().message;
  EXPECT_EQ(corpse.value()->holder(0), std::nullopt);
}

TEST_F(SharedFileTest, PublishIsRefusedWhileTheOwnerOfThatNameLives) {
  const Sleeper owner([&] {
    static const SharedFilePtr file = published();
    return file != nullptr;
  });
  const auto file = SharedFile::create(path(), kSize);
  ASSERT_TRUE(file.ok());
  const Status named = file.value()->publish();
  ASSERT_FALSE(named.ok());
  EXPECT_EQ(named.error().code, EADDRINUSE);
}

TEST_F(SharedFileTest, PublishIsRefusedWhileThisProcessOwnsThatName) {
  const SharedFilePtr first = published();
  const auto second = SharedFile::create(path(), kSize);
  ASSERT_TRUE(second.ok());
  const Status named = second.value()->publish();
  ASSERT_FALSE(named.ok());
  EXPECT_EQ(named.error().code, EADDRINUSE);
}

TEST_F(SharedFileTest, AFileThatIsNotThereCannotBeOpened) {
  EXPECT_EQ(error_of_open(path()), ENOENT);
}

TEST_F(SharedFileTest, FilesThatAreNotRegularAreRefused) {
  ASSERT_EQ(::mkdir(path("directory").c_str(), 0700), 0);
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const SharedFilePtr file = published();
  ASSERT_EQ(::symlink(path().c_str(), path("link").c_str()), 0);
  EXPECT_EQ(error_of_open(path("directory")), EACCES);
  EXPECT_EQ(error_of_open(path("pipe")), EACCES);
  EXPECT_EQ(error_of_open(path("link")), EACCES);
}

TEST_F(SharedFileTest, AFileOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  std::ofstream(path()) << "another's";
  ASSERT_EQ(::chown(path().c_str(), 65534, 65534), 0);
  EXPECT_EQ(error_of_open(path()), EACCES);
  EXPECT_FALSE(SharedFile::abandoned(path()));
  EXPECT_FALSE(SharedFile::remove_abandoned(path()));
  EXPECT_TRUE(exists());
}

TEST_F(SharedFileTest, ADirectoryThatIsNotThereIsAnError) {
  const auto file = SharedFile::create(path("missing/file"), kSize);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, ENOENT);
}

TEST_F(SharedFileTest, TheFileSizeLimitIsAnErrorAndNotASignal) {
  const SharedFilePtr file = published();
  EXPECT_EQ(in_child([&] {
              const rlimit limit{kSize, kSize};
              if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
              const auto larger = SharedFile::create(path("larger"), kSize + 1);
              if (larger.ok() || larger.error().code != EFBIG) return 2;
              if (!SharedFile::create(path("same"), kSize).ok()) return 3;
              if (!file->reserve(0, kSize).ok()) return 4;
              const Status grown = file->reserve(kSize, 1);
              if (grown.ok() || grown.error().code != EFBIG) return 5;
              return file->copy_in(kSize, "x", 1) ? 6 : 0;
            }),
            0);
}

TEST_F(SharedFileTest, BytesAreSharedBetweenProcessesThatMapThem) {
  const SharedFilePtr file = published();
  ASSERT_TRUE(file->reserve(0, kSize).ok());
  const auto memory = file->map(0, kSize);
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(in_child([&] {
              const auto opened = SharedFile::open(path());
              if (!opened.ok()) return 1;
              const auto mapped = opened.value()->map(4096, 4096);
              if (!mapped.ok()) return 2;
              *mapped.value().at<int>(8) = 1234;
              return 0;
            }),
            0);
  EXPECT_EQ(*memory.value().at<int>(4096 + 8), 1234);
}

TEST_F(SharedFileTest, ReleasedBytesReadAsZero) {
  const SharedFilePtr file = published();
  ASSERT_TRUE(file->reserve(0, 2 * 4096).ok());
  const auto memory = file->map(0, 2 * 4096);
  ASSERT_TRUE(memory.ok());
  *memory.value().at<int>(0) = 1;
  *memory.value().at<int>(4096) = 2;
  file->release(0, 4096);
  EXPECT_EQ(*memory.value().at<int>(0), 0);
  EXPECT_EQ(*memory.value().at<int>(4096), 2);
}

TEST_F(SharedFileTest, ReservingPastTheEndMakesTheFileGrow) {
  const SharedFilePtr file = published();
  ASSERT_TRUE(file->reserve(kSize, 4096).ok());
  EXPECT_EQ(std::filesystem::file_size(path()), kSize + 4096);
}

TEST_F(SharedFileTest, AMappingPastTheEndIsRefused) {
  const SharedFilePtr file = published();
  EXPECT_TRUE(file->map(0, kSize).ok());
  EXPECT_TRUE(file->map(kSize - 4096, 4096).ok());
  const auto past = file->map(kSize - 4096, 4097);
  ASSERT_FALSE(past.ok());
  EXPECT_EQ(past.error().code, EINVAL);
  EXPECT_FALSE(file->map(~std::uint64_t{0} - 4095, 8192).ok());
}

}  // namespace
}  // namespace weft::os
