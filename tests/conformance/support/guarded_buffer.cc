// SPDX-License-Identifier: BSD-2-Clause
// How are patterns made and compared, fast enough for buffers of 64 MiB?
#include "guarded_buffer.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace weft::conformance {
namespace {

constexpr std::size_t kGuard = 128;
constexpr std::uint8_t kGuardByte = 0xA5;
constexpr std::uint8_t kBlankByte = 0x5C;

std::uint64_t pattern_word(std::uint64_t seed, std::size_t word) {
  std::uint64_t x = seed * 0x9E3779B97F4A7C15u + word * 0xBF58476D1CE4E5B9u + 1;
  x ^= x >> 29;
  x *= 0x94D049BB133111EBu;
  return x ^ (x >> 32);
}

std::string differs(std::size_t at, std::uint8_t found, std::uint8_t wanted) {
  return "byte " + std::to_string(at) + " is " + std::to_string(found) + ", expected " +
         std::to_string(wanted);
}

std::string check_constant(const std::uint8_t* from, std::size_t count, std::uint8_t wanted) {
  const auto* end = from + count;
  const auto* bad = std::find_if(from, end, [wanted](std::uint8_t b) { return b != wanted; });
  if (bad == end) return {};
  return differs(static_cast<std::size_t>(bad - from), *bad, wanted);
}

std::size_t front_of(const std::uint8_t* storage, std::size_t misalignment) {
  const auto address = std::bit_cast<std::uintptr_t>(storage) + kGuard;
  return kGuard + ((64 - address % 64) % 64) + misalignment;
}

}  // namespace

std::uint8_t pattern_byte(std::uint64_t seed, std::size_t index) {
  return static_cast<std::uint8_t>(pattern_word(seed, index / 8) >> (8 * (index % 8)));
}

GuardedBuffer::GuardedBuffer(std::size_t length, std::size_t misalignment)
    : length_(length), front_(0), storage_(length + 2 * kGuard + 64 + misalignment, kGuardByte) {
  front_ = front_of(storage_.data(), misalignment);
  if (length > 0) std::memset(data(), kBlankByte, length);
}

void GuardedBuffer::fill(std::uint64_t seed, std::size_t offset, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 8) {
    const std::uint64_t word = pattern_word(seed, i / 8);
    std::memcpy(data() + offset + i, &word, std::min<std::size_t>(8, count - i));
  }
}

std::string GuardedBuffer::check_pattern(std::uint64_t seed, std::size_t offset, std::size_t count,
                                         std::size_t skip) const {
  for (std::size_t i = 0; i < count; i += 8) {
    const std::uint64_t word = pattern_word(seed, (skip + i) / 8);
    const std::size_t step = std::min<std::size_t>(8, count - i);
    if (std::memcmp(data() + offset + i, &word, step) == 0) continue;
    std::size_t bad = i;
    while (data()[offset + bad] == pattern_byte(seed, skip + bad)) ++bad;
    return "of " + std::to_string(count) + " bytes at offset " + std::to_string(offset) + ", " +
           differs(bad, data()[offset + bad], pattern_byte(seed, skip + bad));
  }
  return {};
}

std::string GuardedBuffer::check_blank(std::size_t offset, std::size_t count) const {
  const std::string bad = check_constant(data() + offset, count, kBlankByte);
  if (bad.empty()) return bad;
  return "should be untouched from offset " + std::to_string(offset) + ": " + bad;
}

std::string GuardedBuffer::check_guards() const {
  const std::string front = check_constant(storage_.data(), front_, kGuardByte);
  if (!front.empty()) return "guard before the buffer: " + front;
  const std::size_t end = front_ + length_;
  const std::string back = check_constant(storage_.data() + end, storage_.size() - end, kGuardByte);
  return back.empty() ? back : "guard after the buffer: " + back;
}

}  // namespace weft::conformance
