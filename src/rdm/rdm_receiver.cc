// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint receive from one peer over the network?
#include "rdm_receiver.h"

#include <algorithm>
#include <utility>

#include "flow_table.h"
#include "shared.h"

namespace weft::rdm {
namespace {

// Packets without AckReq are acknowledged that much later: well below the peer's retransmission
// timeout.
constexpr auto kLazily = std::chrono::microseconds(200);
constexpr unsigned kAnswersAtOnce = 128;

transport::Settings settings_for(const ConnReq& req, const ConnRep& rep, Stats& stats) {
  transport::Settings settings;
  settings.stats = &stats;
  settings.kind = wire::Transport::kReliableDatagram;
  settings.destination = req.me.queue_pair;
  settings.source = rep.me.queue_pair;
  settings.context = req.me.context;
  settings.queue_key = req.me.queue_key;
  settings.path_mtu = rep.path_mtu;
  settings.first_expected = rep.first;
  settings.selective = true;
  settings.rnr_timer = 14;
  return settings;
}

}  // namespace

RdmReceiver::RdmReceiver(Shared& shared, const ConnReq& req, const ConnRep& rep,
                         std::shared_ptr<const roce::Path> path, std::uint32_t number)
    : shared_(shared),
      req_(req),
      rep_(rep),
      packets_(shared.packet_memory),
      target_(shared, {number, req.me.station, req.me.connection_id,
                       flow_identity(req.me.connection_id, rep.me.connection_id), std::move(path)}),
      responder_(settings_for(req, rep, shared.stats), target_, &packets_) {}

void RdmReceiver::take(const wire::Packet& request, os::Time now) {
  if (target_.is_shut()) return target_.reject();
  life_.hear(now);
  target_.begin_packet(request.payload.data(), rep_.path_mtu, now);
  responder_.take(request, now);
  target_.end_packet();
}

os::Time RdmReceiver::due() const {
  if (responder_.ready()) return os::Time::min();
  const os::Time since = responder_.unanswered_since();
  return since == os::Time::max() ? since : since + kLazily;
}

void RdmReceiver::emit(bool all, os::Time now) {
  const os::Time since = responder_.unanswered_since();
  const bool late = since != os::Time::max() && now - since >= kLazily;
  if (late || all) responder_.answer_all();
  for (unsigned sent = 0; sent < kAnswersAtOnce && responder_.ready(); ++sent) {
    const std::span<std::byte> place = shared_.host.place();
    if (place.empty()) return;
    const std::size_t length = responder_.next(place);
    if (length == 0) return;
    shared_.host.add(path(), length);
  }
}

bool RdmReceiver::suggest(std::size_t path_mtu) {
  if (path_mtu >= rep_.me.path_mtu) return false;
  rep_.me.path_mtu = path_mtu;
  return true;
}

// Each change has a number, and is agreed to once: a REQ that was on its way for long must change
// nothing.
void RdmReceiver::agree(const ConnReq& again) {
  if (again.changes == rep_.changes) return static_cast<void>(suggest(again.me.path_mtu));
  if (again.changes != static_cast<std::uint8_t>(rep_.changes + 1)) return;
  if (again.path_mtu > rep_.path_mtu) {  // the path may carry more again
    const std::size_t own = std::max(shared_.flows->path_mtu_to(path().to), rep_.path_mtu);
    rep_.me.path_mtu = std::min(again.me.path_mtu, own);
  } else {
    static_cast<void>(suggest(again.me.path_mtu));
  }
  rep_.path_mtu = std::min(again.path_mtu, rep_.me.path_mtu);
  rep_.changes = again.changes;
  rep_.first = responder_.restart(again.first, rep_.path_mtu);
}

}  // namespace weft::rdm
