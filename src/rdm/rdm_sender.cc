// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint send to one peer over the network?
#include "rdm_sender.h"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "connections.h"
#include "flow_table.h"
#include "os/user_memory.h"
#include "paired_flows.h"
#include "rendezvous.h"
#include "shared.h"

namespace weft::rdm {

using link::Outcome;

namespace {

// Packets are retransmitted at least so often.
constexpr std::chrono::milliseconds kLongestSilence{1000};
constexpr unsigned kPacketsAtOnce = 128;

transport::Settings settings_for(const Introduction& me, const FlowReply& reply,
                                 const Options& options) {
  transport::Settings settings;
  settings.kind = wire::Transport::kReliableDatagram;
  settings.destination = reply.me.queue_pair;
  settings.source = me.queue_pair;
  settings.context = reply.me.context;
  settings.queue_key = reply.me.queue_key;
  settings.first_sent = reply.first;
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
                     std::size_t path_mtu, cm::ConnectionId pair)
    : shared_(shared),
      paired_(pair != 0),
      flow_(shared, context, std::move(path), pair),
      mtu_(shared, flow_, path_mtu),
      queue_(shared, flow_),
      accesses_(queue_) {}

void RdmSender::on_reply(cm::ConnectionId id, const FlowReply& reply, const wire::CmMad& rep,
                         os::Time now) {
  if (!flow_.has(id)) return;
  static_cast<void>(shared_.agent.confirm(id, {}, now));
  note_received(now);
  if (!flow_.is_open()) {
    const std::uint32_t connection = std::get<wire::CmRep>(rep.message).local_id;
    return open(reply, rep.transaction, connection, now - flow_.first_req_at());
  }
  flow_.change(rep);
  if (!mtu_.agree(reply, *queue_.requester(), now)) lose(link::PeerState::kDied);
}

void RdmSender::open(const FlowReply& reply, std::uint64_t identity, std::uint32_t connection,
                     os::Time::duration round_trip) {
  const std::size_t carries =
      shared_.flows->carries(flow_.peer(), std::min(mtu_.carries(), reply.me.path_mtu));
  transport::Settings settings = settings_for(shared_.me, reply, *shared_.options.device);
  settings.stats = &shared_.stats;
  settings.path_mtu = mtu_.agree_first(reply.me.path_mtu);
  settings.first_round_trip = round_trip;
  settings.max_window = window_for(reply.me.room, settings.path_mtu);
  transport::Requester& requester = queue_.open(settings);
  flow_.open(reply.me, identity, connection);
  mtu_.narrow(carries, &requester);
  queue_.post_early();
  shared_.flows->emission().activate(flow_.context());
}

// Another process may bind the address later, and the peer may have room later. The next look asks
// again.
void RdmSender::on_rejected(cm::ConnectionId id, wire::CmReason reason, const FlowEnd& end) {
  const bool asks = flow_.phase() == FlowPhase::kAsking;
  if (!flow_.forget(id)) return;
  if (end.other_key) return lose(link::PeerState::kUnauthorized);
  if (end.refuses) return lose(link::PeerState::kRefuses);
  if (reason == wire::CmReason::kConsumer) return lose(link::PeerState::kLeft);
  if (!asks) lose(link::PeerState::kDied);
}

void RdmSender::on_disconnected(cm::ConnectionId id, const FlowEnd& end, os::Time now) {
  if (flow_.forget(id)) leave(end, now);
}

// The last acknowledgement may be lost.
void RdmSender::leave(const FlowEnd& end, os::Time now) {
  if (end.refuses) return lose(link::PeerState::kRefuses);
  if (queue_.requester() != nullptr && end.expected) {
    wire::Packet acknowledgement;
    acknowledgement.opcode =
        opcode_of(wire::Transport::kReliableDatagram, wire::Operation::kAcknowledge);
    acknowledgement.psn = end.expected->after(-1);
    acknowledgement.syndrome = transport::kSyndromeAck;
    queue_.requester()->take(acknowledgement, now);
  }
  lose(link::PeerState::kLeft);
}

// Packets of the connection manager prove it while none of the flow arrive.
bool RdmSender::look_for_sign() {
  if (!flow_.is_open()) return true;
  const os::Time last_received = shared_.agent.last_received(flow_.connection());
  if (last_received <= flow_.last_received()) return false;
  note_received(last_received);
  shared_.flows->emission().activate(flow_.context());
  return true;
}

void RdmSender::on_lost(cm::ConnectionId id) {
  if (flow_.forget(id)) lose(link::PeerState::kDied);
}

Outcome RdmSender::send(const link::SendRequest& request) {
  if (const Outcome may = queue_.may_begin(); may.state != Outcome::State::kDone) return may;
  if (!os::readable(request.sges)) return Outcome::failed(EFAULT);
  const bool whole = request.must_copy || request.length <= shared_.options.eager_limit;
  const bool copied = request.must_copy || (whole && request.length <= kCopiedSend);
  // A copy is as good as sent once the peer is known to be there.
  const bool unsure = flow_.phase() == FlowPhase::kAsking;
  const bool pending = !copied || request.until_delivered || unsure;
  if (!pending && queue_.may_join(request)) return queue_.join(request);
  RdmOperation& operation = queue_.begin(request.cookie, pending);
  MessageHeader header = header_of(request, whole);
  operation.follows_reads = true;
  operation.borrows = !copied;
  operation.awaits_answer = header.wants_ack;
  if (header.wants_ack) queue_.name(operation);
  header.rendezvous_id = operation.rendezvous_id;
  operation.copy.resize(kMessageHeader + (copied ? request.length : 0));
  std::byte* bytes = operation.copy.data() + kMessageHeader;
  if (copied && !os::gather(bytes, request.sges, request.length)) {
    return queue_.fault(operation);
  }
  if (!whole) {
    operation.offered = true;
    operation.keep(request.sges, request.length);
  }
  const bool rest = whole && !copied;
  queue_.post_header(operation, header, copied ? request.length : 0,
                     rest ? request.sges : std::span<const LocalRange>{},
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
  note_received(now);
  requester->take(response, now);
  if (requester->failed()) lose(link::PeerState::kDied);
}

void RdmSender::note_received(os::Time now) {
  flow_.note_received(now);
  if (queue_.requester() != nullptr) queue_.requester()->note_received();
}

void RdmSender::lose(link::PeerState state) {
  if (flow_.phase() == FlowPhase::kLost) return;
  const bool hoped = flow_.phase() == FlowPhase::kAsking && state != link::PeerState::kRefuses;
  flow_.end(state);
  if (paired_) {
    shared_.pairs->note(flow_.context());
  } else if (state == link::PeerState::kDied) {
    shared_.leaving.dead.push_back({flow_.peer(), flow_.endpoint_id()});
  }
  const bool other_key = state == link::PeerState::kUnauthorized;
  queue_.fail(other_key ? link::kOtherAuthorization : hoped ? EHOSTUNREACH : ECONNRESET);
  shared_.flows->emission().activate(flow_.context());
}

void RdmSender::close() { lose(link::PeerState::kLeft); }

// A message that was copied has been reported as sent, or has to arrive before one that was.
void RdmSender::give_up() {
  queue_.post_coalesced();
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
  if (paired_) shared_.pairs->note(flow_.context());
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
    if (requester.pmtu_probing()) shared_.connections->probe(flow_, now);
  }
  if (requester.pmtu_black_hole() && mtu_.carries() > transport::kSurePathMtu) {
    shared_.flows->narrow(flow_.peer(), transport::kSurePathMtu);
  }
}

// When the time is over an answer may have come that was not read yet.
void RdmSender::ask(os::Time now) {
  if (now < flow_.next_look()) return;
  if (!flow_.is_asked_out()) return flow_.ask(mtu_.carries(), now);
  if (shared_.emptied >= flow_.next_look()) lose(link::PeerState::kLeft);
}

void RdmSender::emit(os::Time now) {
  if (flow_.phase() == FlowPhase::kAsking) return ask(now);
  if (!flow_.is_open()) return;
  queue_.post_coalesced();
  transport::Requester& requester = *queue_.requester();
  look_for_hole(requester, now);
  mtu_.look_for_more(requester, now);
  if (requester.failed()) return lose(link::PeerState::kDied);
  roce::PacketOutput& output = shared_.output;
  for (unsigned sent = 0; sent < kPacketsAtOnce; ++sent) {
    const std::span<std::byte> place = output.place();
    if (place.empty()) return;
    if (!output.pending()) output.expect(requester.at_hand());
    const std::size_t length = requester.next(now, place);
    if (length == 0) break;
    output.add(flow_.path(), length);
  }
  // A buffer of the program is not mapped any more. The peer lives: the next send opens a new flow.
  if (requester.failed()) close();
}

os::Time RdmSender::due() const {
  if (flow_.phase() == FlowPhase::kAsking) return flow_.next_look();
  if (!flow_.is_open() || queue_.has_coalesced()) return os::Time::min();
  return queue_.requester()->due();
}

bool RdmSender::quiet() const {
  if (flow_.phase() == FlowPhase::kAsking) return false;
  return flow_.phase() == FlowPhase::kLost || (!queue_.owes() && !mtu_.changes());
}

}  // namespace weft::rdm
