// SPDX-License-Identifier: BSD-2-Clause
// Names of states and events: ibv_wc_status_str(3), ibv_port_state_str(3)
#include <infiniband/verbs.h>

#include "work/status.h"

extern "C" {

const char* ibv_wc_status_str(ibv_wc_status status) {
  return weft::work::describe(static_cast<weft::work::CompletionStatus>(status));
}
const char* ibv_port_state_str(ibv_port_state state) {
  return state == IBV_PORT_ACTIVE ? "PORT_ACTIVE" : "invalid state";
}
const char* ibv_node_type_str(ibv_node_type type) {
  return type == IBV_NODE_CA ? "InfiniBand channel adapter" : "unknown";
}

}  // extern "C"
