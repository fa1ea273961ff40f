// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint speak whose packets go to the file?
#include "end.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/slices.h"
#include "os/runtime_dir.h"
#include "roce/route.h"
#include "wire/cm_message.h"
#include "wire/packet.h"

namespace weft::capture {
namespace {

// As much as a socket's buffer usually takes (net.core.rmem_default, which counts twice).
constexpr std::uint32_t kRoom = 425'984;

std::uint32_t queue_pair_of(const os::SocketAddress& address) {
  return address.is_multicast() ? wire::kMulticastQpn : roce::queue_pair_at(address.port());
}

}  // namespace

End::End(wire::Tap& tap, wire::CaptureDirection direction, const rdm::RdmOptions& options,
         FindWay find_way)
    : tap_(tap),
      direction_(direction),
      find_way_(std::move(find_way)),
      place_(wire::kMaxHeaderBytes + wire::kMaxReliableDatagramMtu + wire::kIcrcBytes),
      datagrams_(Psn(static_cast<std::uint32_t>(os::random_number()))),
      engine_(*this, options, {queue_pair_of(options.name), kRoom}, stats_) {}

void End::turn() {
  engine_.poll(*this);
  engine_.fall_asleep();  // acknowledgements that could wait
}

// The ICRC is the last word of the packet.
void End::write(const wire::Route& route, std::span<std::byte> packet) {
  const auto body = packet.first(packet.size() - wire::kIcrcBytes);
  wire::store_icrc(packet.data() + body.size(), wire::icrc(route, body));
  tap_.packet(direction_, route, {}, packet, {});
}

void End::add(const roce::Path& path, std::size_t length) {
  const auto packet = std::span(place_).first(length + wire::kIcrcBytes);
  write(path.route, packet);
  End* const to = find_way_(path.to).to;
  if (to != nullptr) to->arrived_.push_back({path, {packet.begin(), packet.end()}});
}

rdm::Host::Received End::receive() {
  Received received{0, true};
  for (const ArrivedPacket& each : std::exchange(arrived_, {})) {
    wire::Packet packet;
    if (wire::parse(each.bytes, packet) != wire::Malformed::kNone) continue;
    engine_.take({packet, each.path.from, each.path.to});
    ++received.packets;
  }
  return received;
}

Result<os::UdpPath> End::path_to(const os::SocketAddress& peer) { return find_way_(peer).path; }

std::uint64_t End::random() { return os::random_number(); }

void End::write(const os::SocketAddress& to, const roce::DatagramHeader& header,
                std::span<const LocalRange> pieces) {
  const os::SocketAddress from = find_way_(to).path.source;
  const auto written = datagrams_.write(header, pieces, total_length(pieces), place_);
  if (!written) return;
  write(roce::route_between(from, to), std::span(place_).first(*written + wire::kIcrcBytes));
}

void End::write_datagram(const os::SocketAddress& to, std::span<const LocalRange> pieces,
                         bool has_data, std::uint64_t data) {
  if (total_length(pieces) > wire::kMaxPathMtu) return;
  const os::SocketAddress from = find_way_(to).path.source;
  write(to, {queue_pair_of(from), queue_pair_of(to), has_data, data}, pieces);
}

void End::write_connection_message(const os::SocketAddress& to, const LocalRange& message) {
  static std::array<std::byte, wire::kMadBytes> zeros{};
  if (message.length > wire::kMaxPathMtu) return;
  const std::size_t missing = zeros.size() - std::min(message.length, zeros.size());
  const LocalRange pieces[] = {message, {zeros.data(), missing}};
  write(to, {.source = wire::kCmQpn, .destination = wire::kCmQpn, .queue_key = wire::kCmQueueKey},
        pieces);
}

}  // namespace weft::capture
