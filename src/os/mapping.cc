// SPDX-License-Identifier: BSD-2-Clause
// Which object unmaps a piece of a shared file, or of address space? The Mapping that owns it.
#include "os/mapping.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>

#include "base/types.h"
#include "os/at_fork.h"
#include "os/fd.h"

namespace weft::os {
namespace {

// Pages of the hugetlb pool are shared with forked children: a private one that is
// written after a fork needs another page, and without one the process ends.
int flags_of(const Placement& how) {
  if (how.fd >= 0) return MAP_SHARED;
  constexpr int kHugetlb = MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB | (21 << MAP_HUGE_SHIFT);
  return how.hugetlb ? kHugetlb : MAP_PRIVATE | MAP_ANONYMOUS;
}

// Threads that place mappings at once would take the range that another one has just given back.
// Files that are mapped hold their lock meanwhile (os/published_file.h), so this one comes last.
constexpr unsigned kInnermost = 0;
constinit std::mutex placing;
AtFork placing_at_fork(kInnermost, placing);

// Maps exactly there; nullptr, with errno, where that may not be, EEXIST when something is there.
// Linux before 4.17 takes the address for a hint.
void* map_exactly(void* at, std::size_t length, const Placement& how) {
  const int rights = PROT_READ | (how.writable ? PROT_WRITE : 0);
  void* const base = ::mmap(at, length, rights, flags_of(how) | MAP_FIXED_NOREPLACE, how.fd, 0);
  if (base == MAP_FAILED) return nullptr;
  if (base == at) return base;
  ::munmap(base, length);
  errno = EEXIST;
  return nullptr;
}

}  // namespace

std::size_t page_size() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  if (this != &other) {
    reset();
    base_ = std::exchange(other.base_, nullptr);
    length_ = std::exchange(other.length_, 0);
  }
  return *this;
}

Result<Mapping> Mapping::map(int fd, std::uint64_t offset, std::size_t length) {
  void* base =
      ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(offset));
  if (base == MAP_FAILED) return last_error("cannot map shared memory");
  return Mapping(base, length);
}

// Where the program locks all that it will map (mlockall(2)), a mapping counts as locked in full,
// with or without access. Only one that was unlocked first grows without that.
Result<Mapping> Mapping::reserve(std::size_t length) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  const std::size_t page = page_size();
  void* const seed = ::mmap(nullptr, page, PROT_NONE, kFlags, -1, 0);
  if (seed == MAP_FAILED) return last_error("cannot reserve address space");
  ::munlock(seed, page);
  void* const base = ::mremap(seed, page, length, MREMAP_MAYMOVE);
  if (base != MAP_FAILED) return Mapping(base, length);
  const Error error = last_error("cannot reserve address space");
  ::munmap(seed, page);
  return error;
}

Status Mapping::fill(std::size_t at, int fd, std::uint64_t offset, std::size_t length) const {
  const int kind = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
  void* const base = ::mmap(base_ + at, length, PROT_READ | PROT_WRITE, MAP_FIXED | kind, fd,
                            static_cast<off_t>(offset));
  if (base == MAP_FAILED) return last_error("cannot map shared memory");
  return {};
}

Result<Mapping> Mapping::map_private(std::size_t length) {
  auto memory = reserve(length);
  if (!memory) return memory;
  if (Status ok = memory.value().fill(0, -1, 0, length); !ok) return ok.error();
  return memory;
}

// Not over a reserved range: a mapping that fails there may leave a hole, which another thread
// takes. So the range is given back first, and another thread that is faster is noticed.
Result<Mapping> Mapping::place(std::size_t length, const Placement& how) {
  // A hint that is no page is none, MAP_FAILED among them.
  const bool is_page = reinterpret_cast<std::uintptr_t>(how.at) % page_size() == 0;
  if (how.at != nullptr && (how.only_there || is_page)) {
    void* const base = map_exactly(how.at, length, how);
    if (base != nullptr) return Mapping(base, length);
    const bool taken = errno == EEXIST || errno == EPERM;
    if (how.only_there && taken) return Error{EINVAL, "the address is not free"};
    if (how.only_there) return last_error("cannot map memory at the address");
  }
  constexpr int kTries = 16;
  const std::lock_guard guard(placing);
  for (int i = 0; i < kTries; ++i) {
    auto range = reserve(length + how.alignment);
    if (!range) return range;
    const auto begin = reinterpret_cast<std::uintptr_t>(range.value().base());
    range.value().reset();
    void* const at = reinterpret_cast<void*>(align_up(begin, how.alignment));
    void* const base = map_exactly(at, length, how);
    if (base != nullptr) return Mapping(base, length);
    if (errno != EEXIST) break;
  }
  return last_error("cannot map memory");
}

void Mapping::reset() {
  if (base_ != nullptr) ::munmap(base_, length_);
  base_ = nullptr;
  length_ = 0;
}

}  // namespace weft::os
