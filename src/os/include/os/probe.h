// SPDX-License-Identifier: BSD-2-Clause
// Can a buffer of the program be read or written, without ending the program if it cannot?
//
// The bytes of a buffer that the processor is about to copy are touched first, one of each page.
// The signal of a page that is not there (SIGSEGV, SIGBUS) is taken by a handler, which knows the
// touching instruction by the bytes behind it and lets it fail; every other fault is passed on to
// the action that the program had. A program that replaces the handler later and does not pass on
// what it does not know is ended by an unmapped buffer. A page that is unmapped between the touch
// and the copy is not noticed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/types.h"

namespace weft::os {

// Installs the handler, once in a process; before the first probe. Any thread.
void handle_failed_probes();

namespace probe {

inline constexpr std::uintptr_t kPage = 4096;  // the smallest

#if defined(__x86_64__)
// What the handler looks for: behind the instruction that failed comes a nop with this displacement
// (failed_probe() in probe.cc). The fixed registers make the instructions' bytes known.
inline bool read(const void* at) {
  std::uint32_t done;
  asm volatile(
      "movl $1, %%eax\n\t"
      "cmpb $0, (%%rdi)\n\t"
      "nopl 0x57454654(%%rax)"
      : "=&a"(done)
      : "D"(at)
      : "cc");
  return done != 0;
}
// Writes the byte that was there.
inline bool write(void* at) {
  std::uint32_t done;
  asm volatile(
      "movl $1, %%eax\n\t"
      "movb (%%rdi), %%cl\n\t"
      "movb %%cl, (%%rdi)\n\t"
      "nopl 0x57454654(%%rax)"
      : "=&a"(done)
      : "D"(at)
      : "rcx", "memory");
  return done != 0;
}
#else
bool read(const void* at);
bool write(void* at);
#endif

template <class Byte, class Touch>
bool each_page(Byte* base, std::size_t length, Touch touch) {
  if (length == 0) return true;
  if (!touch(base)) return false;
  const auto first = reinterpret_cast<std::uintptr_t>(base);
  const std::uintptr_t last = first + (length - 1);
  if (last < first) return false;
  for (std::uintptr_t page = (first | (kPage - 1)) + 1; page <= last && page != 0; page += kPage) {
    if (!touch(base + (page - first))) return false;
  }
  return true;
}

}  // namespace probe

// True when all of these bytes can be read now.
inline bool readable(const void* base, std::size_t length) {
  return probe::each_page(static_cast<const char*>(base), length, probe::read);
}
inline bool readable(std::span<const LocalRange> pieces) {
  for (const LocalRange& piece : pieces) {
    if (!readable(piece.base, piece.length)) return false;
  }
  return true;
}

// True when these bytes, which are going to be written, can be. No other thread may write them
// meanwhile. Of a list of pieces its first `length` bytes.
inline bool writable(void* base, std::size_t length) {
  return probe::each_page(static_cast<char*>(base), length, probe::write);
}
inline bool writable(std::span<const LocalRange> pieces, std::size_t length) {
  for (const LocalRange& piece : pieces) {
    const std::size_t part = piece.length < length ? piece.length : length;
    if (!writable(piece.base, part)) return false;
    length -= part;
  }
  return true;
}

}  // namespace weft::os
