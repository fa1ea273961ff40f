// SPDX-License-Identifier: BSD-2-Clause
// Did exactly the bytes that should change, change, and to what?
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace weft::conformance {

// Byte `index` of the pattern that `seed` names. The pattern is the same in every process.
std::uint8_t pattern_byte(std::uint64_t seed, std::size_t index);

// A buffer between two guard zones. Offsets and lengths are bytes relative to data().
// Check functions return an empty string when all is well, else a sentence that says what is not.
class GuardedBuffer {
 public:
  // The data starts `misalignment` bytes past a cache line, so that odd addresses get tested too.
  explicit GuardedBuffer(std::size_t length, std::size_t misalignment = 0);

  std::uint8_t* data() { return storage_.data() + front_; }
  const std::uint8_t* data() const { return storage_.data() + front_; }
  std::size_t length() const { return length_; }

  // Writes the first bytes of a pattern at `offset`.
  void fill(std::uint64_t seed, std::size_t offset, std::size_t count);

  // The range holds the pattern without its first `skip` bytes, a multiple of 8.
  std::string check_pattern(std::uint64_t seed, std::size_t offset, std::size_t count,
                            std::size_t skip = 0) const;
  // No byte of the range was written since construction.
  std::string check_blank(std::size_t offset, std::size_t count) const;
  std::string check_guards() const;

 private:
  std::size_t length_;
  std::size_t front_;
  std::vector<std::uint8_t> storage_;
};

}  // namespace weft::conformance
