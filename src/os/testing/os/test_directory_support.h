// SPDX-License-Identifier: BSD-2-Clause
// Where do tests keep shared files? In a directory that vanishes with its test.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace weft::os {

// A directory in shared memory. Processes that are forked meanwhile leave it to this one. Its path
// is empty when there is no room.
class TestDirectory {
 public:
  TestDirectory() {
    char name[] = "/dev/shm/weft-test-XXXXXX";
    if (::mkdtemp(name) != nullptr) path_ = name;
  }
  ~TestDirectory() {
    std::error_code ignored;
    if (::getpid() == creator_ && !path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TestDirectory(const TestDirectory&) = delete;
  TestDirectory& operator=(const TestDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  const pid_t creator_ = ::getpid();
};

}  // namespace weft::os
