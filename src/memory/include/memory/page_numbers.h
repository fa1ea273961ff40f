// SPDX-License-Identifier: BSD-2-Clause
// By which number do all processes know a page of memory?
//
// A page of memory that several processes have mapped, or one process twice, has several virtual
// addresses. Its number is the sum of its virtual page number and of a shift, which depends on the
// mapping: all mappings of one page yield the same sum. Different pages may have the same number,
// as only the lower bits count.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace weft::memory {

inline constexpr std::uint64_t kNumberedPage = 4096;  // bytes; no system has smaller pages

// A shift that is known is not 0. With kShiftOfEachPage the pages of a range have different ones.
inline constexpr std::uint32_t kShiftKnown = 1u << 31;
inline constexpr std::uint32_t kShiftOfEachPage = 1u << 30;

// The shift of the pages of `length` bytes, at least one, at a virtual address of `process`.
// `private_shift` is that of memory which no other process has: a number of the process, the same
// for all that ask. Reads the mappings in /proc, which takes some 10 us; where these cannot be read
// the memory counts as private.
std::uint32_t page_shift(pid_t process, std::uint64_t address, std::uint64_t length,
                         std::uint32_t private_shift);

}  // namespace weft::memory
