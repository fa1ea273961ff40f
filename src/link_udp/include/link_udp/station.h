// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint send and receive over the network?
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/budget.h"
#include "base/result.h"
#include "link/flow.h"
#include "link/inbox.h"
#include "link/service.h"
#include "memory/access_guard.h"
#include "os/udp_socket.h"
#include "roce/packet_drops.h"
#include "wire/tap.h"

namespace weft::udp {

// Up to that it costs less to send a message than to ask first whether it is wanted, though it may
// have to be kept until it is.
inline constexpr std::size_t kEagerLimit = std::size_t{128} * 1024;

// Bytes that an endpoint keeps for its peers, beside unexpected messages (messaging::Options) and a
// few KiB for each flow. Packets behind a missing one and packets in pieces: without room for
// them they are lost, as a network loses packets. One flow may hold half of what is left.
inline constexpr BudgetRules kPacketMemory{std::size_t{64} << 20, 1, std::size_t{16} << 10};
// Messages that have come in part and answers that are not acknowledged: without room for them the
// peer finds this end not ready and tries again. Aliases of keys: without room they are not known.
// One flow may hold 1/32 of what is left.
inline constexpr BudgetRules kMessageMemory{std::size_t{128} << 20, 32, std::size_t{8} << 10};

// What a station is made of.
struct StationOptions {
  os::SocketAddress name;                            // of the endpoint, as peers know it
  DomainId domain;                                   // in which peers' keys are looked up
  std::shared_ptr<memory::RegionTableView> regions;  // of this process
  ServedAccess served;        // what peers may do to them through the station
  bool counts_reads = false;  // peers' accesses are announced
  bool counts_writes = false;
  std::size_t eager_limit = kEagerLimit;  // larger messages are offered, see message.h
  link::Service service = link::Service::kReliableDatagram;
  std::chrono::milliseconds connect_timeout{2000};  // for a peer that has not answered yet
  // A peer that is silent for so long has died, though its host does not say so.
  std::chrono::milliseconds peer_timeout{60'000};
  // After so long it is tried whether the way to a peer carries larger packets again (RFC 8899,
  // PMTU_RAISE_TIMER).
  std::chrono::milliseconds raise_interval{600'000};
  BudgetRules packet_memory = kPacketMemory;
  BudgetRules message_memory = kMessageMemory;
  std::uint32_t first_source = 0;  // its numbers of peers begin there
  wire::Tap* capture = nullptr;    // hears of all packets, if not null; outlives the station
  // Called, if not empty, before there is a flow to or from a peer, which may wait for this end
  // from then on. From within calls of the station, but not of its destructor.
  std::function<void()> met;
};

// What became of the packets that came: each is in one of roce::PacketDrops, or one of the first
// four of Taken.
//
// Packets that were taken.
struct Taken {
  std::uint64_t greetings = 0;  // of the manager of connections
  std::uint64_t requests = 0;
  std::uint64_t answers = 0;
  std::uint64_t cnps = 0;    // CNPs for packets of this endpoint
  std::uint64_t marked = 0;  // requests and answers that arrived ECN-marked
  // Of requests and answers, those that came to nothing, and why.
  std::uint64_t repeated = 0;   // were carried out before
  std::uint64_t early = 0;      // came while too much was missing, or after a refused one
  std::uint64_t refused = 0;    // were told so
  std::uint64_t unasked = 0;    // answer nothing that was asked
  std::uint64_t senseless = 0;  // carried a message that makes no sense
};

// For people: how many packets were dropped or came to nothing, by reason. Empty when none did.
std::string text_of(const roce::PacketDrops& drops, const Taken& taken);

// The Inbox of the UDP link, and its flows: RoCEv2 packets of reliable datagrams over a socket of
// the endpoint's own (IBTA 9.8, annex A17). Between Weft's endpoints only. One thread at a time;
// flows are destroyed before their station.
class Station : public link::Inbox {
 public:
  // Speaks over that socket, which has kSocketOptions. Errors: EMFILE and others of epoll and
  // eventfd.
  static Result<std::unique_ptr<Station>> create(os::UdpSocket socket,
                                                 const StationOptions& options);

  // The way to the endpoint at `peer`. What is asked for before it has answered stays pending, and
  // ends with EHOSTUNREACH when it does not answer in time. With `persists` the time is not
  // limited, but an ICMP port unreachable means that the peer has died. Errors: EHOSTUNREACH,
  // ENETUNREACH and others of udp_path_to(), EUSERS.
  virtual Result<std::unique_ptr<link::Flow>> connect(const os::SocketAddress& peer,
                                                      bool persists) = 0;
  virtual const roce::PacketDrops& drops() const = 0;
  virtual Taken taken() const = 0;
  // Packets that left.
  virtual std::uint64_t sent() const = 0;
};

}  // namespace weft::udp
