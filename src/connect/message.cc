// SPDX-License-Identifier: BSD-2-Clause
// What do the two ends of a connection say to each other, and how does it look on its way?
#include "connect/message.h"

#include <algorithm>
#include <cstring>
#include <random>

namespace weft::connect {
namespace {

constexpr std::size_t kNameAt = 24;
constexpr std::size_t kNameBytes = kHeaderBytes - kNameAt;

void put(std::byte* to, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) to[i] = static_cast<std::byte>(value >> (8 * i));
}

std::uint64_t get(const std::byte* from, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value |= std::uint64_t(from[i]) << (8 * i);
  return value;
}

bool known(std::uint8_t kind) {
  return kind >= static_cast<std::uint8_t>(ConnectKind::kRequest) &&
         kind <= static_cast<std::uint8_t>(ConnectKind::kFarewell);
}

bool needs_name(ConnectKind kind) {
  return kind == ConnectKind::kRequest || kind == ConnectKind::kReply;
}

bool needs_target(ConnectKind kind) {
  return kind == ConnectKind::kReply || kind == ConnectKind::kReady ||
         kind == ConnectKind::kFarewell;
}

}  // namespace

Token new_token() {
  std::random_device source;
  Token token = 0;
  while (token == 0) token = Token{source()} << 32 | source();
  return token;
}

std::vector<std::byte> encode(const ConnectMessage& message) {
  const std::size_t length = std::min(message.data.size(), kMaxData);
  std::vector<std::byte> bytes(kHeaderBytes + length);
  put(bytes.data(), kVersion, 1);
  put(bytes.data() + 1, static_cast<std::uint8_t>(message.kind), 1);
  put(bytes.data() + 2, length, 2);
  put(bytes.data() + 8, message.origin, 8);
  put(bytes.data() + 16, message.target, 8);
  std::memcpy(bytes.data() + kNameAt, message.name.get(), message.name.length());
  std::copy_n(message.data.begin(), length, bytes.begin() + kHeaderBytes);
  return bytes;
}

Token addressee_of(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeaderBytes) return 0;
  switch (static_cast<ConnectKind>(bytes[1])) {
    case ConnectKind::kPending:
    case ConnectKind::kReject:
    case ConnectKind::kReply:
      return get(bytes.data() + 8, 8);
    case ConnectKind::kReady:
      return get(bytes.data() + 16, 8);
    case ConnectKind::kRequest:   // for listeners
    case ConnectKind::kFarewell:  // of an accepted source only
      return 0;
  }
  return 0;
}

std::optional<ConnectMessage> decode(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeaderBytes || get(bytes.data(), 1) != kVersion) return std::nullopt;
  const auto kind = static_cast<std::uint8_t>(bytes[1]);
  const std::size_t length = get(bytes.data() + 2, 2);
  if (!known(kind) || length > kMaxData || length != bytes.size() - kHeaderBytes) {
    return std::nullopt;
  }
  ConnectMessage message;
  message.kind = static_cast<ConnectKind>(kind);
  message.origin = get(bytes.data() + 8, 8);
  message.target = get(bytes.data() + 16, 8);
  if (message.origin == 0 || (needs_target(message.kind) && message.target == 0)) {
    return std::nullopt;
  }
  if (needs_name(message.kind)) {
    const auto name = os::SocketAddress::parse(bytes.data() + kNameAt, kNameBytes);
    if (!name || name.value().port() == 0) return std::nullopt;
    message.name = name.value();
  }
  message.data.assign(bytes.begin() + kHeaderBytes, bytes.end());
  return message;
}

}  // namespace weft::connect
