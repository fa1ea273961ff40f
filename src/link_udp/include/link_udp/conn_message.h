// SPDX-License-Identifier: BSD-2-Clause
// How do two endpoints agree on a flow, and how do they part?
//
// By messages of the connection manager (IBTA chapter 12) for the service type Reliable Datagram,
// as packets to queue pair 1 at the endpoint's own port: REQ and REP begin a flow, in which the one
// who asked sends requests and the other one answers; REJ says no, or that a flow is not known (any
// more); DREQ and DREP end it. A REQ that comes again asks whether the peer is there.
//
// Each end says in REQ and REP how much the way between them carries, as far as it knows, and
// believes the other one if that is less: larger packets go in pieces from then on
// (transport/pieces.h). When the one who sends requests has nothing under path, his REQ asks for a
// flow of smaller packets, and the REP says that it is one. Who knows the flow's tokens is
// believed. In the same way a REQ asks for larger packets when the way may carry more again, with a
// number, as what comes late must not be taken for a new one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "base/psn.h"
#include "link/service.h"
#include "os/udp_port.h"
#include "wire/cm_message.h"

namespace weft::udp {

// What an end tells of itself.
struct Introduction {
  std::uint32_t connection_id =
      0;  // of the flow, drawn at random: nobody who has the address later is mistaken
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
  std::size_t path_mtu = 0;  // of the flow: that it has, or is to have, as nothing is under way
  // How often its sender has asked for a larger one, modulo 256: the peer agrees to each time
  // once, and to none that it hears of late.
  std::uint8_t raises = 0;
  // The first control message of the flow, at most kMaxEarlyData bytes: it is heard even if the one
  // who asks does not live to hear the answer, which says that it was. The same in each REQ until
  // then; a DREQ takes back what nobody has heard.
  std::vector<std::byte> early_data = {};
};

// REP.
struct ConnRep {
  std::uint32_t connection_id = 0;  // of the one who asked
  Introduction me;
  Psn first;                 // number of the first packet that is to come
  std::size_t path_mtu = 0;  // that the flow has by now
  std::uint8_t raises = 0;   // the last one of the REQs that this end has agreed to
};

// REJ.
struct ConnRej {
  enum class Why : std::uint8_t {
    kNobody,   // no such service at that address
    kUnknown,  // packets came for a flow that is not known: it was given up, or it was another
               // process's
    kUnwanted  // the endpoint listens no more to this one
  };
  Why why = Why::kNobody;
  std::uint32_t connection_id = 0;  // of the one who asked; 0: not known
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

}  // namespace weft::udp
