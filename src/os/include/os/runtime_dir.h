// SPDX-License-Identifier: BSD-2-Clause
// Where do the shared files of this user and its namespaces lie?
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/result.h"

namespace weft::os {

// Makes sure that `base` (or, when empty, $WEFT_RUNTIME_DIR) is a directory of this user with mode
// 0700, and in it one directory for the namespaces of this process (network, processes, users):
// processes that share all three may reach each other's memory. Returns the latter. Errors: EACCES
// when it belongs to another user or is open to others, and those of mkdir(2).
//
// Where neither is set the base is /dev/shm/weft-UID, or else, when another user has taken that
// name, /run/user/UID/weft, if /run/user/UID is this user's with mode 0700. One of them that exists
// comes first. The environment has no say in that, so that all processes of a user meet.
Result<std::string> runtime_directory(const std::string& base);

// The directory of shared files while this process uses it, or none.
class RuntimeDirectory {
 public:
  // As runtime_directory(); removes files and directories that dead processes of this user left
  // behind, also those of other namespaces. There is none where the file system has no room, and
  // where neither `base` nor $WEFT_RUNTIME_DIR is set and the default cannot be had. Another
  // process may remove the directory again until a file is published in it: ENOENT then means that
  // all has to be done once more.
  static Result<RuntimeDirectory> open(const std::string& base);
  // There is none, for that reason.
  static RuntimeDirectory none(const Error& reason) { return {{}, reason}; }
  // Sweeps, and removes the directory if it is empty then. If the process ends before, that is done
  // when it does.
  ~RuntimeDirectory();
  RuntimeDirectory(RuntimeDirectory&& other) noexcept;
  RuntimeDirectory& operator=(RuntimeDirectory&&) = delete;

  // Empty when there is none.
  const std::string& path() const { return path_; }
  // Why there is none.
  const Error& problem() const { return problem_; }

 private:
  RuntimeDirectory(std::string path, Error problem)
      : path_(std::move(path)), problem_(std::move(problem)) {}

  std::string path_;
  Error problem_;
};

// Removes the shared files in `directory` whose owners are dead.
void sweep(const std::string& directory);

// A number that no other process can guess.
std::uint64_t random_number();

}  // namespace weft::os
