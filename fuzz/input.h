// SPDX-License-Identifier: BSD-2-Clause
// How does a fuzzer turn bytes into numbers and choices?
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace weft::fuzz {

// Ends the program with a reason: what must always hold did not.
[[noreturn]] inline void fail(const char* what) {
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}
inline void require(bool holds, const char* what) {
  if (!holds) fail(what);
}

// The bytes of one run, taken from the front; zeros when there are no more.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}
  bool empty() const { return left_ == 0; }

  std::uint8_t byte() {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }
  // A number below `end`.
  std::uint32_t below(std::uint32_t end) {
    return (byte() | (end > 256 ? std::uint32_t{byte()} << 8 : 0)) % end;
  }
  std::uint64_t word() {
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | byte();
    return value;
  }
  // A number of the kind that breaks things: limits, their neighbours, or anything.
  std::uint64_t number(std::initializer_list<std::uint64_t> limits) {
    const std::uint8_t choice = byte();
    if (choice >= 0xe0) return word();
    if (choice >= 0xc0) return std::uint64_t{1} << (choice & 31) << (byte() & 32);
    if (choice >= 0x80) return choice & 0x3f;
    const auto* limit = limits.begin() + (choice >> 2) % limits.size();
    return *limit + (choice & 3) - 1;
  }
  void bytes(void* out, std::size_t length) {
    const std::size_t take = length < left_ ? length : left_;
    if (take == 0) return;
    std::memcpy(out, data_, take);
    data_ += take;
    left_ -= take;
  }

 private:
  const std::uint8_t* data_;
  std::size_t left_;
};

}  // namespace weft::fuzz
