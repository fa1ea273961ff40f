// SPDX-License-Identifier: BSD-2-Clause
// How are buffers of the program copied, without ending the program when one is not mapped?
//
// Every copy between memory of the program in this process and memory of Weft goes through this
// file: the program may unmap a buffer, or protect it, at any time. Memory of another process is
// copied by os/process_memory.h.
//
// An access to a page that is not mapped raises SIGSEGV or SIGBUS. The instructions that may raise
// one stand in a table (weft_faults: each with the place where execution continues); the handler
// looks the instruction up and continues there. Every other fault is passed on to the action that
// the program had, as the kernel would have done it. A program that installs a handler later which
// does not pass on unknown faults is ended by an unmapped buffer.
//
// The kernel ends a process that causes one of these signals while the thread blocks it. So both
// are unblocked in each thread that copies, by its first copy, and again after kCopiesPerLook
// copies and polls if the program has blocked them since.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "base/types.h"

// Copies by instructions of this file's own escape the sanitizers: under these, and on other
// processors, a buffer is probed before it is copied.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__x86_64__)
#define WEFT_CHECKED_MOVES 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define WEFT_CHECKED_MOVES 0
#endif
#endif
#ifndef WEFT_CHECKED_MOVES
#define WEFT_CHECKED_MOVES 1
#endif

namespace weft::os {

// Installs the handler, once in a process; before the first use of the functions below. Any thread.
void handle_user_faults();

namespace probe {

// A look at the signal mask at every copy would take 170 ns, more than a whole send of 8 bytes.
inline constexpr int kCopiesPerLook = 4096;
// Until the mask of this thread is looked at again.
[[gnu::tls_model("initial-exec")]] inline constinit thread_local int copies_left = 0;
void unblock_faults();

}  // namespace probe

// Keeps SIGSEGV and SIGBUS unblocked in this thread: counts as a copy. For polls, so that a thread
// that waits for accesses of peers is ready for them.
inline void keep_faults_unblocked() {
  if (--probe::copies_left < 0) [[unlikely]]
    probe::unblock_faults();
}

namespace probe {

inline constexpr std::uintptr_t kPage = 4096;  // the smallest

// Longer copies are not slower by a call.
inline constexpr std::size_t kMostMoved = 128;

#if defined(__x86_64__)
// An entry of the table, in the section group of the function that the instruction belongs to:
// the instruction at the local label `at` continues at the C label `fault`. Both are relative.
#define WEFT_MAY_FAULT(at)                          \
  ".pushsection weft_faults, \"a?\", @progbits\n\t" \
  ".balign 4\n\t"                                   \
  ".long " at                                       \
  "b - .\n\t"                                       \
  ".long %l[fault] - .\n\t"                         \
  ".popsection\n\t"

// NOLINTBEGIN(hicpp-no-assembler): no C++ expression continues after a fault.
inline bool read(const void* at) {
  asm goto("1: cmpb $0, (%0)\n\t" WEFT_MAY_FAULT("1") : : "r"(at) : "cc" : fault);
  return true;
fault:
  return false;
}

// Writes the byte that was there.
inline bool write(void* at) {
  asm goto(
      "1: movb (%0), %%al\n"
      "2: movb %%al, (%0)\n\t" WEFT_MAY_FAULT("1") WEFT_MAY_FAULT("2")
      :
      : "r"(at)
      : "rax", "memory"
      : fault);
  return true;
fault:
  return false;
}
#else
bool read(const void* at);
bool write(void* at);
#endif

#if WEFT_CHECKED_MOVES
// Two moves of one width, which may overlap, from the first and the last bytes of `length`.
#define WEFT_MOVE_BOTH_ENDS(move, width)                                                        \
  asm goto("1: " move                                                                           \
           " (%1), %%xmm0\n"                                                                    \
           "2: " move " -" width                                                                \
           "(%1, %2), %%xmm1\n"                                                                 \
           "3: " move                                                                           \
           " %%xmm0, (%0)\n"                                                                    \
           "4: " move " %%xmm1, -" width "(%0, %2)\n\t" WEFT_MAY_FAULT("1") WEFT_MAY_FAULT("2") \
               WEFT_MAY_FAULT("3") WEFT_MAY_FAULT("4")                                          \
           :                                                                                    \
           : "r"(to), "r"(from), "r"(length)                                                    \
           : "xmm0", "xmm1", "memory"                                                           \
           : fault)

// Copies `length` bytes, at most kMostMoved, that do not overlap; false when a byte cannot be read
// or written. Some bytes may have been copied then. Two moves of fixed size that may overlap each
// other cover every length between their sizes, so there is no loop and no call below 32 bytes, and
// no element of a length that has a move of its own is ever seen half written.
[[gnu::always_inline]] inline bool move(void* to, const void* from, std::size_t length) {
  if (length >= 16) {
    for (std::size_t at = 16; at + 16 < length; at += 16) {
      asm goto(
          "1: movups (%1, %2), %%xmm0\n"
          "2: movups %%xmm0, (%0, %2)\n\t" WEFT_MAY_FAULT("1") WEFT_MAY_FAULT("2")
          :
          : "r"(to), "r"(from), "r"(at)
          : "xmm0", "memory"
          : fault);
    }
    WEFT_MOVE_BOTH_ENDS("movups", "16");
  } else if (length >= 8) {
    WEFT_MOVE_BOTH_ENDS("movq", "8");
  } else if (length >= 4) {
    WEFT_MOVE_BOTH_ENDS("movd", "4");
  } else if (length >= 2) {
    asm goto(
        "1: movzwl (%1), %%eax\n"
        "2: movzwl -2(%1, %2), %%ecx\n"
        "3: movw %%ax, (%0)\n"
        "4: movw %%cx, -2(%0, %2)\n\t" WEFT_MAY_FAULT("1") WEFT_MAY_FAULT("2") WEFT_MAY_FAULT("3")
            WEFT_MAY_FAULT("4")
        :
        : "r"(to), "r"(from), "r"(length)
        : "rax", "rcx", "memory"
        : fault);
  } else if (length != 0) {
    asm goto(
        "1: movzbl (%1), %%eax\n"
        "2: movb %%al, (%0)\n\t" WEFT_MAY_FAULT("1") WEFT_MAY_FAULT("2")
        :
        : "r"(to), "r"(from)
        : "rax", "memory"
        : fault);
  }
  return true;
fault:
  [[unlikely]] return false;
}
#undef WEFT_MOVE_BOTH_ENDS

// The same for more than kMostMoved bytes.
bool move_many(void* to, const void* from, std::size_t length);
#endif
// NOLINTEND(hicpp-no-assembler)

inline bool within_page(const void* base, std::size_t length) {
  const auto first = reinterpret_cast<std::uintptr_t>(base);
  return (first ^ (first + (length - 1))) < kPage;
}
// The same as below, of more than one page and of several SGEs.
bool pages_readable(const void* base, std::size_t length);
bool pages_writable(void* base, std::size_t length);
bool sges_readable(std::span<const LocalRange> sges);
bool sges_writable(std::span<const LocalRange> sges, std::size_t length);

}  // namespace probe

// True when all of these bytes can be read now.
inline bool readable(const void* base, std::size_t length) {
  if (length == 0) return true;
  keep_faults_unblocked();
  return probe::within_page(base, length) ? probe::read(base) : probe::pages_readable(base, length);
}
inline bool readable(std::span<const LocalRange> sges) {
  if (sges.size() != 1) return probe::sges_readable(sges);
  return readable(sges[0].base, sges[0].length);
}

// True when these bytes, which are going to be written, can be. No other thread may write them
// meanwhile. Of a list of SGEs its first `length` bytes.
inline bool writable(void* base, std::size_t length) {
  if (length == 0) return true;
  keep_faults_unblocked();
  return probe::within_page(base, length) ? probe::write(base)
                                          : probe::pages_writable(base, length);
}
inline bool writable(std::span<const LocalRange> sges, std::size_t length) {
  if (sges.size() != 1) return probe::sges_writable(sges, length);
  return writable(sges[0].base, length < sges[0].length ? length : sges[0].length);
}

namespace probe {

#if WEFT_CHECKED_MOVES
[[gnu::always_inline]] inline bool copy(void* to, const void* from, std::size_t length) {
  keep_faults_unblocked();
  if (length <= kMostMoved) [[likely]]
    return move(to, from, length);
  return move_many(to, from, length);
}
#else
inline bool copy(void* to, const void* from, std::size_t length) {
  if (length != 0) std::memcpy(to, from, length);
  return true;
}
#endif
inline constexpr bool kProbeFirst = WEFT_CHECKED_MOVES == 0;

}  // namespace probe

// Copies `length` bytes, which do not overlap, out of a buffer of the program, or into one. False
// when a byte of that buffer cannot be read or written; some bytes may have been copied then. The
// other buffer is mapped. The last bytes are written last: a thread that sees a new value in the
// last one sees all (which programs rely on that poll the end of a buffer for an RDMA write).
[[nodiscard, gnu::always_inline]] inline bool copy_from_user(void* to, const void* from,
                                                             std::size_t length) {
  return (!probe::kProbeFirst || readable(from, length)) && probe::copy(to, from, length);
}
[[nodiscard, gnu::always_inline]] inline bool copy_to_user(void* to, const void* from,
                                                           std::size_t length) {
  return (!probe::kProbeFirst || writable(to, length)) && probe::copy(to, from, length);
}

namespace probe {

bool gather_sges(void* out, std::span<const LocalRange> sges, std::size_t length,
                 std::size_t offset);
std::optional<std::size_t> scatter_sges(std::span<const LocalRange> sges, const void* in,
                                        std::size_t length, std::size_t offset);

}  // namespace probe

// Copies bytes [offset, offset + length) of a list of buffers of the program, which has as many, to
// `out`. False as above.
[[nodiscard]] inline bool gather(void* out, std::span<const LocalRange> sges, std::size_t length,
                                 std::size_t offset = 0) {
  const bool simple = sges.size() == 1 && offset == 0 && length <= sges[0].length;
  if (simple) [[likely]]
    return copy_from_user(out, sges[0].base, length);
  return probe::gather_sges(out, sges, length, offset);
}

// Copies up to `length` bytes from `in` into a list of buffers of the program, behind the first
// `offset` bytes of those. Returns how many fitted; nothing when a byte cannot be written.
[[nodiscard]] inline std::optional<std::size_t> scatter(std::span<const LocalRange> sges,
                                                        const void* in, std::size_t length,
                                                        std::size_t offset = 0) {
  const bool simple = sges.size() == 1 && offset == 0 && length <= sges[0].length;
  if (!simple) return probe::scatter_sges(sges, in, length, offset);
  if (!copy_to_user(sges[0].base, in, length)) return std::nullopt;
  return length;
}

}  // namespace weft::os
