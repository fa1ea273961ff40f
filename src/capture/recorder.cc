// SPDX-License-Identifier: BSD-2-Clause
// What does an endpoint do that reaches its peers without packets?
#include "capture/recorder.h"

#include <utility>

#include "peer.h"
#include "recorded_flow.h"
#include "recorded_inbox.h"

namespace weft::capture {

Recorder::Recorder(std::shared_ptr<Capture> capture, const RecorderOptions& options,
                   std::unique_ptr<link::PortLink> link)
    : link_(std::move(link)),
      peers_(std::make_unique<Peers>(std::move(capture), options)),
      inbox_(std::make_unique<RecordedInbox>(link_->inbox(), *peers_)) {}

Recorder::~Recorder() = default;

link::Inbox& Recorder::inbox() { return *inbox_; }

Result<std::unique_ptr<link::Flow>> Recorder::recorded(Result<std::unique_ptr<link::Flow>> flow,
                                                       const os::SocketAddress& peer) {
  if (!flow) return flow;
  return std::unique_ptr<link::Flow>(
      std::make_unique<RecordedFlow>(std::move(flow).value(), *peers_, peers_->at(peer)));
}

Result<std::unique_ptr<link::Flow>> Recorder::connect(const os::SocketAddress& peer) {
  return recorded(link_->connect(peer), peer);
}

Result<link::Membership> Recorder::join(const os::SocketAddress& group) {
  peers_->know(group);
  return link_->join(group);
}

Result<std::unique_ptr<link::Flow>> Recorder::connect_group(const os::SocketAddress& group) {
  peers_->know(group);
  return recorded(link_->connect_group(group), group);
}

void Recorder::record_sent(const os::SocketAddress& to, std::span<const std::byte> datagram) {
  if (!peers_->wanted()) return;
  peers_->own().write_connection_message(
      to, {const_cast<std::byte*>(datagram.data()), datagram.size()});
}

void Recorder::record_received(const os::SocketAddress& from, std::span<const std::byte> datagram) {
  if (!peers_->wanted()) return;
  RecordedPeer& peer = peers_->at(from);
  peer.end.write_connection_message(peer.own_path.source,
                                    {const_cast<std::byte*>(datagram.data()), datagram.size()});
}

}  // namespace weft::capture
