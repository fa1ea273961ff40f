// SPDX-License-Identifier: BSD-2-Clause
// What does an endpoint do that reaches its peers without packets?
#include "capture/recorder.h"

#include <utility>

#include "peer.h"
#include "recorded_flow.h"
#include "recorded_inbox.h"

namespace weft::capture {

Recorder::Recorder(std::shared_ptr<Capture> capture, const RecorderOptions& options)
    : peers_(std::make_unique<Peers>(std::move(capture), options)) {}

Recorder::~Recorder() = default;

link::Inbox& Recorder::listen(link::Inbox& inbox, std::uint32_t first_remote) {
  inbox_ = std::make_unique<RecordedInbox>(inbox, *peers_, first_remote);
  return *inbox_;
}

std::unique_ptr<link::Flow> Recorder::follow(std::unique_ptr<link::Flow> flow,
                                             const os::SocketAddress& peer) {
  if (peer.is_multicast()) know(peer);
  return std::make_unique<RecordedFlow>(std::move(flow), *peers_, peers_->at(peer));
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

void Recorder::know(const os::SocketAddress& group) { peers_->know(group); }

}  // namespace weft::capture
