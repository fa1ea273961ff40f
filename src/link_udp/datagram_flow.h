// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint hold the way of datagrams to one peer, or to a group?
#pragma once

#include <memory>
#include <utility>

#include "datagram_sender.h"
#include "link/unreliable_flow.h"

namespace weft::udp {

// A flow to one target. The sender outlives it.
class DatagramFlow final : public link::UnreliableFlow {
 public:
  DatagramFlow(DatagramSender& sender, std::shared_ptr<DatagramTarget> target)
      : sender_(sender), target_(std::move(target)) {}
  ~DatagramFlow() override { sender_.finish(); }

  link::Outcome send(const link::SendRequest& request) override {
    return sender_.send(*target_, request);
  }
  bool ready() const override { return sender_.has_kept(); }
  void progress(link::FlowSink&) override { sender_.flush(); }
  // Of a peer that is not there the next send tells.
  link::PeerState check_peer(link::FlowSink&) override { return link::PeerState::kAlive; }

 private:
  DatagramSender& sender_;
  const std::shared_ptr<DatagramTarget> target_;
};

}  // namespace weft::udp
