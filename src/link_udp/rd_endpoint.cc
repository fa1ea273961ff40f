// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint send and receive reliable datagrams over the network?
#include "link_udp/rd_endpoint.h"

#include <algorithm>
#include <new>
#include <utility>

#include "os/runtime_dir.h"
#include "roce/route.h"
#include "wire/packet.h"

namespace weft::udp {
namespace {

constexpr unsigned kReadsAtOnce = 4;

rdm::RdmEngine::LocalEnd identity_of(const roce::PacketPort& port) {
  constexpr std::size_t kMost = 0xFFFF'FFFF;
  return {roce::queue_pair_at(port.address().port()),
          static_cast<std::uint32_t>(std::min(port.receive_buffer(), kMost))};
}

}  // namespace

RdEndpoint::RdEndpoint(roce::PacketPort& port, rdm::PortConnections& connections,
                       const rdm::RdmOptions& options)
    : port_(port), engine_(*this, connections, options, identity_of(port), port.stats()) {
  for (const auto use : {roce::QpnUse::kManager, roce::QpnUse::kEndpoint}) {
    const auto qpn = port.attach(engine_, use, now());
    if (qpn) {
      qpns_.push_back(qpn.value());
    } else {
      attached_ = qpn.error();
    }
  }
}

// Without memory nothing can be sent: peers will notice. The flows of an inherited endpoint are the
// parent's: a child must not wait for their acknowledgements.
RdEndpoint::~RdEndpoint() {
  try {
    engine_.begin_closing();
    if (!port_.inherited()) drain();
  } catch (const std::bad_alloc&) {
  }
  for (const std::uint32_t qpn : qpns_) port_.detach(qpn, now());
}

// Close waits until the peer has acknowledged everything, for at most 2 s. A packet that has left
// lies in the peer's socket, even if the peer does not poll: the wait goes on as long as packets of
// peers arrive, and kSilence longer.
void RdEndpoint::drain() {
  struct DiscardingSink final : link::InboxSink {
    void source_opened(std::uint32_t, const os::SocketAddress&) override {}
    void source_closed(std::uint32_t, bool) override {}
    unsigned room() const override { return 0; }
    void arrived(const link::Arrival&) override {}
    void received(void*, int) override {}
  } discarding;
  constexpr auto kMaxDrainTime = std::chrono::seconds(2);
  constexpr auto kSilence = std::chrono::milliseconds(1200);  // a cable was pulled, and plugged in
  constexpr auto kPause = std::chrono::milliseconds(5);
  const os::Time end = now() + kMaxDrainTime;
  os::Time last_received = end - kMaxDrainTime;
  for (os::Time at = last_received; at < end && at - last_received < kSilence; at = now()) {
    if (poll(discarding) != 0) last_received = at;
    if (engine_.quiet()) break;
    const os::Time due = engine_.fall_asleep();
    const os::Time present = now();
    if (due <= present) continue;
    const auto pause = std::min<os::Time::duration>(due - present, kPause);
    port_.await_packet(std::chrono::ceil<std::chrono::milliseconds>(pause));
  }
  engine_.disconnect_all(discarding);
}

// Whether the offer stands is the peer's answer.
bool RdEndpoint::accept(link::InboxSink& sink, const link::Offer& offer,
                        std::span<const LocalRange> sges, std::uint64_t length, void* cookie) {
  engine_.accept(sink, offer, sges, length, cookie);
  return true;
}

rdm::Host::Received RdEndpoint::receive() {
  const unsigned packets = port_.poll(~0U, kReadsAtOnce);
  return {packets, port_.emptied()};
}

Result<os::UdpPath> RdEndpoint::path_to(const os::SocketAddress& peer) {
  return roce::path_from(port_.address(), peer);
}

// A sleeping thread does not see new work: a ring wakes it to continue that work.
void RdEndpoint::wake() {
  if (std::exchange(asleep_, false)) port_.wake_set().ring();
}

std::uint64_t RdEndpoint::random() { return os::random_number(); }

bool RdEndpoint::fall_asleep() {
  const bool watched = port_.fall_asleep();
  const os::Time next = engine_.fall_asleep();
  const os::Time at = now();
  if (!watched || next <= at) return false;
  port_.wake_set().wake_in(next == os::Time::max() ? os::Timer::kNever : next - at);
  asleep_ = !engine_.has_ended_receives();
  return asleep_;
}

void RdEndpoint::wake_up() {
  asleep_ = false;
  port_.wake_up();
}

}  // namespace weft::udp
