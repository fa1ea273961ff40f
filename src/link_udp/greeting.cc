// SPDX-License-Identifier: BSD-2-Clause
// How do two endpoints agree on a flow, and how do they part?
#include "link_udp/greeting.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/path_mtu.h"
#include "wire/endian.h"
#include "wire/packet.h"

namespace weft::udp {
namespace {

// The service that a REQ asks for: Weft's flows, of one kind.
constexpr std::uint64_t kServices = 0x5765'6674'0000'0000;  // "Weft"
constexpr std::uint8_t kReliableDatagramType = 2;
constexpr std::uint8_t kGreetingVersion = 4;

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
constexpr std::size_t kWordCount = 3;
constexpr std::size_t kName = 8;
// In a REQ's, a byte of the name that is not used, and in a REP's.
constexpr std::size_t kRaises = kName + 1;
// An endpoint's name: family (4 or 6), port, scope, address.
constexpr std::size_t kNameBytes = 24;
constexpr std::size_t kWords = kName + kNameBytes;

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

// Private data: version, MTU, MTU of the flow, bytes of words (REQ), room, then perhaps a
// name and the words (REQ).
void write_private(const Introduction& me, std::byte* out) {
  wire::store<std::uint8_t>(out, kGreetingVersion);
  wire::store<std::uint8_t>(out + 1, mtu_code(me.path_mtu));
  wire::store<std::uint32_t>(out + 4, me.room);
}

bool read_private(const std::byte* bytes, Introduction& me) {
  me.path_mtu = mtu_of(wire::load<std::uint8_t>(bytes + 1));
  me.room = wire::load<std::uint32_t>(bytes + 4);
  return wire::load<std::uint8_t>(bytes) == kGreetingVersion && me.path_mtu != 0;
}

wire::CmMad mad_of(const Hello& hello) {
  wire::CmReq req;
  req.local_id = hello.me.token;
  req.ca_guid = hello.me.station;
  req.service = kServices | static_cast<std::uint32_t>(hello.service);
  req.queue_key = hello.me.queue_key;
  req.qpn = hello.me.queue_pair;
  req.eecn = hello.me.context;
  req.transport = kReliableDatagramType;
  req.path_mtu = usual_mtu_code(hello.me.path_mtu);
  req.retry_count = 7;
  req.rnr_retry = 7;
  req.pkey = wire::kDefaultPkey;
  req.responder_resources = req.initiator_depth = 16;
  req.primary.hop_limit = 64;
  write_private(hello.me, req.data.data());
  wire::store<std::uint8_t>(req.data.data() + kFlowMtu, mtu_code(hello.path_mtu));
  write_name(hello.name, req.data.data() + kName);
  wire::store<std::uint8_t>(req.data.data() + kRaises, hello.raises);
  const std::size_t words = std::min(hello.words.size(), kMostWords);
  wire::store<std::uint8_t>(req.data.data() + kWordCount, static_cast<std::uint8_t>(words));
  std::copy_n(hello.words.begin(), words, req.data.begin() + kWords);
  static_assert(kWords + kMostWords <= sizeof req.data);
  return {0, hello.me.token, 0, req};
}

wire::CmMad mad_of(const Welcome& welcome) {
  wire::CmRep rep;
  rep.local_id = welcome.me.token;
  rep.ca_guid = welcome.me.station;
  rep.remote_id = welcome.token;
  rep.queue_key = welcome.me.queue_key;
  rep.qpn = welcome.me.queue_pair;
  rep.eecn = welcome.me.context;
  rep.starting_psn = welcome.first.value();
  rep.responder_resources = rep.initiator_depth = 16;
  rep.rnr_retry = 7;
  write_private(welcome.me, rep.data.data());
  wire::store<std::uint8_t>(rep.data.data() + kFlowMtu, mtu_code(welcome.path_mtu));
  wire::store<std::uint8_t>(rep.data.data() + kRaises, welcome.raises);
  return {0, welcome.token, 0, rep};
}

wire::CmMad mad_of(const Refusal& refusal) {
  wire::CmRej rej;
  rej.remote_id = refusal.token;
  rej.message = 2;
  switch (refusal.why) {
    case Refusal::Why::kNobody:
      rej.reason = wire::CmReason::kInvalidService;
      break;
    case Refusal::Why::kUnknown:
      rej.reason = wire::CmReason::kStale;
      break;
    case Refusal::Why::kUnwanted:
      rej.reason = wire::CmReason::kConsumer;
      break;
  }
  wire::store<std::uint32_t>(rej.data.data(), refusal.context);
  return {0, refusal.token, 0, rej};
}

wire::CmMad mad_of(const Farewell& farewell) {
  if (farewell.answer) {
    wire::CmDrep drep;
    drep.local_id = farewell.sender_token;
    drep.remote_id = farewell.receiver_token;
    return {0, farewell.receiver_token, 0, drep};
  }
  wire::CmDreq dreq;
  dreq.local_id = farewell.sender_token;
  dreq.remote_id = farewell.receiver_token;
  if (farewell.expected) {
    wire::store<std::uint32_t>(dreq.data.data(), kExpected | farewell.expected->value());
  }
  return {0, farewell.sender_token, 0, dreq};
}

std::optional<Greeting> read(const wire::CmReq& req) {
  Hello hello;
  if ((req.service & ~0xFFFF'FFFFULL) != kServices || req.transport != kReliableDatagramType) {
    return std::nullopt;
  }
  if (!read_private(req.data.data(), hello.me)) return std::nullopt;
  hello.path_mtu = mtu_of(wire::load<std::uint8_t>(req.data.data() + kFlowMtu));
  if (hello.path_mtu == 0) return std::nullopt;
  const std::size_t words = wire::load<std::uint8_t>(req.data.data() + kWordCount);
  if (words > kMostWords) return std::nullopt;
  hello.words.assign(req.data.begin() + kWords, req.data.begin() + kWords + words);
  hello.service = static_cast<link::Service>(req.service & 0xFFFF'FFFF);
  hello.me.token = req.local_id;
  hello.me.station = req.ca_guid;
  hello.me.queue_pair = req.qpn;
  hello.me.context = req.eecn;
  hello.me.queue_key = req.queue_key;
  hello.name = read_name(req.data.data() + kName);
  hello.raises = wire::load<std::uint8_t>(req.data.data() + kRaises);
  return hello;
}

std::optional<Greeting> read(const wire::CmRep& rep) {
  Welcome welcome;
  if (!read_private(rep.data.data(), welcome.me)) return std::nullopt;
  welcome.token = rep.remote_id;
  welcome.me.token = rep.local_id;
  welcome.me.station = rep.ca_guid;
  welcome.me.queue_pair = rep.qpn;
  welcome.me.context = rep.eecn;
  welcome.me.queue_key = rep.queue_key;
  welcome.first = Psn(rep.starting_psn);
  welcome.path_mtu = mtu_of(wire::load<std::uint8_t>(rep.data.data() + kFlowMtu));
  if (welcome.path_mtu == 0) return std::nullopt;
  welcome.raises = wire::load<std::uint8_t>(rep.data.data() + kRaises);
  return welcome;
}

std::optional<Greeting> read(const wire::CmRej& rej) {
  Refusal refusal;
  refusal.token = rej.remote_id;
  refusal.context = wire::load<std::uint32_t>(rej.data.data());
  refusal.why = Refusal::Why::kNobody;
  if (rej.reason == wire::CmReason::kStale) refusal.why = Refusal::Why::kUnknown;
  if (rej.reason == wire::CmReason::kConsumer) refusal.why = Refusal::Why::kUnwanted;
  return refusal;
}

std::optional<Greeting> read(const wire::CmDreq& dreq) {
  Farewell farewell{false, dreq.local_id, dreq.remote_id};
  const auto expected = wire::load<std::uint32_t>(dreq.data.data());
  if ((expected & kExpected) != 0) farewell.expected = Psn(expected & Psn::kMask);
  return farewell;
}

std::optional<Greeting> read(const wire::CmDrep& drep) {
  return Farewell{true, drep.local_id, drep.remote_id};
}

// Those that concern no flow of Weft's own.
template <class Other>
std::optional<Greeting> read(const Other&) {
  return std::nullopt;
}

}  // namespace

std::array<std::byte, wire::kMadBytes> write_greeting(const Greeting& greeting) {
  return wire::write_cm(std::visit([](const auto& each) { return mad_of(each); }, greeting));
}

std::optional<Greeting> read_greeting(std::span<const std::byte> payload) {
  const auto mad = wire::parse_cm(payload);
  if (!mad) return std::nullopt;
  return std::visit([](const auto& each) { return read(each); }, mad->message);
}

}  // namespace weft::udp
