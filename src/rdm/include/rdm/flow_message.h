// SPDX-License-Identifier: BSD-2-Clause
// What do two endpoints say of a flow in messages of the connection manager?
//
// A flow is a connection of the service type Reliable Datagram (IBTA chapter 12), in which the
// sender of the REQ sends requests. REQ and REP say in their fields and private data what each end
// is. A change of the path MTU is a REQ for a new connection that continues the flow: it names the
// flow, the connection that it replaces, and the first packet number that was never used; the REP
// says which packets were executed. The others are void, and their work is sent again in the new
// size. Format: docs/formats/rdm.md.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "base/authorization.h"
#include "base/psn.h"
#include "os/socket_address.h"
#include "wire/cm_message.h"

namespace weft::rdm {

// The fields by which REQ and REP describe their sender.
struct Introduction {
  std::uint64_t endpoint_id = 0;  // of the endpoint, drawn at random: all its flows have it
  std::uint32_t queue_pair = 0;
  std::uint32_t context = 0;  // end-to-end context of the flow, 24 bits; not in a Continued one
  std::uint32_t queue_key = 0;
  std::size_t path_mtu = 0;  // REQ: the largest that is asked for; REP: that the flow has
  std::uint32_t room = 0;    // bytes of packets that it can take in while it does not look
};

// Which flow a REQ continues, if not a new one.
struct Continued {
  std::uint64_t identity = 0;    // of the flow: the transaction id of its first REQ; 0: none
  std::uint32_t connection = 0;  // communication id of the responder, which the REP replaces
};

// Shows that the requester has the authorization key that the responder must have, too; zeros
// without a key. No protection from a peer that has read a packet of another one.
struct AuthorizationProof {
  std::uint64_t nonce = 0;
  AuthorizationHash hash{};  // of the nonce, the requester's QPN and the port that is asked
};

// REQ.
struct FlowRequest {
  Introduction me;
  os::SocketAddress name;  // the sender's address, or any address: that of the packet
  Continued continued = {};
  Psn first = {};                   // of a continued flow: the first packet of the new size
  os::SocketAddress listener = {};  // that is asked; empty where the packet's destination says it
  AuthorizationProof proof = {};
};

// REP.
struct FlowReply {
  Introduction me;
  Psn first;  // the first packet that was not executed
};

// DREQ, or REJ where the requester is not refused before.
struct FlowEnd {
  // From the end that receives: all packets before that one have come, though the last
  // acknowledgement may be lost.
  std::optional<Psn> expected = {};
  bool refuses = false;    // the endpoint goes on, but takes nothing more from this peer
  bool other_key = false;  // the reason: another authorization key
};

// The service id of reliable datagrams: "Weft", 1.
inline constexpr std::uint64_t kFlowService = 0x5765'6674'0000'0001;

// The proof of a requester `me` with that key, or none, that asks a port. The nonce is random.
AuthorizationProof prove(const AuthorizationPtr& key, std::uint64_t nonce, const Introduction& me,
                         std::uint16_t port);
// Whether the requester has the same key as the responder, which was asked at that port.
bool is_proven(const AuthorizationPtr& key, const FlowRequest& request, std::uint16_t port);

// The messages that say it, but for what the connection manager fills in, and back: nothing for
// messages that say none of these.
wire::CmReq write_request(const FlowRequest& request);
std::optional<FlowRequest> read_request(const wire::CmReq& req);
wire::CmRep write_reply(const FlowReply& reply);
std::optional<FlowReply> read_reply(const wire::CmRep& rep);
// Private data. Any bytes are an end.
std::array<std::byte, 4> write_end(const FlowEnd& end);
FlowEnd read_end(std::span<const std::byte> data);

}  // namespace weft::rdm
