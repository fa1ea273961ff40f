// SPDX-License-Identifier: BSD-2-Clause
// What is the code that authenticates a message by a secret key?
#include "base/hmac_sha256.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

namespace weft {
namespace {

constexpr std::size_t kBlock = 64;
constexpr std::size_t kLengthAt = 56;  // in the last block: the message's length in bits
static_assert(kMaxHmacKey == kBlock);

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr std::uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

class Sha256 {
 public:
  ~Sha256() {
    wipe(std::as_writable_bytes(std::span(state_)));
    wipe(block_);
  }

  void add(std::span<const std::byte> bytes) {
    length_ += bytes.size();
    for (const std::byte byte : bytes) push(byte);
  }

  Sha256Digest finish() {
    const std::uint64_t bits = 8 * length_;
    push(std::byte{0x80});
    while (used_ != kLengthAt) push({});
    for (int shift = 56; shift >= 0; shift -= 8) push(static_cast<std::byte>(bits >> shift));
    Sha256Digest digest;
    for (std::size_t i = 0; i < digest.size(); ++i)
      digest[i] = static_cast<std::byte>(state_[i / 4] >> (24 - 8 * (i % 4)));
    return digest;
  }

 private:
  void push(std::byte byte) {
    block_[used_++] = byte;
    if (used_ == kBlock) compress();
  }

  // FIPS 180-4, section 6.2.2.
  void compress() {
    std::array<std::uint32_t, 64> w;
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = i < 16 ? word(i) : next_word(w, i);
    auto [a, b, c, d, e, f, g, h] = state_;
    for (std::size_t i = 0; i < w.size(); ++i) {
      const std::uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
      const std::uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRound[i] + w[i];
      const std::uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
      const std::uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
      h = std::exchange(g, std::exchange(f, std::exchange(e, d + t1)));
      d = std::exchange(c, std::exchange(b, std::exchange(a, t1 + t2)));
    }
    const std::uint32_t sums[] = {a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < state_.size(); ++i) state_[i] += sums[i];
    wipe(std::as_writable_bytes(std::span(w)));
    used_ = 0;
  }

  std::uint32_t word(std::size_t i) const {
    std::uint32_t value = 0;
    for (std::size_t j = 0; j < 4; ++j)
      value = value << 8 | std::to_integer<std::uint32_t>(block_[4 * i + j]);
    return value;
  }

  static std::uint32_t next_word(const std::array<std::uint32_t, 64>& w, std::size_t i) {
    const std::uint32_t x = w[i - 15];
    const std::uint32_t y = w[i - 2];
    return w[i - 16] + (std::rotr(x, 7) ^ std::rotr(x, 18) ^ x >> 3) + w[i - 7] +
           (std::rotr(y, 17) ^ std::rotr(y, 19) ^ y >> 10);
  }

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, kBlock> block_{};
  std::size_t used_ = 0;  // bytes of the block
  std::uint64_t length_ = 0;
};

// A pass of HMAC: the hash of the padded key, changed by `pad`, and of a message behind it.
Sha256Digest keyed_pass(std::span<const std::byte> key, std::byte pad,
                        std::span<const std::byte> message) {
  std::array<std::byte, kBlock> block{};
  std::ranges::copy(key, block.begin());
  for (std::byte& byte : block) byte ^= pad;
  Sha256 hash;
  hash.add(block);
  hash.add(message);
  wipe(block);
  return hash.finish();
}

}  // namespace

Sha256Digest sha256(std::span<const std::byte> message) {
  Sha256 hash;
  hash.add(message);
  return hash.finish();
}

Sha256Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message) {
  const Sha256Digest inner = keyed_pass(key, std::byte{0x36}, message);
  return keyed_pass(key, std::byte{0x5c}, inner);
}

void wipe(std::span<std::byte> secret) {
  for (volatile std::byte& byte : secret) byte = {};
}

}  // namespace weft
