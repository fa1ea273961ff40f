// SPDX-License-Identifier: BSD-2-Clause
// Which object unmaps a piece of a shared file, or of address space? The Mapping that owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/result.h"

namespace weft::os {

// Bytes of a page of memory.
std::size_t page_size();

// Where in the address space a mapping comes to lie, and what it maps.
struct Placement {
  int fd = -1;                // its first bytes; -1: zeros that are this process's own
  bool writable = true;       // the processor refuses writes otherwise
  bool hugetlb = false;       // zeros in 2 MiB pages of the pool, which forked children share
  void* at = nullptr;         // there, if it is a multiple of the page size and free
  bool only_there = false;    // or not at all
  std::size_t alignment = 1;  // elsewhere at a multiple of this power of two
};

// Owns a mapping of a file, readable and mostly writable, or a range of address space that is
// filled with such mappings piece by piece, or nothing.
class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), length_(std::exchange(other.length_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping() { reset(); }

  // Maps bytes [offset, offset + length) of `fd`; offset is a multiple of the page size. Touching
  // bytes that the file does not have raises SIGBUS: reserve them first. A program that locks its
  // memory (mlockall(2)) backs them all, used or not. Errors: those of mmap(2).
  static Result<Mapping> map(int fd, std::uint64_t offset, std::size_t length);

  // Takes `length` bytes of address space that may not be touched. They take no memory, not even
  // where the program locks its memory, and do not count against RLIMIT_MEMLOCK. Errors: those of
  // mmap(2).
  static Result<Mapping> reserve(std::size_t length);
  // Maps bytes [offset, offset + length) of `fd` at the offset `at` of reserve()'s range, as map()
  // does; with fd -1 zeros that are this process's own and get memory when they are written. All
  // numbers are multiples of the page size. Errors: those of mmap(2).
  Status fill(std::size_t at, int fd, std::uint64_t offset, std::size_t length) const;

  // Maps `length` bytes of zeros that are this process's own. Errors: those of mmap(2).
  static Result<Mapping> map_private(std::size_t length);

  // Maps `length` bytes, which are whole pages, so. Pages that the machine lacks are noticed here
  // (hugetlb), or when they are touched. Errors: EINVAL when the only place is not free; those of
  // mmap(2).
  static Result<Mapping> place(std::size_t length, const Placement& how);

  // First mapped byte, or nullptr.
  std::byte* base() const { return base_; }
  // The object of type T at `offset`; the caller keeps within the mapping.
  template <class T>
  T* at(std::size_t offset) const {
    return reinterpret_cast<T*>(base_ + offset);
  }
  // Mapped bytes.
  std::size_t length() const { return length_; }
  // Unmaps.
  void reset();

 private:
  Mapping(void* base, std::size_t length) : base_(static_cast<std::byte*>(base)), length_(length) {}

  std::byte* base_ = nullptr;
  std::size_t length_ = 0;
};

}  // namespace weft::os
