// SPDX-License-Identifier: BSD-2-Clause
// Which object unmaps a piece of a shared file, or of address space? The Mapping that owns it.
#include "os/mapping.h"

#include <sys/mman.h>
#include <unistd.h>

#include "os/fd.h"

namespace weft::os {

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
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
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

void Mapping::reset() {
  if (base_ != nullptr) ::munmap(base_, length_);
  base_ = nullptr;
  length_ = 0;
}

}  // namespace weft::os
