// SPDX-License-Identifier: BSD-2-Clause
// What do the flows of one endpoint share?
#pragma once

#include <cstdint>
#include <vector>

#include "base/budget.h"
#include "base/stats.h"
#include "cm/agent.h"
#include "link/inbox.h"
#include "memory/own_memory.h"
#include "named_operations.h"
#include "operation.h"
#include "os/clock.h"
#include "rdm/flow_message.h"
#include "rdm/host.h"
#include "rdm/options.h"

namespace weft::rdm {

class FlowConnections;
class FlowTable;
class PairedFlows;

// A receive that has ended.
struct EndedReceive {
  void* cookie = nullptr;
  int error = 0;
};

// An endpoint that was given up for dead at that address.
struct DeadEndpoint {
  os::SocketAddress address;
  std::uint64_t endpoint_id = 0;
};

// Sources whose flows to here end after the poll.
struct LeavingSources {
  std::vector<DeadEndpoint> dead;
  std::vector<std::uint32_t> refused;  // by their numbers
};

// The state of one endpoint. One thread at a time.
struct Shared {
  Shared(Host& out, cm::Agent& manager, const RdmOptions& chosen, const Introduction& self,
         Stats& counters)
      : host(out),
        agent(manager),
        output(out.output()),
        options(chosen),
        me(self),
        stats(counters),
        memory(chosen.regions, chosen.domain, chosen.served, chosen.number,
               weft::number_of(chosen.authorization)),
        packet_memory(chosen.packet_memory),
        message_memory(chosen.message_memory) {}

  // Whether peers' accesses are announced.
  bool counts(Access access) const {
    return access == Access::kRemoteRead ? options.counts_reads : options.counts_writes;
  }
  // The context of the connections of a flow: the number of its end-to-end context.
  static void* cm_context(std::uint32_t number) {
    return reinterpret_cast<void*>(std::uintptr_t{number});
  }
  static std::uint32_t number_of(const void* cm_context) {
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(cm_context));
  }

  Host& host;
  cm::Agent& agent;            // of the port
  roce::PacketOutput& output;  // of the host
  const RdmOptions options;
  const Introduction me;  // without what differs by flow
  Stats& stats;
  memory::OwnMemory memory;
  Budget packet_memory;
  Budget message_memory;
  FreeOperations free_operations;
  FlowTable* flows = nullptr;              // set by the table
  FlowConnections* connections = nullptr;  // set by FlowConnections
  PairedFlows* pairs = nullptr;            // set by PairedFlows
  NamedOperations named_operations;
  std::vector<EndedReceive> ended_receives;  // that the sink is to hear of
  LeavingSources leaving;
  link::InboxSink* sink = nullptr;  // of the current poll
  os::Time now{};                   // of the current poll
  os::Time emptied{};               // when nothing was left to be read
  bool closing = false;             // no message is taken in any more
};

}  // namespace weft::rdm
