// SPDX-License-Identifier: BSD-2-Clause
// What does an endpoint answer to messages of its peers' connection managers?
#pragma once

#include "flow_table.h"
#include "rdm/conn_message.h"
#include "roce/packet_handler.h"

namespace weft::rdm {

// Begins, keeps and ends flows as their peers say. One thread at a time.
class Connections {
 public:
  Connections(Shared& shared, FlowTable& flows) : shared_(shared), flows_(flows) {}

  // A packet for queue pair 1. True when it was a message.
  bool take(const roce::PacketArrival& arrival);
  // A request came for a flow that is not known.
  void reject_unknown(std::uint32_t context, const roce::PacketArrival& arrival);

 private:
  void on_req(const ConnReq& req, const roce::Path& back);
  void on_repeated_req(RdmReceiver& in, const ConnReq& req, const roce::Path& back);
  void on_rep(const ConnRep& rep, const roce::Path& back);
  void on_rej(const ConnRej& rej, const roce::Path& back);
  void on_disconnect(const Disconnect& disconnect, const roce::Path& back);
  void reject(const ConnReq& req, ConnRej::Why why, const roce::Path& back);

  Shared& shared_;
  FlowTable& flows_;
  os::Time next_rejection_{};
};

}  // namespace weft::rdm
