// SPDX-License-Identifier: BSD-2-Clause
// What can be chosen for an endpoint of reliable datagrams?
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/authorization.h"
#include "base/budget.h"
#include "base/options.h"
#include "memory/access_guard.h"
#include "os/udp_port.h"

namespace weft::rdm {

// Up to that it costs less to send a message than to ask first whether it is wanted, though it may
// have to be kept until it is.
inline constexpr std::size_t kEagerLimit = std::size_t{128} * 1024;
// Larger messages are sent from the program's buffer. Others are copied, and reported as sent
// before they arrive.
inline constexpr std::size_t kCopiedSend = 8192;

// Bytes that an endpoint keeps for its peers, beside unexpected messages (messaging::Options) and a
// few KiB for each flow. Packets behind a missing one: without room for them they are lost, as a
// network loses packets. One flow may hold half of what is left.
inline constexpr BudgetRules kPacketMemory{std::size_t{64} << 20, 1, std::size_t{16} << 10};
// Messages that have come in part and answers that are not acknowledged: without room for them the
// peer finds this end not ready and tries again. Aliases of keys: without room they are not known.
// One flow may hold 1/32 of what is left, and in any case one message of several packets that was
// copied by its sender (kGuaranteedMessage).
inline constexpr BudgetRules kMessageMemory{std::size_t{128} << 20, 32, std::size_t{8} << 10};

// What an endpoint of reliable datagrams is made of.
struct RdmOptions {
  os::SocketAddress name;                            // of the endpoint, as peers know it
  DomainId domain;                                   // in which peers' keys are looked up
  std::shared_ptr<memory::RegionTableView> regions;  // of this process
  ServedAccess served;                       // what peers may do to them through the endpoint
  std::uint32_t number = 0;                  // of the endpoint (memory::Through)
  AuthorizationPtr authorization = nullptr;  // the key that peers must have, or none
  bool counts_reads = false;                 // peers' accesses are announced
  bool counts_writes = false;
  std::size_t eager_limit = kEagerLimit;  // larger messages are offered, see message.h
  bool takes_flows = true;  // peers may begin flows without a connection of their programs
  const Options* device = &Options::defaults();  // timeouts; it outlives the endpoint
  // After so long it is tried whether the way to a peer carries larger packets again (RFC 8899,
  // PMTU_RAISE_TIMER).
  std::chrono::milliseconds raise_interval{600'000};
  BudgetRules packet_memory = kPacketMemory;
  BudgetRules message_memory = kMessageMemory;
  std::uint32_t first_source = 0;  // its numbers of peers begin there
  // Called, if not empty, before there is a flow to or from a peer, which may wait for this end
  // from then on. From within calls of the endpoint, but not of its destructor.
  std::function<void()> remote_peer_seen;
};

}  // namespace weft::rdm
