// SPDX-License-Identifier: BSD-2-Clause
// Which file does a descriptor of the program stand for?
#pragma once

#include <compare>
#include <cstdint>

#include "base/result.h"

namespace weft::os {

// Equal for all descriptors of one file, and for no others while one of them is open.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  auto operator<=>(const FileIdentity&) const = default;  // NOLINT(modernize-use-nullptr)
};

// Errors: EBADF and others of fstat(2).
Result<FileIdentity> identify_file(int fd);

// Do these flags of open(2) make a missing object (O_CREAT), and refuse one that exists (O_EXCL)?
bool asks_to_create(int open_flags);
bool asks_for_new(int open_flags);

}  // namespace weft::os
