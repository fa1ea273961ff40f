// SPDX-License-Identifier: BSD-2-Clause
// What does an endpoint do that reaches its peers without packets?
#include "capture/recorder.h"

#include <utility>

#include "link/membership.h"
#include "os/runtime_dir.h"
#include "os/udp_path.h"
#include "peer.h"
#include "recorded_flow.h"
#include "recorded_inbox.h"
#include "roce/route.h"

namespace weft::capture {
namespace {

std::uint32_t draw() { return static_cast<std::uint32_t>(os::random_number()); }

// An endpoint as its peers would see it over the network. What is not known of it is made up.
End end_at(const os::SocketAddress& address) {
  End end;
  end.address = address;
  end.queue_pair =
      address.is_multicast() ? wire::kMulticastQpn : roce::queue_pair_at(address.port());
  end.queue_key = draw();
  end.station = os::random_number() | 1;
  end.datagram = Psn(draw());
  return end;
}

}  // namespace

Recorder::Recorder(std::shared_ptr<Capture> capture, const RecorderOptions& options)
    : capture_(std::move(capture)),
      options_(options),
      queue_key_(draw()),
      station_(os::random_number() | 1) {}

Recorder::~Recorder() = default;

// An endpoint at all addresses of its host is seen at the one that leads to the peer.
Recorder::Peer& Recorder::peer_at(const os::SocketAddress& address) {
  std::unique_ptr<Peer>& known = peers_[address.text()];
  if (known != nullptr) return *known;
  Ends ends{capture_->host(), end_at(options_.name), end_at(address), 4096, options_.service};
  ends.mine.queue_key = queue_key_;
  ends.mine.station = station_;
  if (const auto path = roce::path_from(options_.name, address)) {
    ends.path_mtu = roce::path_mtu_within(path.value().mtu, address.family());
    if (options_.name.is_any()) ends.mine.address = path.value().source;
  }
  known = std::make_unique<Peer>(ends);
  return *known;
}

link::Inbox& Recorder::listen(link::Inbox& inbox, std::uint32_t first_remote) {
  inbox_ = std::make_unique<RecordedInbox>(inbox, *this, first_remote);
  return *inbox_;
}

std::unique_ptr<link::Flow> Recorder::follow(std::unique_ptr<link::Flow> flow,
                                             const os::SocketAddress& peer) {
  if (peer.is_multicast()) know(peer);
  return std::make_unique<RecordedFlow>(std::move(flow), *this, peer_at(peer));
}

void Recorder::know(const os::SocketAddress& group) {
  groups_.emplace(link::group_number(group), group);
}

}  // namespace weft::capture
