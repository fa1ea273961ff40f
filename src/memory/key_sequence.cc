// SPDX-License-Identifier: BSD-2-Clause
// Which keys do regions get whose keys the provider chooses?
#include "memory/key_sequence.h"

#include <atomic>
#include <bit>

#include "os/at_fork.h"
#include "os/runtime_dir.h"

namespace weft::memory {
namespace {

struct Round {
  std::uint32_t x;
  std::uint32_t y;
};

// The rotations by 8 and 3 are those of all Speck ciphers with words of 32 bits or more.
constexpr Round one_round(Round block, std::uint32_t key) {
  const std::uint32_t x = (std::rotr(block.x, 8) + block.y) ^ key;
  return {x, std::rotl(block.y, 3) ^ x};
}

struct KeySequence {
  KeyCipher cipher = random_cipher();
  std::atomic<std::uint64_t> count{0};
};

// Never destroyed: programs may register memory until they end.
KeySequence& sequence = *new KeySequence;

os::AtFork at_fork(2, [] { sequence.cipher = random_cipher(); });

}  // namespace

KeyCipher random_cipher() {
  const std::uint64_t low = os::random_number();
  const std::uint64_t high = os::random_number();
  return KeyCipher({static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32),
                    static_cast<std::uint32_t>(high), static_cast<std::uint32_t>(high >> 32)});
}

KeyCipher::KeyCipher(const std::array<std::uint32_t, 4>& secret) : round_keys_{} {
  std::array<std::uint32_t, 3> schedule = {secret[1], secret[2], secret[3]};
  std::uint32_t key = secret[0];
  for (std::uint32_t i = 0; i < kRounds; ++i) {
    round_keys_[i] = key;
    const Round next = one_round({schedule[i % 3], key}, i);
    schedule[i % 3] = next.x;
    key = next.y;
  }
}

std::uint64_t KeyCipher::encrypt(std::uint64_t block) const {
  Round state{static_cast<std::uint32_t>(block >> 32), static_cast<std::uint32_t>(block)};
  for (const std::uint32_t key : round_keys_) state = one_round(state, key);
  return std::uint64_t{state.x} << 32 | state.y;
}

RegionKey next_provider_key() {
  for (;;) {
    const std::uint64_t count = sequence.count.fetch_add(1, std::memory_order_relaxed);
    const std::uint64_t key = sequence.cipher.encrypt(count);
    // FI_KEY_NOTAVAIL, and what programs take for "no key".
    if (key != 0 && key != ~std::uint64_t{0}) return RegionKey{key};
  }
}

}  // namespace weft::memory
