// SPDX-License-Identifier: BSD-2-Clause
// How do two processes of a test come to talk, by either type of reliable endpoint?
#pragma once

#include "fork_server.h"
#include "node.h"
#include "switchboard.h"

namespace weft::faults {

// One side of a conversation of two processes, by whichever type of endpoint. Ends the test when no
// conversation comes about.
class Talk {
 public:
  // Both sides call it with the two ends of a channel; one of them asks for the connection if there
  // is one. With `shares_receives` (FI_EP_RDM) receives are posted to a shared context.
  Talk(fi_ep_type type, const Channel& channel, bool asks, bool shares_receives = false);

  Node& node() const { return node_; }
  fid_ep* endpoint() const { return node_.connects() ? connected_.get() : node_.endpoint(); }
  // Where receives are posted.
  fid_ep* receives() const { return node_.connects() ? connected_.get() : node_.receives(); }
  fi_addr_t peer() const { return peer_; }
  // Connection events that are there; drives progress.
  void read_events();
  void close();

 private:
  ConnectionEvent await(std::uint32_t what);

  mutable Node node_;
  Switchboard switchboard_;
  Owned<fid_ep> connected_;
  fi_addr_t peer_ = 0;
};

}  // namespace weft::faults
