// SPDX-License-Identifier: BSD-2-Clause
// How do two endpoints begin and end a flow?
//
// By messages of the connection manager (IBTA chapter 12) for the service type Reliable Datagram,
// as packets to queue pair 1 at the endpoint's own port. REQ and REP begin a flow, in which the
// sender of the REQ sends requests. REJ refuses it, or reports an unknown flow; DREQ and DREP end
// it. A repeated REQ is the keepalive.
//
// REQ and REP carry the path MTU that their sender knows: the smaller value holds. A REQ with a new
// number of changes asks for packets of another size, from an unused packet number on; the REP
// confirms it and says which packets were executed: the others are void, and their work is sent
// again in the new size. The number keeps a late REQ from being taken for a new one. Both
// connection ids authenticate these messages.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "base/psn.h"
#include "link/service.h"
#include "os/socket_address.h"
#include "wire/cm_message.h"

namespace weft::rdm {

// What an end tells of itself.
struct Introduction {
  // Of the flow, drawn at random: distinguishes it from flows of a later process at the address.
  std::uint32_t connection_id = 0;
  std::uint64_t station = 0;  // of the endpoint, drawn at random: all its flows have it
  std::uint32_t queue_pair = 0;
  std::uint32_t context = 0;  // end-to-end context of the flow, 24 bits
  std::uint32_t queue_key = 0;
  std::size_t path_mtu = 0;  // the largest that the way carries, as far as is known
  std::uint32_t room = 0;    // bytes of packets that it can take in while it does not look
};

// Bytes that a REQ has room for beside the introduction.
inline constexpr std::size_t kMaxEarlyData = 60;

// REQ.
struct ConnReq {
  Introduction me;
  os::SocketAddress name;  // of the endpoint that asks, as its peers know it
  link::Service service = link::Service::kReliableDatagram;
  std::size_t path_mtu = 0;  // of the flow: that it has, or is to have
  // How often its sender has asked for another one, modulo 256: the peer agrees to each time once,
  // and to none that it hears of late.
  std::uint8_t changes = 0;
  Psn first = {};  // of a change: the first packet of the new size
  // The first control message of the flow, at most kMaxEarlyData bytes: it is delivered even if the
  // sender ends before the REP, which acknowledges it. The same in each REQ until then; a DREQ
  // withdraws it if no REQ has been accepted.
  std::vector<std::byte> early_data = {};
};

// REP.
struct ConnRep {
  std::uint32_t connection_id = 0;  // of the sender of the REQ
  Introduction me;
  Psn first;  // the first packet that was not executed when the flow began, or last changed
  std::size_t path_mtu = 0;  // that the flow has by now
  std::uint8_t changes = 0;  // the last one of the REQs that this end has agreed to
};

// REJ.
struct ConnRej {
  enum class Why : std::uint8_t {
    kNoService,  // no such service at that address
    kUnknown,    // packets came for a flow that is not known: it was given up, or it was another
                 // process's
    kUnwanted    // the endpoint listens no more to this one
  };
  Why why = Why::kNoService;
  std::uint32_t connection_id = 0;  // of the sender of the REQ; 0: not known
  std::uint32_t context = 0;        // with kUnknown: what the packets carried
};

// DREQ, DREP.
struct Disconnect {
  bool answer = false;
  std::uint32_t sender_id = 0;
  std::uint32_t receiver_id = 0;  // 0: not known, as it has not answered
  // From the end that receives: all packets before that one have come, though the last
  // acknowledgement may be lost.
  std::optional<Psn> expected = {};
};

using ConnMessage = std::variant<ConnReq, ConnRep, ConnRej, Disconnect>;

// The payload of a packet that says it, and back: nothing for what says none of these.
std::array<std::byte, wire::kMadBytes> write_conn_message(const ConnMessage& message);
std::optional<ConnMessage> read_conn_message(std::span<const std::byte> payload);

}  // namespace weft::rdm
