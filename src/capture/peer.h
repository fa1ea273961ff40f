// SPDX-License-Identifier: BSD-2-Clause
// Which endpoints does the recorded one speak to?
#pragma once

#include <memory>
#include <unordered_map>

#include "capture/recorder.h"
#include "dialogue.h"
#include "roce/address_hash.h"

namespace weft::capture {

// A peer, or a multicast group.
struct RecordedPeer {
  RecordedPeer(wire::Tap& tap, const rdm::RdmOptions& options, End& own, const os::UdpPath& path,
               OperationMemory& memory)
      : address(options.name),
        own_path(path),
        end(tap, wire::CaptureDirection::kReceived, options,
            [this, &own](const os::SocketAddress&) {
              return End::Way{{address, own_path.mtu}, &own};
            }),
        mine(own, end, address, memory),
        theirs(end, own, path.source, memory) {}
  RecordedPeer(const RecordedPeer&) = delete;
  RecordedPeer& operator=(const RecordedPeer&) = delete;

  const os::SocketAddress address;
  const os::UdpPath own_path;  // to the peer
  End end;
  Dialogue mine;    // operations of the recorded endpoint
  Dialogue theirs;  // those of the peer
};

// The recorded endpoint and all its peers, as its flows and its inbox share them. One thread at a
// time.
class Peers {
 public:
  Peers(std::shared_ptr<Capture> capture, const RecorderOptions& options);
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  // False when nothing is to be written down (any more).
  bool wanted() const { return capture_->host().takes(); }
  RecordedPeer& at(const os::SocketAddress& address);
  End& own() { return own_; }
  // A multicast group, which `number` names; or null.
  void know(const os::SocketAddress& group);
  const os::SocketAddress* group(std::uint64_t number) const;

 private:
  const std::shared_ptr<Capture> capture_;
  OperationMemory memory_;
  rdm::RdmOptions options_;
  End own_;
  std::unordered_map<os::SocketAddress, std::unique_ptr<RecordedPeer>, roce::AddressHash> peers_;
  std::unordered_map<std::uint64_t, os::SocketAddress> groups_;  // by link::group_number()
};

}  // namespace weft::capture
