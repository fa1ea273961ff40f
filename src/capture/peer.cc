// SPDX-License-Identifier: BSD-2-Clause
// Which endpoints does the recorded one speak to?
#include "peer.h"

#include <utility>

#include "link/membership.h"
#include "roce/route.h"

namespace weft::capture {
namespace {

// Where the system knows no path: of an Ethernet.
constexpr std::size_t kUsualMtu = 1500;

rdm::RdmOptions engine_options(const RecorderOptions& options, OperationMemory& memory) {
  rdm::RdmOptions wanted;
  wanted.name = options.name;
  wanted.memory = &memory;
  wanted.buffers = &memory;
  wanted.eager_limit = options.eager_limit;
  return wanted;
}

}  // namespace

Peers::Peers(std::shared_ptr<Capture> capture, const RecorderOptions& options)
    : capture_(std::move(capture)),
      options_(engine_options(options, memory_)),
      own_(capture_->host(), wire::CaptureDirection::kSent, options_,
           [this](const os::SocketAddress& address) {
             RecordedPeer& peer = at(address);
             return End::Way{peer.own_path, &peer.end};
           }) {}

// A message of a peer is offered exactly if the link has offered it, so that the peer's limit is 0.
RecordedPeer& Peers::at(const os::SocketAddress& address) {
  std::unique_ptr<RecordedPeer>& known = peers_[address];
  if (known != nullptr) return *known;
  rdm::RdmOptions options = options_;
  options.name = address;
  options.eager_limit = 0;
  auto path = roce::path_from(options_.name, address);
  if (!path) path = os::UdpPath{options_.name, kUsualMtu};
  if (!options_.name.is_any()) path.value().source = options_.name;
  known = std::make_unique<RecordedPeer>(capture_->host(), options, own_, path.value(), memory_);
  return *known;
}

void Peers::know(const os::SocketAddress& group) {
  groups_.emplace(link::group_number(group), group);
}

const os::SocketAddress* Peers::group(std::uint64_t number) const {
  const auto found = groups_.find(number);
  return found != groups_.end() ? &found->second : nullptr;
}

}  // namespace weft::capture
