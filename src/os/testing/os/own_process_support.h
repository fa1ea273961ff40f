// SPDX-License-Identifier: BSD-2-Clause
// How does a test do what it may do only in a process of its own, such as having networks?
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>

#include "os/fd.h"

namespace weft::os {

// Runs `body`, a part of a test, in a child process, where it returns false if it may not have what
// it needs: then the test is skipped, with a word on what that is. What fails there fails here.
inline void in_own_process(const char* needs, const std::function<bool()>& body) {
  constexpr int kNotPermitted = 77;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (!body()) ::_exit(kNotPermitted);
    ::fflush(nullptr);
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotPermitted) {
    GTEST_SKIP() << needs << " may not be made here";
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "see what the child said";
}

inline bool write_text(const char* path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  return file.good();
}

// Gives this process, which keeps its user and group, a namespace of each kind in `kinds`
// (CLONE_NEW*); false when it may not.
inline bool enter_namespaces(int kinds) {
  const std::string user = std::to_string(::geteuid());
  const std::string group = std::to_string(::getegid());
  if (::unshare(kinds) == 0) return true;
  // An unprivileged process may map its own group only once it cannot change the others.
  return ::unshare(CLONE_NEWUSER | kinds) == 0 && write_text("/proc/self/setgroups", "deny") &&
         write_text("/proc/self/gid_map", group + " " + group + " 1") &&
         write_text("/proc/self/uid_map", user + " " + user + " 1");
}

// Gives this process an empty /dev/shm, with those options of tmpfs(5), and an empty /run of its
// own; false when it may not.
inline bool enter_empty_directories(const std::string& options = "size=16m") {
  return enter_namespaces(CLONE_NEWNS) &&
         ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("none", "/dev/shm", "tmpfs", 0, ("mode=1777," + options).c_str()) == 0 &&
         ::mount("none", "/run", "tmpfs", 0, "mode=0755") == 0;
}

// Keeps all room of a file system but `left` bytes while it lives.
class FullFileSystem {
 public:
  explicit FullFileSystem(const std::string& directory, std::size_t left = 0) {
    struct statvfs now {};
    EXPECT_EQ(::statvfs(directory.c_str(), &now), 0);
    const std::size_t bytes = now.f_bavail * now.f_frsize - left;
    file_.reset(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    EXPECT_EQ(::fallocate(file_.get(), 0, 0, static_cast<off_t>(bytes)), 0);
  }

 private:
  Fd file_;
};

// False when this process may not do without its capabilities.
inline bool give_up_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const std::array<__user_cap_data_struct, 2> none{};
  return ::syscall(SYS_capset, &header, none.data()) == 0;
}

// Has this process lock all its memory; false when it may not. A sanitizer locks none.
inline bool lock_memory(int flags = MCL_CURRENT | MCL_FUTURE) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static_cast<void>(flags);
  return false;
#else
  return ::mlockall(flags) == 0;
#endif
}

// Bytes of this process that are in memory.
inline std::size_t resident_bytes() {
  std::size_t all = 0;
  std::size_t resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

// Leaves this process's network for an empty one; false when it may not.
inline bool enter_empty_network() {
  return ::unshare(CLONE_NEWNET) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0;
}

}  // namespace weft::os
