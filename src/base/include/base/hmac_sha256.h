// SPDX-License-Identifier: BSD-2-Clause
// What is the code that authenticates a message by a secret key? (RFC 2104, FIPS 180-4)
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace weft {

using Sha256Digest = std::array<std::byte, 32>;

// The longest key of hmac_sha256(): one block of the hash.
inline constexpr std::size_t kMaxHmacKey = 64;

Sha256Digest sha256(std::span<const std::byte> message);

// The key has at most kMaxHmacKey bytes. Nothing of it is left in memory afterwards.
Sha256Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message);

// Overwrites secret bytes that are not read any more, whatever the optimizer knows of them.
void wipe(std::span<std::byte> secret);

}  // namespace weft
