// SPDX-License-Identifier: BSD-2-Clause
// Which of the answers to a read?
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace weft::transport {

// A set of answers, by their place in what was asked for: below kMost. Every function takes a place
// or a count in that range.
class AnswerSet {
 public:
  static constexpr std::uint32_t kMost = 256;

  AnswerSet() = default;
  // The `count` answers from `place` on.
  AnswerSet(std::uint32_t place, std::uint32_t count) {
    const std::uint32_t end = place + count;
    for (std::uint32_t i = 0; i < kWords; ++i) words_[i] = below(end, i) & ~below(place, i);
  }

  bool empty() const { return words_ == decltype(words_){}; }
  bool has(std::uint32_t place) const { return (words_[place / kBits] >> place % kBits & 1) != 0; }
  void add(std::uint32_t place) { words_[place / kBits] |= Word{1} << place % kBits; }
  void remove(std::uint32_t place) { words_[place / kBits] &= ~(Word{1} << place % kBits); }
  void add(const AnswerSet& others) {
    for (std::size_t i = 0; i < kWords; ++i) words_[i] |= others.words_[i];
  }
  AnswerSet without(const AnswerSet& others) const {
    AnswerSet rest;
    for (std::size_t i = 0; i < kWords; ++i) rest.words_[i] = words_[i] & ~others.words_[i];
    return rest;
  }
  // The first of them at `place` or behind it, or kMost.
  std::uint32_t first_from(std::uint32_t place) const { return seek(place, 0); }
  // The first that is not one of them at `place` or behind it, or kMost.
  std::uint32_t gap_from(std::uint32_t place) const { return seek(place, ~Word{0}); }

 private:
  using Word = std::uint64_t;
  static constexpr std::uint32_t kBits = 64;
  static constexpr std::uint32_t kWords = kMost / kBits;

  // The bits of that word that stand for places below `end`.
  static Word below(std::uint32_t end, std::uint32_t word) {
    if (end >= (word + 1) * kBits) return ~Word{0};
    return end <= word * kBits ? 0 : (Word{1} << end % kBits) - 1;
  }
  // The first place from there on whose bit is not that of `passed`, or kMost.
  std::uint32_t seek(std::uint32_t place, Word passed) const {
    for (std::uint32_t i = place / kBits; i < kWords; ++i) {
      const Word found = (words_[i] ^ passed) & ~below(place, i);
      if (found != 0) return i * kBits + static_cast<std::uint32_t>(std::countr_zero(found));
    }
    return kMost;
  }

  std::array<Word, kWords> words_{};
};

}  // namespace weft::transport
