// SPDX-License-Identifier: BSD-2-Clause
// Which object unmaps a piece of a shared file? The Mapping that owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/result.h"

namespace weft::os {

// Owns a readable and writable mapping, shared of a file or private of no file, or nothing.
class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), length_(std::exchange(other.length_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping() { reset(); }

  // Maps bytes [offset, offset + length) of `fd`; offset is a multiple of the page size. Touching
  // bytes that the file does not have raises SIGBUS: reserve them first. Errors: those of mmap(2).
  static Result<Mapping> map(int fd, std::uint64_t offset, std::size_t length);

  // Maps `length` bytes of zeros that are this process's own and get memory when they are written.
  // Errors: those of mmap(2).
  static Result<Mapping> map_private(std::size_t length);

  // First mapped byte, or nullptr.
  std::byte* base() const { return base_; }
  // The object of type T at `offset`; the caller keeps within the mapping.
  template <class T>
  T* at(std::size_t offset) const {
    return reinterpret_cast<T*>(base_ + offset);
  }
  // Unmaps.
  void reset();

 private:
  Mapping(void* base, std::size_t length) : base_(static_cast<std::byte*>(base)), length_(length) {}

  std::byte* base_ = nullptr;
  std::size_t length_ = 0;
};

}  // namespace weft::os
