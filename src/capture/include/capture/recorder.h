// SPDX-License-Identifier: BSD-2-Clause
// What does an endpoint do that reaches its peers without packets?
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "capture/capture.h"
#include "link/flow.h"
#include "link/inbox.h"
#include "os/socket_address.h"

namespace weft::capture {

class Peers;

// The endpoint that is listened to.
struct RecorderOptions {
  os::SocketAddress name;          // by which peers know it
  std::size_t eager_limit = 8192;  // larger messages are offered: rdm/message.h
};

// Stands between an endpoint and a link within the host, and writes down the packets that link_udp
// would have made of what goes through: connection messages, messages, accesses, acknowledgements;
// or datagrams. For this end of things only: what peers do to this process's memory is in their
// captures. Of operations that fail those are written down that the peer refused. One thread at a
// time, as the endpoint's.
class Recorder {
 public:
  Recorder(std::shared_ptr<Capture> capture, const RecorderOptions& options);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // What the endpoint shall use instead of its inbox, which lives as long as this. Peers whose
  // numbers there begin with `first_remote` send packets, and are not recorded here. Once.
  link::Inbox& listen(link::Inbox& inbox, std::uint32_t first_remote);
  // What it shall use instead of a flow to `peer`, or to a group. Ends before this.
  std::unique_ptr<link::Flow> follow(std::unique_ptr<link::Flow> flow,
                                     const os::SocketAddress& peer);
  // Management datagrams within the host.
  void record_sent(const os::SocketAddress& to, std::span<const std::byte> datagram);
  void record_received(const os::SocketAddress& from, std::span<const std::byte> datagram);
  // It joined a group, or sends to it.
  void know(const os::SocketAddress& group);

 private:
  const std::unique_ptr<Peers> peers_;
  std::unique_ptr<link::Inbox> inbox_;
};

}  // namespace weft::capture
