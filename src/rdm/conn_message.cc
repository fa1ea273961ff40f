// SPDX-License-Identifier: BSD-2-Clause
// How do two endpoints agree on a flow, and how do they part?
#include "rdm/conn_message.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/path_mtu.h"
#include "wire/endian.h"
#include "wire/packet.h"

namespace weft::rdm {
namespace {

// The service that a REQ asks for: Weft's flows, of one kind.
constexpr std::uint64_t kServices = 0x5765'6674'0000'0000;  // "Weft"
constexpr std::uint8_t kReliableDatagramType = 2;
constexpr std::uint8_t kPrivateDataVersion = 5;

// In a DREQ's private data, beside a packet's number.
constexpr std::uint32_t kExpected = 0x8000'0000;

// In private data.
std::uint8_t mtu_code(std::size_t mtu) {
  return static_cast<std::uint8_t>(mtu / wire::kReliableDatagramMtuUnit);
}

std::size_t mtu_of(std::uint8_t code) {
  const std::size_t mtu = code * wire::kReliableDatagramMtuUnit;
  return mtu >= kLeastPathMtu && mtu <= wire::kMaxReliableDatagramMtu ? mtu : 0;
}

// The largest one that others know: 1 for 256 to 5 for 4096.
std::uint8_t usual_mtu_code(std::size_t mtu) {
  return static_cast<std::uint8_t>(std::bit_width(std::min(mtu, wire::kMaxPathMtu)) - 8);
}

// In private data.
constexpr std::size_t kFlowMtu = 2;
// In a REQ's.
constexpr std::size_t kEarlyDataLength = 3;
constexpr std::size_t kName = 8;
// In a REQ's, a byte of the name that is not used, and in a REP's.
constexpr std::size_t kChanges = kName + 1;
// An endpoint's name: family (4 or 6), port, scope, address.
constexpr std::size_t kNameBytes = 24;
constexpr std::size_t kEarlyData = kName + kNameBytes;

void write_name(const os::SocketAddress& name, std::byte* out) {
  const bool v6 = name.family() == AF_INET6;
  wire::store<std::uint8_t>(out, v6 ? 6 : 4);
  wire::store<std::uint16_t>(out + 2, name.port());
  if (v6) {
    const auto* raw = reinterpret_cast<const sockaddr_in6*>(name.get());
    wire::store<std::uint32_t>(out + 4, raw->sin6_scope_id);
    std::memcpy(out + 8, &raw->sin6_addr, 16);
  } else {
    std::memcpy(out + 8, &reinterpret_cast<const sockaddr_in*>(name.get())->sin_addr, 4);
  }
}

os::SocketAddress read_name(const std::byte* bytes) {
  const int family = wire::load<std::uint8_t>(bytes) == 4 ? AF_INET : AF_INET6;
  return os::SocketAddress::of_host(family, bytes + 8, wire::load<std::uint16_t>(bytes + 2),
                                    wire::load<std::uint32_t>(bytes + 4));
}

// Private data: version, MTU, MTU of the flow, bytes of early data (REQ), room, then perhaps a
// name and the early data (REQ).
void write_private(const Introduction& me, std::byte* out) {
  wire::store<std::uint8_t>(out, kPrivateDataVersion);
  wire::store<std::uint8_t>(out + 1, mtu_code(me.path_mtu));
  wire::store<std::uint32_t>(out + 4, me.room);
}

bool read_private(const std::byte* bytes, Introduction& me) {
  me.path_mtu = mtu_of(wire::load<std::uint8_t>(bytes + 1));
  me.room = wire::load<std::uint32_t>(bytes + 4);
  return wire::load<std::uint8_t>(bytes) == kPrivateDataVersion && me.path_mtu != 0;
}

wire::CmMad mad_of(const ConnReq& message) {
  wire::CmReq req;
  req.local_id = message.me.connection_id;
  req.ca_guid = message.me.station;
  req.service = kServices | static_cast<std::uint32_t>(message.service);
  req.queue_key = message.me.queue_key;
  req.qpn = message.me.queue_pair;
  req.eecn = message.me.context;
  req.transport = kReliableDatagramType;
  req.starting_psn = message.first.value();
  req.path_mtu = usual_mtu_code(message.me.path_mtu);
  req.retry_count = 7;
  req.rnr_retry = 7;
  req.pkey = wire::kDefaultPkey;
  req.responder_resources = req.initiator_depth = 16;
  req.primary.hop_limit = 64;
  write_private(message.me, req.data.data());
  wire::store<std::uint8_t>(req.data.data() + kFlowMtu, mtu_code(message.path_mtu));
  write_name(message.name, req.data.data() + kName);
  wire::store<std::uint8_t>(req.data.data() + kChanges, message.changes);
  const std::size_t early_data = std::min(message.early_data.size(), kMaxEarlyData);
  wire::store<std::uint8_t>(req.data.data() + kEarlyDataLength,
                            static_cast<std::uint8_t>(early_data));
  std::copy_n(message.early_data.begin(), early_data, req.data.begin() + kEarlyData);
  static_assert(kEarlyData + kMaxEarlyData <= sizeof req.data);
  return {0, message.me.connection_id, 0, req};
}

wire::CmMad mad_of(const ConnRep& message) {
  wire::CmRep rep;
  rep.local_id = message.me.connection_id;
  rep.ca_guid = message.me.station;
  rep.remote_id = message.connection_id;
  rep.queue_key = message.me.queue_key;
  rep.qpn = message.me.queue_pair;
  rep.eecn = message.me.context;
  rep.starting_psn = message.first.value();
  rep.responder_resources = rep.initiator_depth = 16;
  rep.rnr_retry = 7;
  write_private(message.me, rep.data.data());
  wire::store<std::uint8_t>(rep.data.data() + kFlowMtu, mtu_code(message.path_mtu));
  wire::store<std::uint8_t>(rep.data.data() + kChanges, message.changes);
  return {0, message.connection_id, 0, rep};
}

wire::CmMad mad_of(const ConnRej& message) {
  wire::CmRej rej;
  rej.remote_id = message.connection_id;
  rej.message = 2;
  switch (message.why) {
    case ConnRej::Why::kNoService:
      rej.reason = wire::CmReason::kInvalidService;
      break;
    case ConnRej::Why::kUnknown:
      rej.reason = wire::CmReason::kStale;
      break;
    case ConnRej::Why::kUnwanted:
      rej.reason = wire::CmReason::kConsumer;
      break;
  }
  wire::store<std::uint32_t>(rej.data.data(), message.context);
  return {0, message.connection_id, 0, rej};
}

wire::CmMad mad_of(const Disconnect& message) {
  if (message.answer) {
    wire::CmDrep drep;
    drep.local_id = message.sender_id;
    drep.remote_id = message.receiver_id;
    return {0, message.receiver_id, 0, drep};
  }
  wire::CmDreq dreq;
  dreq.local_id = message.sender_id;
  dreq.remote_id = message.receiver_id;
  if (message.expected) {
    wire::store<std::uint32_t>(dreq.data.data(), kExpected | message.expected->value());
  }
  return {0, message.sender_id, 0, dreq};
}

std::optional<ConnMessage> read(const wire::CmReq& req) {
  ConnReq message;
  if ((req.service & ~0xFFFF'FFFFULL) != kServices || req.transport != kReliableDatagramType) {
    return std::nullopt;
  }
  if (!read_private(req.data.data(), message.me)) return std::nullopt;
  message.path_mtu = mtu_of(wire::load<std::uint8_t>(req.data.data() + kFlowMtu));
  if (message.path_mtu == 0) return std::nullopt;
  const std::size_t early_data = wire::load<std::uint8_t>(req.data.data() + kEarlyDataLength);
  if (early_data > kMaxEarlyData) return std::nullopt;
  message.early_data.assign(req.data.begin() + kEarlyData,
                            req.data.begin() + kEarlyData + early_data);
  message.service = static_cast<link::Service>(req.service & 0xFFFF'FFFF);
  message.me.connection_id = req.local_id;
  message.me.station = req.ca_guid;
  message.me.queue_pair = req.qpn;
  message.me.context = req.eecn;
  message.me.queue_key = req.queue_key;
  message.first = Psn(req.starting_psn);
  message.name = read_name(req.data.data() + kName);
  message.changes = wire::load<std::uint8_t>(req.data.data() + kChanges);
  return message;
}

std::optional<ConnMessage> read(const wire::CmRep& rep) {
  ConnRep message;
  if (!read_private(rep.data.data(), message.me)) return std::nullopt;
  message.connection_id = rep.remote_id;
  message.me.connection_id = rep.local_id;
  message.me.station = rep.ca_guid;
  message.me.queue_pair = rep.qpn;
  message.me.context = rep.eecn;
  message.me.queue_key = rep.queue_key;
  message.first = Psn(rep.starting_psn);
  message.path_mtu = mtu_of(wire::load<std::uint8_t>(rep.data.data() + kFlowMtu));
  if (message.path_mtu == 0) return std::nullopt;
  message.changes = wire::load<std::uint8_t>(rep.data.data() + kChanges);
  return message;
}

std::optional<ConnMessage> read(const wire::CmRej& rej) {
  ConnRej message;
  message.connection_id = rej.remote_id;
  message.context = wire::load<std::uint32_t>(rej.data.data());
  message.why = ConnRej::Why::kNoService;
  if (rej.reason == wire::CmReason::kStale) message.why = ConnRej::Why::kUnknown;
  if (rej.reason == wire::CmReason::kConsumer) message.why = ConnRej::Why::kUnwanted;
  return message;
}

std::optional<ConnMessage> read(const wire::CmDreq& dreq) {
  Disconnect message{false, dreq.local_id, dreq.remote_id};
  const auto expected = wire::load<std::uint32_t>(dreq.data.data());
  if ((expected & kExpected) != 0) message.expected = Psn(expected & Psn::kMask);
  return message;
}

std::optional<ConnMessage> read(const wire::CmDrep& drep) {
  return Disconnect{true, drep.local_id, drep.remote_id};
}

// Those that concern no flow of Weft's own.
template <class Other>
std::optional<ConnMessage> read(const Other&) {
  return std::nullopt;
}

}  // namespace

std::array<std::byte, wire::kMadBytes> write_conn_message(const ConnMessage& message) {
  return wire::write_cm(std::visit([](const auto& each) { return mad_of(each); }, message));
}

std::optional<ConnMessage> read_conn_message(std::span<const std::byte> payload) {
  const auto mad = wire::parse_cm(payload);
  if (!mad) return std::nullopt;
  return std::visit([](const auto& each) { return read(each); }, mad->message);
}

}  // namespace weft::rdm
