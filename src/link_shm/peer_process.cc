// SPDX-License-Identifier: BSD-2-Clause
// Does a process id still mean the process at the other end?
#include "link_shm/peer_process.h"

#include <chrono>
#include <utility>

#include "os/event.h"
#include "os/process_memory.h"

namespace weft::shm {
namespace {

// Two ticks of the coarse clock at least. Process ids are given out in turn, so within that time no
// program gets one again, unless it is asked for by number (clone3(2), set_tid).
constexpr auto kTrusted = std::chrono::milliseconds(10);

}  // namespace

PeerProcess::PeerProcess(os::SharedFilePtr file, std::uint64_t lock, pid_t pid)
    : file_(std::move(file)), lock_(lock), pid_(pid), is_own_(pid == os::process_id()) {}

bool PeerProcess::stale() const { return os::coarse_now() - checked_ > kTrusted; }

bool PeerProcess::holds_lock() {
  const os::Time now = os::coarse_now();
  if (pid_ == 0 || file_->holder(lock_) != pid_) return false;
  checked_ = now;
  return true;
}

bool PeerProcess::confirmed() { return !stale() || holds_lock(); }

// The lock is looked at behind it: then the descriptor is that of the process that has the lock.
void PeerProcess::open_descriptor() {
  descriptor_ = true;
  os::Fd fd = os::watch_process(pid_);
  if (fd.valid() && holds_lock()) fd_ = std::move(fd);
}

bool PeerProcess::reads_confirmed() {
  if (std::exchange(unconfirmed_, false) && !lives()) lost_ = true;
  return !lost_;
}

bool PeerProcess::lives() {
  if (is_own_) return true;
  if (!descriptor_) open_descriptor();
  if (!fd_.valid() || stale()) return holds_lock();
  // Readable: the process has ended.
  return !os::wait_readable(fd_.get(), std::chrono::milliseconds(0));
}

}  // namespace weft::shm
