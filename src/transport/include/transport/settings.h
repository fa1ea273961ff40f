// SPDX-License-Identifier: BSD-2-Clause
// What do the two ends of a flow agree on before its first packet?
#pragma once

#include <chrono>
#include <cstdint>

#include "base/psn.h"
#include "base/stats.h"
#include "base/time.h"
#include "wire/opcode.h"
#include "wire/packet.h"

namespace weft::transport {

using Duration = std::chrono::nanoseconds;

// One end of a flow: what ibv_modify_qp(3) calls the attributes of a queue pair, or what the ends
// of a reliable datagram flow told each other. Of unreliable connections only the members up to
// `first_expected` count.
struct Settings {
  // Any but kCongestion: Requester and Responder serve the reliable ones.
  wire::Transport kind = wire::Transport::kReliableConnection;
  std::uint32_t destination = 0;  // queue pair of the peer, 24 bits
  std::uint32_t source = 0;       // queue pair of this end: of reliable datagrams
  std::uint32_t context = 0;      // end-to-end context at the peer: of reliable datagrams, 24 bits
  std::uint32_t queue_key = 0;    // at the peer: of reliable datagrams
  std::uint16_t pkey = wire::kDefaultPkey;
  // Payload of a packet: 256, 512, 1024, 2048 or 4096; of reliable datagrams a multiple of 64 up to
  // wire::kMaxReliableDatagramMtu.
  std::size_t path_mtu = 1024;
  Psn first_sent;
  Psn first_expected;
  Stats* stats = &Stats::discarded();  // where the ends count their packets; outlives them

  // The peer is Weft, too: it keeps packets that arrive out of order, and says which ones it lacks
  // (Responder). Else it wants everything again from the first one that it lacks on.
  bool selective = false;

  unsigned max_reads = 16;  // reads and atomic operations that the peer remembers (max_rd_atomic)
  unsigned max_reads_of_peer = 16;  // that this end remembers (max_dest_rd_atomic)
  // How long nothing at all may be heard before it is tried again in the coarsest way, and how
  // often that may happen in a row: after (retries + 1) * ack_timeout without any progress the flow
  // is given up (IBTA 9.7.6.1.3). Before that, tries follow the measured round trip.
  Duration ack_timeout = std::chrono::milliseconds(67);
  unsigned retries = 7;
  // What is known of it before the first packet: how long the peer took to agree on the flow.
  Duration first_round_trip{0};
  unsigned rnr_retries = 7;  // how often a receiver may be found not ready in a row; 7: without end
  // How long a peer is to wait that finds no receive here: code of IBTA table 45.
  std::uint8_t rnr_timer = 12;
  unsigned max_window =
      512;  // packets in flight; below 2^23, and with `selective` at most kMaxHeld
};

// Long reads are asked for in parts of so many packets, or of more where more are in flight: their
// responses, too, must not be more than fit on the way. A read of so many is never divided.
inline constexpr std::uint32_t kReadPart = 64;
// Payload of a packet that every way carries, as far as this can be known: one for IPv6 takes
// packets of 1280 bytes (RFC 8200).
inline constexpr std::size_t kSurePathMtu = 1024;
// Packets behind a missing one that a selective responder keeps.
inline constexpr unsigned kMaxHeld = 1024;
inline constexpr unsigned kRnrRetryForever = 7;

// The time of an RNR NAK's timer code, 0 to 31 (IBTA table 45).
Duration rnr_wait(std::uint8_t code);
// The time of a local ACK timeout's code, 1 to 31; 0 means for ever (IBTA 9.7.6.1.3).
Duration ack_timeout(std::uint8_t code);

// The upper three bits of an AETH syndrome (IBTA 9.7.5.1.2).
inline constexpr std::uint8_t kSyndromeAck = 0x00;
inline constexpr std::uint8_t kSyndromeRnr = 0x20;
inline constexpr std::uint8_t kSyndromeNak = 0x60;
inline constexpr std::uint8_t kSyndromeKind = 0xE0;
// An acknowledgement that says nothing of credits.
inline constexpr std::uint8_t kNoCredits = 0x1F;

// Why a request was not carried out: the lower five bits of a NAK.
enum class Nak : std::uint8_t {
  kSequence = 0,
  kInvalidRequest = 1,
  kRemoteAccess = 2,
  kRemoteOperational = 3,
  // Between Weft's reliable datagrams: the target has given up what it had of a message, which goes
  // again from its first byte, behind a RESYNC.
  kBeginAgain = 5,
  // From here on, between Weft's ends (Settings::selective): kInvalidRequest, and from kRefusal on
  // kRemoteAccess, and which rule was broken.
  kInvalidByRule = 0x08,
  kRefusal = 0x10,
};

// In the message number of a NAK with kRemoteOperational, between Weft's reliable datagrams: a rule
// forbids the access of a read that was answered in part; the rule is in the lowest bits.
inline constexpr std::uint32_t kReadLostByRule = 0x800000;

}  // namespace weft::transport
