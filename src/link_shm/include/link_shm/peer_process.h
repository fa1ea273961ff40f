// SPDX-License-Identifier: BSD-2-Clause
// Does a process id still mean the process at the other end?
#pragma once

#include <sys/types.h>

#include "os/clock.h"
#include "os/fd.h"
#include "os/shared_file.h"

namespace weft::shm {

// process_vm_readv(2) and process_vm_writev(2) name a process by its id, which the kernel gives to
// another process once the first one has ended. The peer holds a record lock of a mailbox file as
// long as it may be copied to and from, so the kernel can tell. Used by one thread at a time.
class PeerProcess {
 public:
  // The process `pid` (0: none), which held the lock of byte `lock` of `file` when it was found.
  PeerProcess(os::SharedFilePtr file, std::uint64_t lock, pid_t pid);

  pid_t pid() const { return pid_; }
  // Asks the kernel whether the process holds its lock. False also after execve(2), which closes
  // the file.
  bool holds_lock();
  // For use before a copy: what holds_lock() said, as long as that is at most 10 ms old.
  bool confirmed();
  // To be called when its memory has been read.
  void was_read() { unconfirmed_ = true; }
  // True if what was read until now came from this process and from no other one with its id. Asks
  // the kernel once after reads, and never again when the answer was no: by a process descriptor,
  // whose cost does not grow with the number of locks on the file, or by the lock where there is no
  // descriptor (before Linux 5.3, EMFILE) and when confirmed() would ask.
  bool reads_confirmed();

 private:
  bool stale() const;
  void open_descriptor();
  bool lives();

  os::SharedFilePtr file_;
  std::uint64_t lock_;
  pid_t pid_;
  bool is_own_;               // this process is its own peer
  bool unconfirmed_ = false;  // read, and the kernel was not asked yet
  bool lost_ = false;         // something was read that may be another process's
  bool descriptor_ = false;   // open_descriptor() was called
  os::Fd fd_;
  os::Time checked_{};  // when it was last found to hold its lock
};

}  // namespace weft::shm
