// SPDX-License-Identifier: BSD-2-Clause
// How is memory of another process read and written without that process taking part?
#include "os/process_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/slices.h"
#include "os/cancellation.h"
#include "os/fd.h"
#include "os/mapping.h"

namespace weft::os {
namespace {

static_assert(sizeof(LocalRange) == sizeof(iovec));
static_assert(offsetof(LocalRange, length) == offsetof(iovec, iov_len));

constexpr std::size_t kMaxCopySges = 64;

// A list of SGEs that is consumed from its front.
class Cursor {
 public:
  explicit Cursor(std::span<const LocalRange> sges) : count_(sges.size()) {
    std::copy(sges.begin(), sges.end(), sges_);
  }
  const iovec* data() const { return reinterpret_cast<const iovec*>(sges_ + first_); }
  unsigned long size() const { return count_ - first_; }
  void advance(std::size_t length) {
    while (first_ < count_ && length >= sges_[first_].length) length -= sges_[first_++].length;
    if (first_ == count_) return;
    sges_[first_].base = static_cast<std::byte*>(sges_[first_].base) + length;
    sges_[first_].length -= length;
  }

 private:
  LocalRange sges_[kMaxCopySges];
  std::size_t count_;
  std::size_t first_ = 0;
};

// The usual call; everything else goes the long way.
bool copied_at_once(pid_t pid, CopyDirection direction, std::span<const LocalRange> local,
                    std::span<const LocalRange> remote) {
  if (local.size() != 1 || remote.size() != 1) return false;
  const auto* own_list = reinterpret_cast<const iovec*>(local.data());
  const auto* other_list = reinterpret_cast<const iovec*>(remote.data());
  const auto copy =
      direction == CopyDirection::kFromProcess ? ::process_vm_readv : ::process_vm_writev;
  const ssize_t done = copy(pid, own_list, 1, other_list, 1, 0);
  return done >= 0 && static_cast<std::size_t>(done) == local[0].length;
}

}  // namespace

int copy_process_memory(pid_t pid, CopyDirection direction, std::span<const LocalRange> local,
                        std::span<const LocalRange> remote) {
  if (copied_at_once(pid, direction, local, remote)) return 0;
  if (local.size() > kMaxCopySges || remote.size() > kMaxCopySges) return EINVAL;
  const auto copy =
      direction == CopyDirection::kFromProcess ? ::process_vm_readv : ::process_vm_writev;
  Cursor own_list(local);
  Cursor other_list(remote);
  std::size_t left = total_length(local);
  // The kernel may stop early at a page that is missing, or after 2 GiB: go on from there.
  while (left != 0) {
    const ssize_t done =
        copy(pid, own_list.data(), own_list.size(), other_list.data(), other_list.size(), 0);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return errno;
    if (done == 0) return EFAULT;
    left -= static_cast<std::size_t>(done);
    own_list.advance(static_cast<std::size_t>(done));
    other_list.advance(static_cast<std::size_t>(done));
  }
  return 0;
}

// Pages that msync(2) has to do nothing for, as MS_ASYNC does since Linux 2.6.19, it only looks
// for.
bool is_mapped(const void* base, std::size_t length) {
  const std::uintptr_t page = page_size();
  const auto address = reinterpret_cast<std::uintptr_t>(base);
  const std::uintptr_t begin = address & ~(page - 1);
  return length == 0 ||
         ::msync(reinterpret_cast<void*>(begin), address - begin + length, MS_ASYNC) == 0;
}

bool have_pages(const void* base, std::size_t length, CopyDirection direction) {
  constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ, _WRITE: Debian's headers may be older
  constexpr int kPopulateWrite = 23;
  const std::uintptr_t page = page_size();
  const auto begin = reinterpret_cast<std::uintptr_t>(base) & ~(page - 1);
  const auto end = (reinterpret_cast<std::uintptr_t>(base) + length + page - 1) & ~(page - 1);
  const int advice = direction == CopyDirection::kFromProcess ? kPopulateRead : kPopulateWrite;
  return end > begin && ::madvise(reinterpret_cast<void*>(begin), end - begin, advice) == 0;
}

pid_t process_id() { return ::getpid(); }

void allow_memory_access_by_peers() {
  const CancellationOff off;
  const Fd scope(::open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC));
  char level = 0;
  if (scope.valid() && ::read(scope.get(), &level, 1) == 1 && level == '1') {
    ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  }
}

}  // namespace weft::os
