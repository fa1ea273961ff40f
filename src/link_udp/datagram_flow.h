// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint hold the way of datagrams to one peer, or to a group?
#pragma once

#include <cerrno>
#include <memory>
#include <utility>

#include "datagram_sender.h"
#include "link/flow.h"

namespace weft::udp {

// A link::Flow to one target. The sender outlives it.
class DatagramFlow final : public link::Flow {
 public:
  DatagramFlow(DatagramSender& sender, std::shared_ptr<DatagramTarget> target)
      : sender_(sender), target_(std::move(target)) {}
  ~DatagramFlow() override { sender_.finish(); }

  link::Outcome send(const link::SendRequest& request) override {
    return sender_.send(*target_, request);
  }
  link::Outcome access(const link::AccessRequest&) override {
    return link::Outcome::failed(EOPNOTSUPP);
  }
  link::Outcome atomic(const link::AtomicRequest&) override {
    return link::Outcome::failed(EOPNOTSUPP);
  }
  bool busy() const override { return false; }
  bool ready() const override { return sender_.has_kept(); }
  void progress(link::FlowSink&) override { sender_.flush(); }
  // Of a peer that is not there the next send tells.
  link::PeerState check_peer(link::FlowSink&) override { return link::PeerState::kAlive; }
  void give_up(link::FlowSink&) override {}
  int process() const override { return 0; }
  void set_asleep(bool) override {}

 private:
  DatagramSender& sender_;
  const std::shared_ptr<DatagramTarget> target_;
};

}  // namespace weft::udp
