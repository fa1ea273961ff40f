// SPDX-License-Identifier: BSD-2-Clause
// What do two endpoints say of a flow in messages of the connection manager?
#include "rdm/flow_message.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "base/path_mtu.h"
#include "wire/endian.h"
#include "wire/packet.h"

namespace weft::rdm {
namespace {

constexpr std::uint8_t kReliableDatagramType = 2;
constexpr std::uint8_t kPrivateDataVersion = 6;
// A REQ with the proof of an authorization key: older endpoints, which have none, refuse it.
constexpr std::uint8_t kKeyedVersion = 7;

// Places in private data: of REQ and REP, then of a REQ.
constexpr std::size_t kPathMtu = 1;
constexpr std::size_t kRoom = 4;
constexpr std::size_t kName = 8;  // family (4 or 6), 0, port, scope, address
constexpr std::size_t kNameBytes = 24;
constexpr std::size_t kIdentity = kName + kNameBytes;
constexpr std::size_t kConnection = kIdentity + 8;
constexpr std::size_t kListener = kConnection + 4;  // as kName, or zeros
constexpr std::size_t kNonce = kListener + kNameBytes;
constexpr std::size_t kHash = kNonce + 8;
static_assert(kHash + sizeof(AuthorizationHash) <= sizeof(wire::CmReq::data));

// Of a FlowEnd, beside a packet's number.
constexpr std::uint32_t kExpected = 0x8000'0000;
constexpr std::uint32_t kRefuses = 0x4000'0000;
constexpr std::uint32_t kOtherKey = 0x2000'0000;

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

void write_name(const os::SocketAddress& name, std::byte* out) {
  wire::store<std::uint8_t>(out, name.family() == AF_INET6 ? 6 : 4);
  wire::store<std::uint16_t>(out + 2, name.port());
  wire::store<std::uint32_t>(out + 4, name.scope());
  std::ranges::copy(name.host_bytes(), out + 8);
}

os::SocketAddress read_name(const std::byte* bytes) {
  const int family = wire::load<std::uint8_t>(bytes) == 4 ? AF_INET : AF_INET6;
  return os::SocketAddress::of_host(family, bytes + 8, wire::load<std::uint16_t>(bytes + 2),
                                    wire::load<std::uint32_t>(bytes + 4));
}

// The fields that REQ and REP have in common.
template <class Message>
void write_me(const Introduction& me, Message& message) {
  message.queue_key = me.queue_key;
  message.qpn = me.queue_pair;
  message.eecn = me.context;
  message.ca_guid = me.endpoint_id;
  message.rnr_retry = 7;
  message.responder_resources = message.initiator_depth = 16;
  wire::store<std::uint8_t>(message.data.data(), kPrivateDataVersion);
  wire::store<std::uint8_t>(message.data.data() + kPathMtu, mtu_code(me.path_mtu));
  wire::store<std::uint32_t>(message.data.data() + kRoom, me.room);
}

template <class Message>
std::optional<Introduction> read_me(const Message& message) {
  Introduction me;
  me.endpoint_id = message.ca_guid;
  me.queue_pair = message.qpn;
  me.context = message.eecn;
  me.queue_key = message.queue_key;
  me.path_mtu = mtu_of(wire::load<std::uint8_t>(message.data.data() + kPathMtu));
  me.room = wire::load<std::uint32_t>(message.data.data() + kRoom);
  const auto version = wire::load<std::uint8_t>(message.data.data());
  const bool keyed = std::is_same_v<Message, wire::CmReq> && version == kKeyedVersion;
  return (keyed || version == kPrivateDataVersion) && me.path_mtu != 0 ? std::optional(me)
                                                                       : std::nullopt;
}

void write_proof(const AuthorizationProof& proof, wire::CmReq& req) {
  if (proof.hash == AuthorizationHash{}) return;
  wire::store<std::uint8_t>(req.data.data(), kKeyedVersion);
  wire::store<std::uint64_t>(req.data.data() + kNonce, proof.nonce);
  std::ranges::copy(proof.hash, req.data.data() + kHash);
}

AuthorizationProof read_proof(const wire::CmReq& req) {
  AuthorizationProof proof;
  proof.nonce = wire::load<std::uint64_t>(req.data.data() + kNonce);
  std::copy_n(req.data.data() + kHash, proof.hash.size(), proof.hash.data());
  return proof;
}

}  // namespace

AuthorizationProof prove(const AuthorizationPtr& key, std::uint64_t nonce, const Introduction& me,
                         std::uint16_t port) {
  if (key == nullptr) return {};
  std::array<std::byte, 14> salt;
  wire::store<std::uint64_t>(salt.data(), nonce);
  wire::store<std::uint32_t>(salt.data() + 8, me.queue_pair);
  wire::store<std::uint16_t>(salt.data() + 12, port);
  return {nonce, key->hash(salt)};
}

bool is_proven(const AuthorizationPtr& key, const FlowRequest& request, std::uint16_t port) {
  return is_same(request.proof.hash, prove(key, request.proof.nonce, request.me, port).hash);
}

wire::CmReq write_request(const FlowRequest& request) {
  wire::CmReq req;
  req.service = kFlowService;
  req.transport = kReliableDatagramType;
  req.starting_psn = request.first.value();
  req.path_mtu = usual_mtu_code(request.me.path_mtu);
  req.retry_count = 7;
  req.pkey = wire::kDefaultPkey;
  req.primary.hop_limit = 64;
  write_me(request.me, req);
  // The context of a connection that lives in a REQ would mean that the peer has lost that one.
  if (request.continued.identity != 0) req.eecn = 0;
  write_name(request.name, req.data.data() + kName);
  wire::store<std::uint64_t>(req.data.data() + kIdentity, request.continued.identity);
  wire::store<std::uint32_t>(req.data.data() + kConnection, request.continued.connection);
  if (request.listener.length() != 0) write_name(request.listener, req.data.data() + kListener);
  write_proof(request.proof, req);
  return req;
}

std::optional<FlowRequest> read_request(const wire::CmReq& req) {
  const std::optional<Introduction> me = read_me(req);
  if (!me || req.transport != kReliableDatagramType) return std::nullopt;
  if (req.service >> 32 != kFlowService >> 32) return std::nullopt;
  FlowRequest request;
  request.me = *me;
  request.name = read_name(req.data.data() + kName);
  request.continued.identity = wire::load<std::uint64_t>(req.data.data() + kIdentity);
  request.continued.connection = wire::load<std::uint32_t>(req.data.data() + kConnection);
  request.first = Psn(req.starting_psn);
  request.proof = read_proof(req);
  const std::byte* const listener = req.data.data() + kListener;
  if (*listener != std::byte{}) request.listener = read_name(listener);
  return request;
}

wire::CmRep write_reply(const FlowReply& reply) {
  wire::CmRep rep;
  rep.starting_psn = reply.first.value();
  write_me(reply.me, rep);
  return rep;
}

std::optional<FlowReply> read_reply(const wire::CmRep& rep) {
  const std::optional<Introduction> me = read_me(rep);
  return me ? std::optional(FlowReply{*me, Psn(rep.starting_psn)}) : std::nullopt;
}

std::array<std::byte, 4> write_end(const FlowEnd& end) {
  std::array<std::byte, 4> data{};
  const std::uint32_t expected = end.expected ? kExpected | end.expected->value() : 0;
  wire::store<std::uint32_t>(
      data.data(), expected | (end.refuses ? kRefuses : 0) | (end.other_key ? kOtherKey : 0));
  return data;
}

FlowEnd read_end(std::span<const std::byte> data) {
  FlowEnd end;
  if (data.size() < 4) return end;
  const auto word = wire::load<std::uint32_t>(data.data());
  end.refuses = (word & kRefuses) != 0;
  end.other_key = end.refuses && (word & kOtherKey) != 0;
  if ((word & kExpected) != 0) end.expected = Psn(word);
  return end;
}

}  // namespace weft::rdm
