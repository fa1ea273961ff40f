// SPDX-License-Identifier: BSD-2-Clause
// What does an endpoint do that reaches its peers without packets?
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "capture/capture.h"
#include "link/flow.h"
#include "link/inbox.h"
#include "link/port_link.h"
#include "os/socket_address.h"

namespace weft::capture {

class Peers;

// The endpoint that is recorded.
struct RecorderOptions {
  os::SocketAddress name;          // by which peers know it
  std::size_t eager_limit = 8192;  // larger messages are offered: rdm/message.h
};

// The link within the host of an endpoint, once more: it also writes down the packets that link_udp
// would have made of what goes through: connection messages, messages, accesses, acknowledgements;
// or datagrams. For this end of things only: what peers do to this process's memory is in their
// captures. Of operations that fail those are written down that the peer refused. One thread at a
// time, as the endpoint's.
class Recorder final : public link::PortLink {
 public:
  Recorder(std::shared_ptr<Capture> capture, const RecorderOptions& options,
           std::unique_ptr<link::PortLink> link);
  ~Recorder() override;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Those of the link.
  link::Inbox& inbox() override;
  Result<std::unique_ptr<link::Flow>> connect(const os::SocketAddress& peer) override;
  Result<link::Membership> join(const os::SocketAddress& group) override;
  Result<std::unique_ptr<link::Flow>> connect_group(const os::SocketAddress& group) override;
  // Management datagrams within the host.
  void record_sent(const os::SocketAddress& to, std::span<const std::byte> datagram);
  void record_received(const os::SocketAddress& from, std::span<const std::byte> datagram);

 private:
  Result<std::unique_ptr<link::Flow>> recorded(Result<std::unique_ptr<link::Flow>> flow,
                                               const os::SocketAddress& peer);

  const std::unique_ptr<link::PortLink> link_;
  const std::unique_ptr<Peers> peers_;
  const std::unique_ptr<link::Inbox> inbox_;
};

}  // namespace weft::capture
