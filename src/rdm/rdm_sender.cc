// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint send to one peer over the network?
#include "rdm_sender.h"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "flow_table.h"
#include "os/user_memory.h"
#include "rendezvous.h"
#include "shared.h"

namespace weft::rdm {

using link::Outcome;

namespace {

// Packets are retransmitted at least so often.
constexpr std::chrono::milliseconds kLongestSilence{1000};
constexpr unsigned kPacketsAtOnce = 128;
// Larger messages are sent from the program's buffer.
constexpr std::size_t kCopied = 8192;

transport::Settings settings_for(const Introduction& me, const ConnRep& rep,
                                 const Options& options) {
  transport::Settings settings;
  settings.kind = wire::Transport::kReliableDatagram;
  settings.destination = rep.me.queue_pair;
  settings.source = me.queue_pair;
  settings.context = rep.me.context;
  settings.queue_key = rep.me.queue_key;
  settings.first_sent = rep.first;
  settings.selective = true;
  settings.ack_timeout = std::min(kLongestSilence, options.peer_timeout);
  settings.retries = static_cast<unsigned>(options.peer_timeout / settings.ack_timeout) - 1;
  return settings;
}

// Packets in flight that the peer's socket has room for: the kernel charges about twice the bytes.
unsigned window_for(std::uint32_t room, std::size_t path_mtu) {
  return static_cast<unsigned>(std::clamp<std::size_t>(room / (2 * (path_mtu + 512)), 16, 512));
}

}  // namespace

RdmSender::RdmSender(Shared& shared, std::uint32_t context, std::shared_ptr<const roce::Path> path,
                     std::size_t path_mtu)
    : shared_(shared),
      flow_(shared, context, std::move(path)),
      mtu_(shared, flow_, path_mtu),
      queue_(shared, flow_),
      accesses_(queue_) {}

void RdmSender::send_req(os::Time now) {
  ConnReq req = flow_.next_req(now);
  mtu_.write(req, flow_.is_open() ? queue_.requester() : nullptr);
  shared_.flows->emission().send_cm(flow_.path(), req);
}

// A repeated REP says that the peer is there; one of another connection id, that the flow's end at
// the peer is gone.
bool RdmSender::on_rep(const ConnRep& rep, os::Time now) {
  if (rep.connection_id != flow_.connection_id() || flow_.phase() == FlowPhase::kLost) return false;
  if (flow_.is_open() && rep.me.connection_id != flow_.other().connection_id) {
    lose(link::PeerState::kDied);
    return false;
  }
  hear(now);
  if (flow_.is_open()) {
    mtu_.agree(rep, *queue_.requester(), now);
  } else {
    open(rep, now);
  }
  return true;
}

void RdmSender::open(const ConnRep& rep, os::Time now) {
  const std::size_t carries = std::min(mtu_.carries(), rep.me.path_mtu);
  transport::Settings settings = settings_for(shared_.me, rep, *shared_.options.device);
  settings.stats = &shared_.stats;
  settings.path_mtu = mtu_.agree_first(rep);
  settings.first_round_trip = now - flow_.first_req_at();
  settings.max_window = window_for(rep.me.room, settings.path_mtu);
  transport::Requester& requester = queue_.open(settings);
  flow_.open(rep.me);
  mtu_.narrow(carries, &requester);
  queue_.post_early();
  shared_.flows->emission().activate(flow_.context());
}

bool RdmSender::fits_req(const link::SendRequest& request) const {
  return flow_.takes_early_data() && operations().count() == 0 &&
         request.operation == link::MessageOperation::kControl && !request.until_delivered &&
         request.length != 0 && request.length <= kMaxEarlyData;
}

Outcome RdmSender::send(const link::SendRequest& request) {
  if (const Outcome may = queue_.may_begin(); may.state != Outcome::State::kDone) return may;
  if (!os::readable(request.pieces)) return Outcome::failed(EFAULT);
  if (fits_req(request)) {
    std::vector<std::byte> data(request.length);
    if (!os::gather(data.data(), request.pieces, request.length)) return Outcome::failed(EFAULT);
    flow_.set_early_data(std::move(data));
    flow_.limit_asking();
    shared_.flows->emission().activate(flow_.context());
    return Outcome::done();
  }
  const bool whole = request.must_copy || request.length <= shared_.options.eager_limit;
  const bool copied = request.must_copy || (whole && request.length <= kCopied);
  // A copy is as good as sent once the peer is known to be there.
  const bool control = request.operation == link::MessageOperation::kControl;
  const bool unsure = flow_.phase() == FlowPhase::kAsking && !control;
  const bool pending = !copied || request.until_delivered || unsure;
  if (!pending && queue_.may_join(request)) return queue_.join(request);
  RdmOperation& operation = queue_.begin(request.cookie, pending);
  MessageHeader header = header_of(request, whole);
  operation.follows_reads = true;
  operation.borrows = !copied;
  operation.awaits_answer = header.wants_ack;
  if (header.wants_ack) queue_.name(operation);
  header.exchange = operation.exchange;
  operation.copy.resize(kMessageHeader + (copied ? request.length : 0));
  std::byte* bytes = operation.copy.data() + kMessageHeader;
  if (copied && !os::gather(bytes, request.pieces, request.length)) {
    return queue_.fault(operation);
  }
  if (!whole) {
    operation.offered = true;
    operation.keep(request.pieces, request.length);
  }
  const bool rest = whole && !copied;
  queue_.post_header(operation, header, copied ? request.length : 0,
                     rest ? request.pieces : std::span<const LocalRange>{},
                     rest ? request.length : 0);
  queue_.started(operation);
  return pending ? Outcome::pending() : Outcome::done();
}

bool RdmSender::cancel(const void* cookie) {
  for (RdmOperation& operation : operations().live()) {
    if (!operation.reported || operation.cookie != cookie) continue;
    if (queue_.take_back(operation)) return true;
    if (!operation.offered) return false;
    withdraw(operation);
    return true;
  }
  return false;
}

void RdmSender::take(const wire::Packet& response, os::Time now) {
  transport::Requester* const requester = queue_.requester();
  if (requester == nullptr) {
    shared_.stats.add(Stat::kUnexpectedResponses);
    return;
  }
  hear(now);
  requester->take(response, now);
  if (requester->failed()) lose(link::PeerState::kDied);
}

void RdmSender::hear(os::Time now) {
  flow_.hear(now);
  if (queue_.requester() != nullptr) queue_.requester()->heard();
}

// The last acknowledgement may be lost.
void RdmSender::part(std::optional<Psn> expected, os::Time now) {
  if (queue_.requester() != nullptr && expected) {
    wire::Packet acknowledgement;
    acknowledgement.opcode =
        opcode_of(wire::Transport::kReliableDatagram, wire::Operation::kAcknowledge);
    acknowledgement.psn = expected->after(-1);
    acknowledgement.syndrome = transport::kSyndromeAck;
    queue_.requester()->take(acknowledgement, now);
  }
  lose(link::PeerState::kLeft);
}

void RdmSender::lose(link::PeerState state) {
  if (flow_.phase() == FlowPhase::kLost) return;
  const bool hoped = flow_.phase() == FlowPhase::kAsking && !flow_.persists();
  flow_.end(state);
  if (state == link::PeerState::kDied) {
    shared_.dead_stations.push_back({flow_.peer(), flow_.other().station});
  }
  queue_.fail(hoped ? EHOSTUNREACH : ECONNRESET);
  shared_.flows->emission().activate(flow_.context());
}

// Without a DREQ the peer would take this end for dead.
void RdmSender::send_disconnect() {
  const bool has_asked = flow_.phase() == FlowPhase::kAsking && flow_.has_asked();
  if (!flow_.is_open() && !(has_asked && flow_.has_early_data())) return;
  shared_.flows->emission().send_cm(
      flow_.path(), Disconnect{false, flow_.connection_id(), flow_.other().connection_id});
}

void RdmSender::count_unreachable(bool proven) {
  if (flow_.count_unreachable(proven)) lose(link::PeerState::kDied);
}

void RdmSender::close() {
  send_disconnect();
  lose(link::PeerState::kLeft);
}

// A message that was copied has been reported as sent, or has to arrive before one that was.
void RdmSender::give_up() {
  queue_.post_bundle();
  if (!flow_.is_open() || operations().any_borrows()) return close();
  auto& live = operations().live();
  for (auto each = live.begin(); each != live.end();) {
    RdmOperation& operation = *each++;
    if (operation.takes) continue;
    operations().report_end(operation, ECONNRESET);
    if (operation.works == 0) operations().end(operation);
  }
  shared_.flows->emission().activate(flow_.context());
}

void RdmSender::release() {
  operations().release();
  if (operations().held()) return;
  if (flow_.phase() != FlowPhase::kAsking || operations().any_borrows()) give_up();
  shared_.flows->emission().activate(flow_.context());
}

bool RdmSender::finished() const {
  const bool over = flow_.phase() == FlowPhase::kLost || operations().count() == 0;
  return over && !operations().held();
}

void RdmSender::narrow(std::size_t path_mtu) {
  mtu_.narrow(path_mtu, flow_.is_open() ? queue_.requester() : nullptr);
}

// A router that drops large packets need not report it.
void RdmSender::look_for_hole(transport::Requester& requester, os::Time now) {
  if (requester.deadline() <= now) {
    requester.tick(now);
    if (requester.pmtu_probing()) send_req(now);
  }
  if (requester.pmtu_black_hole() && mtu_.carries() > transport::kSurePathMtu) {
    shared_.flows->narrow(flow_.peer(), transport::kSurePathMtu);
  }
}

void RdmSender::ask(os::Time now) {
  if (now < flow_.next_req_at()) return;
  if (!flow_.is_asked_out()) return send_req(now);
  // An answer may have come that was not read yet.
  if (shared_.emptied >= flow_.next_req_at()) lose(link::PeerState::kLeft);
}

void RdmSender::emit(os::Time now) {
  if (flow_.phase() == FlowPhase::kAsking) return ask(now);
  if (!flow_.is_open()) return;
  queue_.post_bundle();
  transport::Requester& requester = *queue_.requester();
  look_for_hole(requester, now);
  mtu_.look_for_more(requester, now);
  if (requester.failed()) return lose(link::PeerState::kDied);
  if (mtu_.has_to_ask() && now >= flow_.next_req_at()) send_req(now);
  Host& host = shared_.host;
  for (unsigned sent = 0; sent < kPacketsAtOnce; ++sent) {
    const std::span<std::byte> place = host.place();
    if (place.empty()) return;
    if (!host.pending()) host.expect(requester.at_hand());
    const std::size_t length = requester.next(now, place);
    if (length == 0) break;
    host.add(flow_.path(), length);
  }
  // A buffer of the program is not mapped any more. The peer lives: the next send opens a new flow.
  if (requester.failed()) close();
}

os::Time RdmSender::due() const {
  if (flow_.phase() == FlowPhase::kAsking) return flow_.next_req_at();
  if (!flow_.is_open() || queue_.has_bundle()) return os::Time::min();
  const transport::Requester& requester = *queue_.requester();
  const os::Time sends = requester.due();
  return mtu_.has_to_ask() ? std::min(sends, flow_.next_req_at()) : sends;
}

bool RdmSender::quiet() const {
  if (flow_.phase() == FlowPhase::kAsking) return false;
  return flow_.phase() == FlowPhase::kLost || (!queue_.owes() && !mtu_.changes());
}

}  // namespace weft::rdm
