// SPDX-License-Identifier: BSD-2-Clause
// How does a process publish memory under a name while it lives, and how do others map it?
//
// The memory is the pages of a file in a tmpfs. Its mode bits are the grants: the kernel checks
// them when another process opens it. A POSIX record lock (fcntl(2), F_SETLK) of the creator on
// bytes [0, length) tells every process that the creator lives, and how much of the file is its
// memory: the kernel drops the lock when the process ends, and does not hand it to forked children.
//
// Closing any descriptor of a file drops all locks of the process on it (os/shared_file.h). So a
// process opens its own files once: map_published() and sweep_published() recognise them, under any
// name, before they open one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "os/fd.h"
#include "os/file_identity.h"
#include "os/mapping.h"
#include "os/origin.h"

namespace weft::os {

// Memory of a published file in this process.
struct PublishedMemory {
  Mapping memory;            // whole pages of the file, from its first byte
  std::uint64_t length = 0;  // bytes that its creator published
  bool huge_pages = false;   // the file consists of huge pages (os/huge_pages.h)
};

// A file of this process. One thread at a time uses it; any thread may map it by its name.
class PublishedFile {
 public:
  // Makes a file without a name in `directory`, which is in a tmpfs, for `length` bytes: whole
  // pages, or with huge_pages whatever number. Errors: EFBIG under RLIMIT_FSIZE, those of open(2)
  // and ftruncate(2).
  static Result<std::unique_ptr<PublishedFile>> create(const std::string& directory,
                                                       std::uint64_t length, bool huge_pages);
  // Takes the name away; the memory stays. A forked child's copy leaves it alone. Done at the end
  // of the process, too.
  ~PublishedFile();
  PublishedFile(const PublishedFile&) = delete;
  PublishedFile& operator=(const PublishedFile&) = delete;

  // Backs the file with memory, so that touching it cannot fail, and maps it: at `at` and nowhere
  // else unless that is nullptr. Errors: ENOSPC; ENOMEM, also where huge pages are not to be had;
  // EINVAL when `at` is not free; others of fallocate(2) and mmap(2).
  Result<Mapping> map(void* at);

  // Gives the file the name `path`, in place of the one that it has, and the mode `grants`, of the
  // mode bits 0666, whatever the umask; its group is the effective one of this process. Errors:
  // EEXIST, others of linkat(2) and rename(2).
  Status publish(const std::string& path, unsigned grants);

  // Maps it as map_published() does. Any thread that keeps it from ending meanwhile.
  Result<PublishedMemory> map_again(bool writable, void* hint) const;
  // True in a forked child: it is the parent's.
  bool inherited() const { return origin_.inherited(); }

 private:
  PublishedFile(Fd fd, std::uint64_t length, bool huge_pages);
  Status prepare();

  Fd fd_;
  const std::uint64_t length_;
  const bool huge_pages_;
  const Origin origin_;
  FileIdentity identity_;
};

// Maps the file `path` of a living creator, which may be this process, at the hint if that is a
// free page. The kernel's check of the rights is that of an open(2) for reading or for both.
// Errors: ENOENT, also when its creator has ended; EACCES; EINVAL when it is no regular file, or
// its creator's length is not whole pages of the file; others of open(2) and mmap(2).
Result<PublishedMemory> map_published(const std::string& path, bool writable, void* hint);

// Removes names in `directory` that begin with `prefix`: those of regular files of the effective
// user whose creator has ended. A call looks at a bounded number of names, which are others the
// next time, and does not wait for anything.
void sweep_published(const std::string& directory, std::string_view prefix);

}  // namespace weft::os
