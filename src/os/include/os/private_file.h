// SPDX-License-Identifier: BSD-2-Clause
// How does a process write a file that is its own, whatever others and the disk do?
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "os/fd.h"

namespace weft::os {

// A regular file that only this user may read, and that grows by whole records. One thread at a
// time; a forked child must not append.
class PrivateFile {
 public:
  PrivateFile() = default;

  // Makes `path`, or empties it, and holds it until this process ends or lets go (flock(2)).
  // Errors: EBUSY while another process holds it, or this one does already; ELOOP when it is a
  // symbolic link; EACCES when it is no regular file, belongs to another user or has other names;
  // others of open(2).
  static Result<PrivateFile> create(const std::string& path);

  // Appends all of it, or none: then the file ends where it ended before. Errors: ENOSPC, EDQUOT,
  // EFBIG (under RLIMIT_FSIZE, instead of a signal), others of write(2).
  Status append(std::span<const std::byte> bytes);

  // Bytes that were appended.
  std::uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }

 private:
  Fd fd_;
  std::string path_;
  std::uint64_t size_ = 0;
};

}  // namespace weft::os
