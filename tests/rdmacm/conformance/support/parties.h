// SPDX-License-Identifier: BSD-2-Clause
// How do a listener and a client of one process come to a connection?
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "address.h"
#include "channel.h"

namespace weft::rdmacm_conformance {

// A small queue pair of that type, whose sends all have a completion.
ibv_qp_init_attr pair_setup(ibv_qp_type type);
// A new id. Without a channel it is synchronous.
Owned<rdma_cm_id> new_id(rdma_event_channel* channel, rdma_port_space ps = RDMA_PS_TCP,
                         void* context = nullptr);
// An id of that channel that listens at that address.
Owned<rdma_cm_id> listen_at(Channel& channel, const char* host, rdma_port_space ps = RDMA_PS_TCP,
                            int backlog = 0);
// An id of that channel whose route to that address is resolved.
Owned<rdma_cm_id> resolved_to(Channel& channel, const Address& peer,
                              rdma_port_space ps = RDMA_PS_TCP);
// Parameters with that private data, which outlive them; depths of 1, 7 retries.
rdma_conn_param parameters_with(std::string_view data = {});
// The text with zeros behind, as private data arrive.
std::string padded(std::string_view text, std::size_t length);

// The next completion, which must come.
ibv_wc next_completion(ibv_cq& queue);

// How the parties differ from the usual ones.
struct PartiesSetup {
  const char* at = kIpv4Loopback;  // where the listener is bound
  const char* to = kIpv4Loopback;  // where the client connects
  rdma_port_space ps = RDMA_PS_TCP;
  bool have_pairs = true;
};

// Each with an event channel. The client's route is resolved.
class Parties {
 public:
  explicit Parties(const PartiesSetup& setup = {});
  Parties(const Parties&) = delete;
  Parties& operator=(const Parties&) = delete;

  // The client connects: the listener has a request, whose id is `server`.
  void ask(const rdma_conn_param& parameters);
  void ask() { ask(parameters_with()); }
  // The server accepts, and both learn that the connection is there. A client without a queue pair
  // confirms it.
  void establish(const rdma_conn_param& parameters);
  void establish();
  // A message from one end to the other arrives.
  static void expect_message(rdma_cm_id& from, rdma_cm_id& to, char octet);

  Channel listening;
  Channel connecting;
  Owned<rdma_cm_id> listener;
  Owned<rdma_cm_id> client;
  Owned<rdma_cm_id> server;
  Event request;  // of which the server is
  Event answer;   // that the client got: ESTABLISHED, or CONNECT_RESPONSE

 private:
  const PartiesSetup setup_;
};

}  // namespace weft::rdmacm_conformance
