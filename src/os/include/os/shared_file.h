// SPDX-License-Identifier: BSD-2-Clause
// How do processes share a file whose owners the kernel vouches for?
//
// Every claim on a shared file (being its owner, holding a slot in it) is a POSIX record lock on
// one byte offset (fcntl(2), F_SETLK). The kernel drops such a lock exactly when its process ends,
// does not hand it to forked children, and names its holder to every process. So no process has to
// believe a process id in shared memory, and nothing stays claimed after kill -9.
//
// Two traps are handled here and nowhere else: closing any descriptor of a file drops all locks of
// the process on it (so a file is opened once per process and shared), and locks of one process
// never conflict with each other (so claims are also counted per process).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "base/result.h"
#include "os/fd.h"
#include "os/mapping.h"

namespace weft::os {

class SharedFile;
using SharedFilePtr = std::shared_ptr<SharedFile>;

// One shared file, open once in this process. All functions may be called by any thread.
class SharedFile {
 public:
  // Makes the file `path`, `size` bytes long, none of them backed yet, and claims byte 0 as its
  // owner. It appears under its name only when publish() is called. An abandoned file of the same
  // name is replaced then. Errors: those of open(2) and ftruncate(2); EFBIG under RLIMIT_FSIZE.
  static Result<SharedFilePtr> create(const std::string& path, std::uint64_t size);

  // Takes the place of a file where none can be made: claims and memory of this process alone, with
  // neither file nor descriptor.
  static SharedFilePtr create_nameless();

  // Opens the file `path`, or makes it with `size` bytes of zeros, none of them backed yet. All
  // processes that have joined own it together, and the last one removes it. Errors: those of
  // create() and open(); EBUSY when another process holds it for too long.
  static Result<SharedFilePtr> join(const std::string& path, std::uint64_t size);

  // Opens the existing file `path`, or finds that this process has it open already.
  // Errors: ENOENT, EACCES when it belongs to another user or is no regular file, others of
  // open(2).
  static Result<SharedFilePtr> open(const std::string& path);

  // Unlinks the file if this process created it, or is the last that joined. A forked child's copy
  // leaves everything alone.
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  // Gives a created file its name. Errors: EADDRINUSE when a live owner has that name.
  Status publish();
  // Takes the name away; mappings stay. Idempotent.
  void unlink();

  // Backs bytes [offset, offset + length) with memory, so that touching them cannot fail; the file
  // grows when they lie beyond its end. Errors: ENOSPC, EFBIG.
  Status reserve(std::uint64_t offset, std::uint64_t length);
  // Gives the memory of that range back; its bytes read as zero afterwards.
  void release(std::uint64_t offset, std::uint64_t length);
  // Copies between the file and this process's memory in the kernel, where an address that cannot
  // be read or written is an error and no signal. False: not all of it was copied.
  bool copy_out(std::uint64_t offset, void* to, std::size_t length) const;
  bool copy_in(std::uint64_t offset, const void* from, std::size_t length) const;
  // Maps that range. Errors: EINVAL when it reaches past the end of the file, those of mmap(2).
  Result<Mapping> map(std::uint64_t offset, std::size_t length) const;
  // Maps the pages of that range into reserved address space, where the first byte comes to the
  // offset `at`. Errors: those of map().
  Status map_into(const Mapping& reserved, std::size_t at, std::uint64_t offset,
                  std::size_t length) const;

  // Claims byte `offset`. False when another process, or another part of this one, has it.
  bool claim(std::uint64_t offset);
  // Gives a claim of this process up.
  void disclaim(std::uint64_t offset);
  // The process that claims byte `offset`, as this process numbers processes (0: a process that has
  // no number here); nothing when it is not claimed.
  std::optional<pid_t> holder(std::uint64_t offset) const;

  // True in a forked child: the claims, and what they protect, are the parent's.
  bool inherited() const;

  // Removes `directory` when this process ends, after its files, if it is empty then.
  static void remove_directory_at_exit(const std::string& directory);

  // True when the file at `path` has no living owner. False when it is gone or cannot be told.
  static bool abandoned(const std::string& path);
  // Unlinks the file at `path` when it has no living owner; true when it did.
  static bool remove_abandoned(const std::string& path);

 private:
  SharedFile(Fd fd, std::string path);
  static Result<SharedFilePtr> create_from(Fd fd, const std::string& path, std::uint64_t size);
  static Result<SharedFilePtr> adopt(Fd fd, const std::string& path);
  Status link_into_place();
  bool lock_owner(short type);
  bool join_owners();
  bool has_its_name() const;
  Status check_end(std::uint64_t end) const;
  bool remove_if_same();

  Fd fd_;
  const std::string path_;
  const pid_t process_;  // that opened it
  bool linked_ = false;
  bool joint_ = false;  // byte 0 belongs to all processes that have joined
  dev_t device_ = 0;
  ino_t inode_ = 0;
  mutable std::mutex mutex_;
  std::set<std::uint64_t> claims_;
};

}  // namespace weft::os
