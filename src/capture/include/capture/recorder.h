// SPDX-License-Identifier: BSD-2-Clause
// What does an endpoint do that reaches its peers without packets?
#pragma once

#include <memory>
#include <span>
#include <unordered_map>

#include "capture/capture.h"
#include "capture/record.h"
#include "link/flow.h"
#include "link/inbox.h"
#include "link/port_link.h"
#include "os/socket_address.h"

namespace weft::capture {

// The link within the host of an endpoint, once more: it also writes a record of each message that
// the endpoint sends, each that arrives, each of its accesses and atomic operations and each
// withdrawal. Accesses of peers to this process's memory are in the captures of the peers. One
// thread at a time, as the endpoint's.
class Recorder final : public link::PortLink {
 public:
  // `name`: the address by which peers know the endpoint; it may be a wildcard.
  Recorder(std::shared_ptr<Capture> capture, const os::SocketAddress& name,
           std::unique_ptr<link::PortLink> link);
  ~Recorder() override;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Those of the link.
  link::Inbox& inbox() override { return *inbox_; }
  Result<std::unique_ptr<link::Flow>> connect(const os::SocketAddress& peer) override;
  Result<link::Membership> join(const os::SocketAddress& group) override;
  Result<std::unique_ptr<link::Flow>> connect_group(const os::SocketAddress& group) override;
  // A management datagram within the host, to or from that peer.
  void record_datagram(wire::CaptureDirection direction, const os::SocketAddress& peer,
                       std::span<const std::byte> datagram);

 private:
  Result<std::unique_ptr<link::Flow>> recorded(Result<std::unique_ptr<link::Flow>> flow,
                                               const os::SocketAddress& peer);

  const os::SocketAddress name_;
  const std::unique_ptr<link::PortLink> link_;
  RecordWriter records_;
  std::unordered_map<std::uint64_t, os::SocketAddress> groups_;  // by link::group_number()
  const std::unique_ptr<link::Inbox> inbox_;
};

}  // namespace weft::capture
