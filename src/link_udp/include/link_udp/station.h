// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint send and receive over the network?
#pragma once

#include <chrono>
#include <memory>

#include "base/result.h"
#include "link/flow.h"
#include "link/inbox.h"
#include "link/service.h"
#include "memory/table_user.h"
#include "os/udp_socket.h"

namespace weft::udp {

// What a station is made of.
struct StationOptions {
  os::SocketAddress name;                         // of the endpoint, as peers know it
  DomainId domain;                                // in which peers' keys are looked up
  std::shared_ptr<memory::ForeignTable> regions;  // of this process
  bool counts_reads = false;                      // peers' accesses are announced
  bool counts_writes = false;
  std::size_t eager_limit = 16384;  // larger messages are offered, and read by their receivers
  link::Service service = link::Service::kReliableDatagram;
  std::chrono::milliseconds connect_timeout{2000};  // for a peer that has not answered yet
};

// Packets that were not taken, and why, for those who want to know.
struct Drops {
  std::uint64_t malformed = 0;
  std::uint64_t wrong_crc = 0;
  std::uint64_t wrong_pkey = 0;
  std::uint64_t wrong_queue_pair = 0;
  std::uint64_t wrong_queue_key = 0;
  std::uint64_t unknown_flow = 0;
  std::uint64_t wrong_peer = 0;  // of a flow that somebody else has
};

// The Inbox of the UDP link, and its flows: RoCEv2 packets of reliable datagrams over a socket of
// the endpoint's own (IBTA 9.8, annex A17). Between Weft's endpoints only. One thread at a time;
// flows are destroyed before their station.
class Station : public link::Inbox {
 public:
  // Speaks over that socket. Errors: EMFILE and others of epoll and eventfd.
  static Result<std::unique_ptr<Station>> create(os::UdpSocket socket,
                                                 const StationOptions& options);

  // The way to the endpoint at `peer`. What is asked for before it has answered stays pending, and
  // ends with EHOSTUNREACH when it does not answer in time. With `insists` the time is not limited,
  // but when the peer's host says that nobody is there, it has died. Errors: EHOSTUNREACH,
  // ENETUNREACH and others of udp_path_to(), EUSERS.
  virtual Result<std::unique_ptr<link::Flow>> connect(const os::SocketAddress& peer,
                                                      bool insists) = 0;
  virtual const Drops& drops() const = 0;
};

}  // namespace weft::udp
