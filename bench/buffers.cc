// SPDX-License-Identifier: BSD-2-Clause
// How the buffers are laid out, filled and checked.
#include "buffers.h"

#include <cstring>

namespace weft::bench {
namespace {

constexpr std::size_t kPage = 4096;

std::size_t round_to_pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// Differs from its neighbours, between pages and between seeds.
std::byte pattern(std::uint8_t seed, std::size_t index) {
  return static_cast<std::byte>(seed + 7 * index + 13 * (index >> 8) + 29 * (index >> 16));
}

}  // namespace

Buffers::Buffers(const Endpoint& endpoint, std::size_t size, std::size_t count)
    : size_(size),
      count_(count),
      stride_(round_to_pages(size)),
      half_(stride_ * count),
      memory_(endpoint, 2 * half_) {}

RemoteBuffers Buffers::remote() const {
  return {memory_.remote_base(), memory_.remote_base() + half_, memory_.key()};
}

void Buffers::fill_source(std::uint8_t seed) {
  for (std::size_t i = 0; i < size_; ++i) source(0)[i] = pattern(seed, i);
}

void Buffers::clear_target() { std::memset(target(0), 0, size_); }

bool Buffers::holds(const std::byte* place, std::uint8_t seed) const {
  // The peer, or the device, wrote this memory behind the compiler's back.
  const volatile std::byte* bytes = place;
  for (std::size_t i = 0; i < size_; ++i) {
    if (bytes[i] != pattern(seed, i)) return false;
  }
  return true;
}

}  // namespace weft::bench
