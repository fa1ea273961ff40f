// SPDX-License-Identifier: BSD-2-Clause
// Do copies to and from another process move exactly the bytes named, or say why not?
#include "os/process_memory.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

namespace weft::os {
namespace {

constexpr std::size_t kPage = 4096;

// A process with the same layout as this one, whose copy of `buffer` holds `fill` everywhere.
class Neighbour {
 public:
  Neighbour(std::string& buffer, char fill) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      std::memset(buffer.data(), fill, buffer.size());
      if (::write(ends[1], "", 1) == 1) ::pause();
      ::_exit(0);
    }
    char byte = 0;
    EXPECT_EQ(::read(ends[0], &byte, 1), 1);
    ::close(ends[0]);
    ::close(ends[1]);
  }
  ~Neighbour() { end(); }
  pid_t pid() const { return pid_; }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
};

// Two pages, the second of which is not mapped any more.
class HalfGone {
 public:
  HalfGone() {
    void* both =
        ::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(both, MAP_FAILED);
    base_ = static_cast<char*>(both);
    std::memset(base_, 'm', kPage);
    ::munmap(base_ + kPage, kPage);
  }
  ~HalfGone() { ::munmap(base_, kPage); }
  char* base() const { return base_; }
  char* hole() const { return base_ + kPage; }

 private:
  char* base_ = nullptr;
};

int copy(pid_t pid, CopyDirection direction, LocalRange local, LocalRange remote) {
  return copy_process_memory(pid, direction, {&local, 1}, {&remote, 1});
}

std::vector<LocalRange> cut(std::string& text, std::size_t count) {
  std::vector<LocalRange> sges;
  std::size_t from = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t to = text.size() * (i + 1) * (i + 1) / (count * count);
    sges.push_back({text.data() + from, to - from});
    from = to;
  }
  return sges;
}

TEST(ProcessMemory, AReadBringsTheOtherProcessesBytes) {
  std::string remote(100, 'a');
  const Neighbour neighbour(remote, 'b');
  std::string local(100, '.');
  ASSERT_EQ(
      copy(neighbour.pid(), CopyDirection::kFromProcess, {local.data(), 99}, {remote.data(), 99}),
      0);
  EXPECT_EQ(local, std::string(99, 'b') + ".");
  EXPECT_EQ(remote, std::string(100, 'a'));
}

TEST(ProcessMemory, AWriteChangesTheOtherProcessesBytesOnly) {
  std::string remote(100, 'a');
  const Neighbour neighbour(remote, 'b');
  std::string local(100, 'c');
  ASSERT_EQ(
      copy(neighbour.pid(), CopyDirection::kToProcess, {local.data(), 10}, {remote.data() + 5, 10}),
      0);
  std::string seen(100, '.');
  ASSERT_EQ(
      copy(neighbour.pid(), CopyDirection::kFromProcess, {seen.data(), 100}, {remote.data(), 100}),
      0);
  EXPECT_EQ(seen, std::string(5, 'b') + std::string(10, 'c') + std::string(85, 'b'));
  EXPECT_EQ(remote, std::string(100, 'a'));
}

TEST(ProcessMemory, ThisProcessIsAllowedToo) {
  std::string from = "hello";
  std::string to(5, '.');
  ASSERT_EQ(copy(::getpid(), CopyDirection::kToProcess, {from.data(), 5}, {to.data(), 5}), 0);
  EXPECT_EQ(to, "hello");
}

TEST(ProcessMemory, SgesOfBothSidesMayBeCutDifferently) {
  std::string from(100000, '\0');
  std::iota(from.begin(), from.end(), '\0');
  for (const std::size_t near : {1, 7, 64}) {
    for (const std::size_t far : {1, 3, 64}) {
      std::string to(from.size(), '\0');
      ASSERT_EQ(copy_process_memory(::getpid(), CopyDirection::kFromProcess, cut(to, near),
                                    cut(from, far)),
                0);
      EXPECT_EQ(to, from) << near << " pieces from " << far;
    }
  }
}

TEST(ProcessMemory, EmptySgesAreSkipped) {
  std::string from = "hello";
  std::string to(5, '.');
  const std::array<LocalRange, 4> local{
      {{nullptr, 0}, {to.data(), 2}, {nullptr, 0}, {to.data() + 2, 3}}};
  const std::array<LocalRange, 3> remote{{{from.data(), 5}, {nullptr, 0}, {nullptr, 0}}};
  ASSERT_EQ(copy_process_memory(::getpid(), CopyDirection::kFromProcess, local, remote), 0);
  EXPECT_EQ(to, "hello");
}

TEST(ProcessMemory, NothingToCopyIsDoneAtOnce) {
  EXPECT_EQ(copy_process_memory(::getpid(), CopyDirection::kFromProcess, {}, {}), 0);
}

TEST(ProcessMemory, MoreSgesThanPossibleAreRefused) {
  std::string bytes(65, '.');
  EXPECT_EQ(
      copy_process_memory(::getpid(), CopyDirection::kFromProcess, cut(bytes, 65), cut(bytes, 1)),
      EINVAL);
}

TEST(ProcessMemory, AMissingPageAtThePeerIsAFault) {
  const HalfGone remote;
  std::string local(2 * kPage, '.');
  EXPECT_EQ(copy(::getpid(), CopyDirection::kFromProcess, {local.data(), 1}, {remote.hole(), 1}),
            EFAULT);
  EXPECT_EQ(copy(::getpid(), CopyDirection::kToProcess, {local.data(), 1}, {remote.hole(), 1}),
            EFAULT);
  EXPECT_EQ(local, std::string(2 * kPage, '.'));
}

TEST(ProcessMemory, AMissingPageOnThisSideIsAFault) {
  const HalfGone local;
  std::string remote(1, 'r');
  EXPECT_EQ(copy(::getpid(), CopyDirection::kToProcess, {local.hole(), 1}, {remote.data(), 1}),
            EFAULT);
  EXPECT_EQ(copy(::getpid(), CopyDirection::kFromProcess, {local.hole(), 1}, {remote.data(), 1}),
            EFAULT);
  EXPECT_EQ(remote, "r");
}

TEST(ProcessMemory, AHoleInTheMiddleIsAFaultAndNothingBehindItIsTouched) {
  const HalfGone remote;
  std::string local(kPage + 8, '.');
  EXPECT_EQ(copy(::getpid(), CopyDirection::kFromProcess, {local.data(), kPage + 8},
                 {remote.base(), kPage + 8}),
            EFAULT);
  EXPECT_EQ(local.substr(kPage), "........");
}

TEST(ProcessMemory, AProcessThatEndedIsNotFound) {
  std::string bytes(8, '.');
  Neighbour neighbour(bytes, 'b');
  const pid_t pid = neighbour.pid();
  neighbour.end();
  EXPECT_EQ(copy(pid, CopyDirection::kFromProcess, {bytes.data(), 8}, {bytes.data(), 8}), ESRCH);
}

TEST(ProcessMemory, AProcessOfAnotherUserMayNotBeReached) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  std::string bytes(8, '.');
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(1);
    ::_exit(copy(::getppid(), CopyDirection::kFromProcess, {bytes.data(), 8}, {bytes.data(), 8}));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), EPERM);
}

TEST(ProcessMemory, PeersOfTheSameUserReachAProcessThatAllowsThem) {
  allow_memory_access_by_peers();
  std::string bytes = "from the parent";
  std::array<char, 16> read{};
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(copy(::getppid(), CopyDirection::kFromProcess, {read.data(), 15}, {bytes.data(), 15}));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace weft::os
