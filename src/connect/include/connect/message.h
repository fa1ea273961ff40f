// SPDX-License-Identifier: BSD-2-Clause
// Which control messages make and end a connection, and what is their format?
//
// Bytes of a message, numbers in little-endian order:
//    0  version
//    1  kind
//    2  length of the data, 2 bytes
//    4  zero, 4 bytes
//    8  token of the requesting end, 8 bytes
//   16  token of the accepting end, 8 bytes
//   24  sockaddr of the sender's endpoint, 32 bytes, or zeros
//   56  the program's data
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "os/socket_address.h"

namespace weft::connect {

// Bytes of a program that go along with a request, a reply or a rejection.
using ConnectData = std::vector<std::byte>;
inline constexpr std::size_t kMaxData = 256;
inline constexpr std::size_t kHeaderBytes = 56;
inline constexpr std::uint8_t kVersion = 1;

// Drawn at random by one end: distinguishes it from later ends at the same address. Never 0.
using Token = std::uint64_t;
Token new_token();

enum class ConnectKind : std::uint8_t {
  kRequest = 1,   // to the listener
  kPending = 2,   // from it: the program has the request
  kReject = 3,    // from it, or from the accepting endpoint
  kReply = 4,     // from the accepting endpoint
  kReady = 5,     // to it: data follow
  kFarewell = 6,  // from either: no more data
};

struct ConnectMessage {
  ConnectKind kind = ConnectKind::kRequest;
  Token origin = 0;        // of the requesting end
  Token target = 0;        // of the accepting end: with kReply, kReady and kFarewell
  os::SocketAddress name;  // of the sender's endpoint: with kRequest and kReply
  ConnectData data;        // at most kMaxData bytes
};

// The token of the end that a message is for, before that end has accepted its source; 0 when the
// bytes, which come from any host, name none. Nothing else has been checked.
Token addressee_of(std::span<const std::byte> bytes);

std::vector<std::byte> encode(const ConnectMessage& message);
// Nothing when the bytes, which come from any host, are no such message.
std::optional<ConnectMessage> decode(std::span<const std::byte> bytes);

}  // namespace weft::connect
