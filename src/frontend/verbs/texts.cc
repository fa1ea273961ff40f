// SPDX-License-Identifier: BSD-2-Clause
// How are states, events and types named? Programs print and compare these texts of libibverbs.
#include <array>
#include <cstddef>

#include "abi.h"

namespace {

template <std::size_t count>
const char* text_of(const std::array<const char*, count>& texts, int value) {
  const bool known = value >= 0 && static_cast<std::size_t>(value) < count;
  return known ? texts[static_cast<std::size_t>(value)] : "unknown";
}

constexpr auto kStatuses = std::to_array<const char*>({
    "success",
    "local length error",
    "local QP operation error",
    "local EE context operation error",
    "local protection error",
    "Work Request Flushed Error",
    "memory management operation error",
    "bad response error",
    "local access error",
    "remote invalid request error",
    "remote access error",
    "remote operation error",
    "transport retry counter exceeded",
    "RNR retry counter exceeded",
    "local RDD violation error",
    "remote invalid RD request",
    "aborted error",
    "invalid EE context number",
    "invalid EE context state",
    "fatal error",
    "response timeout error",
    "general error",
    "TM error",
    "TM software rendezvous",
});
static_assert(kStatuses.size() == IBV_WC_TM_RNDV_INCOMPLETE + 1);

constexpr auto kEvents = std::to_array<const char*>({
    "CQ error",
    "local work queue catastrophic error",
    "invalid request local work queue error",
    "local access violation work queue error",
    "communication established",
    "send queue drained",
    "path migrated",
    "path migration request error",
    "local catastrophic error",
    "port active",
    "port error",
    "LID change",
    "P_Key change",
    "SM change",
    "SRQ catastrophic error",
    "SRQ limit reached",
    "last WQE reached",
    "client reregistration",
    "GID table change",
    "WQ fatal",
});
static_assert(kEvents.size() == IBV_EVENT_WQ_FATAL + 1);

constexpr auto kNodeTypes = std::to_array<const char*>({
    "unknown",
    "InfiniBand channel adapter",
    "InfiniBand switch",
    "InfiniBand router",
    "iWARP NIC",
    "usNIC",
    "usNIC UDP",
    "unspecified",
});
static_assert(kNodeTypes.size() == IBV_NODE_UNSPECIFIED + 1);

constexpr auto kPortStates = std::to_array<const char*>({
    "no state change (NOP)",
    "down",
    "init",
    "armed",
    "active",
    "active defer",
});
static_assert(kPortStates.size() == IBV_PORT_ACTIVE_DEFER + 1);

}  // namespace

const char* ibv_wc_status_str(ibv_wc_status status) { return text_of(kStatuses, status); }

const char* ibv_event_type_str(ibv_event_type event) { return text_of(kEvents, event); }

const char* ibv_node_type_str(ibv_node_type node_type) { return text_of(kNodeTypes, node_type); }

const char* ibv_port_state_str(ibv_port_state port_state) {
  return text_of(kPortStates, port_state);
}
