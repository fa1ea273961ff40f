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

}  // namespace

int copy_process_memory(pid_t pid, CopyDirection direction, std::span<const LocalRange> local,
                        std::span<const LocalRange> remote) {
  if (local.size() > kMaxCopySges || remote.size() > kMaxCopySges) return EINVAL;
  const auto copy =
      direction == CopyDirection::kFromProcess ? ::process_vm_readv : ::process_vm_writev;
  std::size_t left = total_length(local);
  ssize_t done = copy(pid, reinterpret_cast<const iovec*>(local.data()), local.size(),
                      reinterpret_cast<const iovec*>(remote.data()), remote.size(), 0);
  if (done >= 0 && static_cast<std::size_t>(done) == left) [[likely]]
    return 0;
  Cursor own_list(local);
  Cursor other_list(remote);
  // The kernel may stop early at a page that is missing, or after 2 GiB: go on from there.
  for (;;) {
    if (done < 0 && errno != EINTR) return errno;
    if (done == 0) return EFAULT;
    const std::size_t moved = done < 0 ? 0 : static_cast<std::size_t>(done);
    left -= moved;
    if (left == 0) return 0;
    own_list.advance(moved);
    other_list.advance(moved);
    done = copy(pid, own_list.data(), own_list.size(), other_list.data(), other_list.size(), 0);
  }
}

const char* why_no_process_memory() {
  char from = 1;
  char to = 0;
  const LocalRange here{&to, 1};
  const LocalRange there{&from, 1};
  for (const CopyDirection direction : {CopyDirection::kFromProcess, CopyDirection::kToProcess}) {
    const int error = copy_process_memory(process_id(), direction, {&here, 1}, {&there, 1});
    if (error == 0) continue;
    return direction == CopyDirection::kFromProcess
               ? "process_vm_readv(2) is forbidden here (a seccomp profile)"
               : "process_vm_writev(2) is forbidden here (a seccomp profile)";
  }
  return nullptr;
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
