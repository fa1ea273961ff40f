// SPDX-License-Identifier: BSD-2-Clause
// Which object unmaps a piece of a shared file? The Mapping that owns it.
#include "os/mapping.h"

#include <sys/mman.h>

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

Result<Mapping> Mapping::map_private(std::size_t length) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* base = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, kFlags, -1, 0);
  if (base == MAP_FAILED) return last_error("cannot map memory");
  // A page of 2 MiB for the first byte that is touched would be most of what a small table costs.
  ::madvise(base, length, MADV_NOHUGEPAGE);
  return Mapping(base, length);
}

void Mapping::reset() {
  if (base_ != nullptr) ::munmap(base_, length_);
  base_ = nullptr;
  length_ = 0;
}

}  // namespace weft::os
