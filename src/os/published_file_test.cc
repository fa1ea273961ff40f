// SPDX-License-Identifier: BSD-2-Clause
// Is a published file mapped while its creator lives, and nothing waited for?
#include "os/published_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>

#include "os/child_process_support.h"
#include "os/directory.h"
#include "os/huge_pages.h"
#include "os/own_process_support.h"
#include "os/test_directory_support.h"

namespace weft::os {
namespace {

constexpr std::size_t kPage = 4096;

class PublishedFileTest : public testing::Test {
 protected:
  std::string path() const { return directory_.path() + "/name"; }

  std::unique_ptr<PublishedFile> create(std::size_t length = kPage, bool huge_pages = false) const {
    auto file = PublishedFile::create(directory_.path(), length, huge_pages);
    EXPECT_TRUE(file.ok()) << file.error().message;
    return file ? std::move(file).value() : nullptr;
  }
  std::unique_ptr<PublishedFile> published(std::size_t length = kPage) const {
    auto file = create(length);
    memory_ = std::move(file->map(nullptr)).value();
    EXPECT_TRUE(file->publish(path(), 0600).ok());
    return file;
  }
  // 0, or the error of mapping it in another process.
  int error_elsewhere() const {
    return in_child([&] {
      const auto memory = map_published(path(), false, nullptr);
      return memory ? 0 : memory.error().code;
    });
  }

  const TestDirectory directory_;
  mutable Mapping memory_;
};

TEST_F(PublishedFileTest, HasTheNameThatItWasGivenLastWhileItLives) {
  auto file = create();
  EXPECT_EQ(error_elsewhere(), ENOENT);
  ASSERT_TRUE(file->publish(path(), 0600).ok());
  EXPECT_EQ(error_elsewhere(), 0);
  EXPECT_EQ(create()->publish(path(), 0600).error().code, EEXIST);
  ASSERT_TRUE(file->publish(path() + "2", 0600).ok());
  EXPECT_EQ(error_elsewhere(), ENOENT);
  ASSERT_TRUE(file->publish(path(), 0600).ok());
  EXPECT_EQ(error_elsewhere(), 0);
  auto second = create();
  ASSERT_TRUE(second->publish(path() + "2", 0600).ok());
  EXPECT_EQ(second->publish(path(), 0600).error().code, EEXIST);
  file.reset();
  EXPECT_EQ(error_elsewhere(), ENOENT);
  second.reset();
  EXPECT_TRUE(names_in(directory_.path()).value().empty());
}

TEST_F(PublishedFileTest, OfThisProcessKeepsItsLockWhenItIsMappedAndSwept) {
  const auto file = published();
  EXPECT_TRUE(map_published(path(), true, nullptr).ok());
  sweep_published(directory_.path(), "");
  EXPECT_EQ(error_elsewhere(), 0);
}

// Signals that come more often than the whole file takes.
TEST_F(PublishedFileTest, IsBackedAlthoughSignalsInterrupt) {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  struct sigaction before {};
  ASSERT_EQ(::sigaction(SIGALRM, &action, &before), 0);
  const itimerval often{{0, 500}, {0, 500}};
  const itimerval never{};
  ASSERT_EQ(::setitimer(ITIMER_REAL, &often, nullptr), 0);
  constexpr std::size_t kLength = (std::size_t{24} << 20) + kPage;
  const auto file = create(kLength);
  const auto memory = file->map(nullptr);
  ASSERT_EQ(::setitimer(ITIMER_REAL, &never, nullptr), 0);
  ::sigaction(SIGALRM, &before, nullptr);
  ASSERT_TRUE(memory.ok()) << memory.error().message;
  struct stat info {};
  ASSERT_TRUE(file->publish(path(), 0600).ok());
  ASSERT_EQ(::stat(path().c_str(), &info), 0);
  EXPECT_EQ(static_cast<std::size_t>(info.st_blocks) * 512, kLength);
}

// An open(2) for writing waits until a lease is given up, at most /proc/sys/fs/lease-break-time.
TEST_F(PublishedFileTest, ThatIsLeasedIsNotWaitedFor) {
  const Sleeper holder([&] {
    static Fd file;
    ::signal(SIGIO, SIG_IGN);
    file.reset(::open(path().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    return ::ftruncate(file.get(), kPage) == 0 && ::fcntl(file.get(), F_SETLEASE, F_WRLCK) == 0;
  });
  EXPECT_EQ(map_published(path(), true, nullptr).error().code, EWOULDBLOCK);
  sweep_published(directory_.path(), "");
  EXPECT_EQ(::access(path().c_str(), F_OK), 0);
}

TEST_F(PublishedFileTest, OfHugePagesIsMappedAlikeByAll) {
  const auto file = create(kHugePage + 1, true);
  const auto memory = file->map(nullptr);
  if (!memory) GTEST_SKIP() << memory.error().message;
  EXPECT_EQ(memory.value().length(), 2 * kHugePage);
  struct stat info {};
  ASSERT_TRUE(file->publish(path(), 0600).ok());
  ASSERT_EQ(::stat(path().c_str(), &info), 0);
  EXPECT_EQ(static_cast<std::size_t>(info.st_size), 2 * kHugePage);
  EXPECT_EQ(static_cast<std::size_t>(info.st_blocks) * 512, 2 * kHugePage);
}

}  // namespace
}  // namespace weft::os
