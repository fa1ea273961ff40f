// SPDX-License-Identifier: BSD-2-Clause
// How does a test have another process do its part, and end it at will?
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <new>

namespace weft::os {

// A value that this process and children that it forks later have together.
template <class T>
class SharedValue {
 public:
  SharedValue() : value_(new (pages()) T{}) {}
  ~SharedValue() { ::munmap(value_, sizeof(T)); }
  SharedValue(const SharedValue&) = delete;
  SharedValue& operator=(const SharedValue&) = delete;
  T& operator*() const { return *value_; }
  T* operator->() const { return value_; }

 private:
  static void* pages() {
    constexpr int kRights = PROT_READ | PROT_WRITE;
    return ::mmap(nullptr, sizeof(T), kRights, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  }

  T* const value_;
};

// How a child that runs `body` ended: its exit status, or minus the signal that killed it.
inline int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// A child that has run `body` and then sleeps until it is killed.
class Sleeper {
 public:
  explicit Sleeper(const std::function<bool()>& body) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    child_ = ::fork();
    if (child_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const char good = body() ? 1 : 0;
      if (::write(ends[1], &good, 1) == 1) ::pause();
      ::_exit(0);
    }
    ::close(ends[1]);
    char good = 0;
    EXPECT_EQ(::read(ends[0], &good, 1), 1);
    EXPECT_EQ(good, 1) << "the child could not do its part";
    ::close(ends[0]);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  ~Sleeper() { kill(); }
  pid_t pid() const { return child_; }
  void kill() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    child_ = 0;
  }

 private:
  pid_t child_ = 0;
};

}  // namespace weft::os
