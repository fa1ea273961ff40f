// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint send to one peer over the network?
#include "rdm_sender.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "flow_table.h"
#include "link/local_buffers.h"
#include "link/peer_error.h"
#include "memory/access_guard.h"
#include "os/user_memory.h"
#include "rdm/user_buffers.h"
#include "shared.h"

namespace weft::rdm {

using link::Outcome;
using transport::Work;
using transport::WorkKind;
using work::Segment;

namespace {

// Where each of a crowd greets all others, greetings must not be what they have no time to answer.
// But some have to be left when a wire that was cut for a second carries again.
constexpr auto kLongestPause = std::chrono::milliseconds(500);
// Packets go again at least so often.
constexpr std::chrono::milliseconds kLongestSilence{1000};
// Operations in flight; beyond that a post answers kAgain.
constexpr std::size_t kMostOperations = 1024;
// Below so many packets in flight, or above this time between messages, latency counts and a
// message is sent at once; otherwise it may wait to fill a train.
constexpr unsigned kFewPackets = 2;
constexpr auto kPlentyOfTime = std::chrono::microseconds(2);
// Larger messages have packets of their own.
constexpr std::size_t kBundled = 1024;
constexpr unsigned kPacketsAtOnce = 128;

int errno_of(transport::Status status) {
  switch (status) {
    case transport::Status::kSuccess:
      return 0;
    case transport::Status::kRemoteAccess:
      return EACCES;
    case transport::Status::kRemoteOperational:
    case transport::Status::kLocalProtection:
      return EFAULT;
    case transport::Status::kRemoteInvalid:
    case transport::Status::kLocalLength:
    case transport::Status::kLocalOperation:
      return EPROTO;
    case transport::Status::kRetriesExceeded:
    case transport::Status::kRnrRetriesExceeded:
    case transport::Status::kFlushed:
      return ECONNRESET;
  }
  return EPROTO;
}

Segment segment_of(const LocalRange& buffer) { return {buffer.base, buffer.length}; }

// A refusal as the peer states it; kNone for a number that means none.
int known_access_error(std::uint64_t stated) {
  const bool known = stated <= static_cast<std::uint64_t>(memory::kLastAccessError);
  return known ? static_cast<int>(stated) : 0;
}

}  // namespace

RdmSender::RdmSender(Shared& shared, std::uint32_t context, std::shared_ptr<const roce::Path> path,
                     std::size_t path_mtu)
    : shared_(shared),
      context_(context),
      connection_id_(static_cast<std::uint32_t>(shared.host.random()) | 1),
      path_(std::move(path)),
      path_mtu_(path_mtu),
      carries_(path_mtu),
      packets_(shared.packet_memory),
      messages_(shared.message_memory),
      fragments_(packets_),
      operations_(shared.free_operations) {
  shared_.flows->emission().activate(*this);
}

void RdmSender::send_req(os::Time now) {
  ConnReq req;
  req.me = shared_.me;
  req.me.connection_id = connection_id_;
  req.me.context = context_;
  req.me.path_mtu = carries_;
  req.path_mtu = may_narrow() || raising_ ? carries_ : path_mtu_;
  req.raises = raises_;
  req.name = shared_.options.name;
  req.service = shared_.options.service;
  req.early_data = early_data_;
  shared_.flows->emission().send_cm(*path_, req);
  if (first_req_ == os::Time{}) first_req_ = now;
  os::Time::duration pause = pause_;
  if (asks_for_ && !persisting_ && state_ == Phase::kAsking) {
    pause = std::min(pause, *asks_for_);
    *asks_for_ -= pause;
  }
  next_req_ = now + pause;
  pause_ = std::min(2 * pause_, std::chrono::milliseconds(kLongestPause));
}

// One that comes again says that the peer is there; from another one, that this one is not any
// more.
bool RdmSender::on_rep(const ConnRep& rep, os::Time now) {
  if (rep.connection_id != connection_id_) return false;
  if (state_ == Phase::kOpen) {
    if (rep.me.connection_id != peer_connection_id_) {
      lose(link::PeerState::kDied);
      return false;
    }
    hear(now);
    agreed(rep);
  }
  if (state_ != Phase::kAsking) return state_ == Phase::kOpen;
  hear(now);
  transport::Settings settings;
  settings.kind = wire::Transport::kReliableDatagram;
  settings.destination = rep.me.queue_pair;
  settings.source = shared_.me.queue_pair;
  settings.context = rep.me.context;
  settings.queue_key = rep.me.queue_key;
  settings.path_mtu = path_mtu_ = std::min(path_mtu_, rep.path_mtu);
  settings.first_sent = rep.first;
  bundle_room_ = settings.path_mtu;
  settings.selective = true;
  settings.ack_timeout = std::min(kLongestSilence, shared_.options.peer_timeout);
  settings.retries = static_cast<unsigned>(shared_.options.peer_timeout / settings.ack_timeout) - 1;
  settings.first_round_trip = now - first_req_;
  // Receive buffer of the peer's socket: the kernel charges about twice the bytes.
  const std::size_t room = rep.me.room / (2 * (settings.path_mtu + 512));
  settings.max_window = static_cast<unsigned>(std::clamp<std::size_t>(room, 16, 512));
  station_ = rep.me.station;
  peer_connection_id_ = rep.me.connection_id;
  peer_context_ = rep.me.context;
  peer_key_ = rep.me.queue_key;
  requester_.emplace(settings, static_cast<transport::WorkSink&>(*this), user_buffers());
  state_ = Phase::kOpen;
  peer_carries_ = rep.me.path_mtu;
  const std::size_t carries = std::min(carries_, peer_carries_);
  carries_ = path_mtu_;
  narrow(carries);
  early_data_ = {};  // they were heard
  post_early();
  shared_.flows->emission().activate(*this);
  return true;
}

Outcome RdmSender::may_begin() const {
  if (state_ == Phase::kLost) return Outcome::failed(ECONNRESET);
  return operations_.count() >= kMostOperations ? Outcome::again() : Outcome::done();
}

RdmOperation& RdmSender::begin(void* cookie, bool reported) {
  RdmOperation& operation = operations_.take(*this);
  operation.cookie = cookie;
  operation.reported = reported;
  if (reported) ++reported_;
  operation.works = 1;  // until started()
  return operation;
}

// What is posted before the peer has answered waits in the order of its posting. A read that has to
// be repeated must find what was there before that which was posted after it.
void RdmSender::post(RdmOperation& operation, Work work) {
  if (bundle_ != nullptr) tie_up();
  ++operation.works;
  work.prompt = operation.reported && !operation.awaits_answer;
  work.fence = reading_ != 0 && operation.follows_reads;
  work.cookie = &operation;
  if (state_ == Phase::kOpen) return requester_->post(work);
  early_.push_back({work, {work.pieces.begin(), work.pieces.end()}});
}

void RdmSender::post_early() {
  std::vector<Early> early;
  early.swap(early_);
  for (Early& each : early) {
    each.work.pieces = each.pieces;
    requester_->post(each.work);
  }
}

// A message whose header and first bytes lie in the operation's copy, and the others in `rest`.
void RdmSender::post_header(RdmOperation& operation, const MessageHeader& header,
                            std::size_t copied, std::span<const LocalRange> rest,
                            std::uint64_t length) {
  write_header(header, operation.copy.data());
  Segment pieces[1 + link::kMaxPieces] = {{operation.copy.data(), kMessageHeader + copied}};
  std::transform(rest.begin(), rest.end(), pieces + 1, segment_of);
  Work work;
  work.pieces = {pieces, 1 + rest.size()};
  work.length = kMessageHeader + copied + length;
  post(operation, work);
}

// The first control message travels in the REQ: its sender may end before the REP arrives.
bool RdmSender::fits_req(const link::SendRequest& request) const {
  const bool first = next_req_ == os::Time{} && operations_.count() == 0 && early_data_.empty();
  return state_ == Phase::kAsking && first && request.operation == link::Operation::kControl &&
         !request.until_delivered && request.length != 0 && request.length <= kMaxEarlyData;
}

void RdmSender::limit_asking() {
  if (state_ == Phase::kAsking && !asks_for_) asks_for_ = shared_.options.connect_timeout;
}

// All work of an operation is posted. Small messages leave at once where hardly anything is under
// way: else they share a train.
void RdmSender::started(RdmOperation& operation) {
  if (--operation.works == 0 && !operation.awaits_answer) return end(operation);
  limit_asking();
  if (requester_) {
    const os::Time now = shared_.host.now();
    if (!waits(now)) {
      shared_.flows->emission().send_now(*this, now);
      // How long a system call takes is not the program's affair.
      if (requester_->under_way() > kFewPackets) sent_at_ = shared_.host.now();
      return;
    }
  }
  shared_.flows->emission().activate(*this);
}

bool RdmSender::waits(os::Time now) const {
  return requester_->under_way() > kFewPackets && now - sent_at_ < kPlentyOfTime;
}

// Small messages share a packet while others are in flight: until the next poll, or until it is
// full.
bool RdmSender::may_join(const link::SendRequest& request) const {
  if (state_ != Phase::kOpen || request.until_delivered || request.length > kBundled) return false;
  if (request.operation == link::Operation::kControl || reading_ != 0) return false;
  return bundle_ != nullptr || waits(shared_.host.now());
}

Outcome RdmSender::join(const link::SendRequest& request) {
  const std::size_t length = kMessageHeader + request.length;
  if (bundle_ != nullptr && bundle_->copy.size() + length > bundle_room_) tie_up();
  if (bundle_ == nullptr) {
    bundle_ = &begin(nullptr, false);
    bundle_->copy.reserve(bundle_room_);
    bundle_->copy.resize(kMessageHeader);
  }
  const std::size_t at = bundle_->copy.size();
  bundle_->copy.resize(at + length);
  write_header(header_of(request, true), bundle_->copy.data() + at);
  shared_.flows->emission().activate(*this);
  if (os::gather(bundle_->copy.data() + at + kMessageHeader, request.pieces, request.length)) {
    return Outcome::done();
  }
  bundle_->copy.resize(at);
  return Outcome::failed(EFAULT);
}

void RdmSender::tie_up() {
  RdmOperation& bundle = *std::exchange(bundle_, nullptr);
  MessageHeader header;
  header.kind = MessageKind::kCoalesced;
  post_header(bundle, header, bundle.copy.size() - kMessageHeader, {}, 0);
  --bundle.works;
}

Outcome RdmSender::send(const link::SendRequest& request) {
  if (const Outcome may = may_begin(); may.state != Outcome::State::kDone) return may;
  if (!os::readable(request.pieces)) return Outcome::failed(EFAULT);
  if (fits_req(request)) {
    std::vector<std::byte> data(request.length);
    if (!os::gather(data.data(), request.pieces, request.length)) return Outcome::failed(EFAULT);
    early_data_ = std::move(data);
    limit_asking();
    shared_.flows->emission().activate(*this);
    return Outcome::done();
  }
  const bool whole = request.must_copy || request.length <= shared_.options.eager_limit;
  const bool copied = request.must_copy || (whole && request.length <= 8192);
  // A copy is as good as sent once the peer is known to be there.
  const bool control = request.operation == link::Operation::kControl;
  const bool unsure = state_ == Phase::kAsking && !control;
  const bool pending = !copied || request.until_delivered || unsure;
  if (!pending && may_join(request)) return join(request);
  RdmOperation& operation = begin(request.cookie, pending);
  MessageHeader header = header_of(request, whole);
  operation.follows_reads = true;
  operation.borrows = !copied;
  operation.awaits_answer = header.wants_ack;
  if (header.wants_ack) header.exchange = operation.exchange = shared_.exchanges.name(operation);
  operation.copy.resize(kMessageHeader + (copied ? request.length : 0));
  std::byte* bytes = operation.copy.data() + kMessageHeader;
  if (copied && !os::gather(bytes, request.pieces, request.length)) return fault(operation);
  if (!whole) {
    operation.offered = true;
    operation.length = request.length;
    operation.count = request.pieces.size();
    std::copy(request.pieces.begin(), request.pieces.end(), operation.pieces.begin());
  }
  const bool rest = whole && !copied;
  post_header(operation, header, copied ? request.length : 0,
              rest ? request.pieces : std::span<const LocalRange>{}, rest ? request.length : 0);
  started(operation);
  return pending ? Outcome::pending() : Outcome::done();
}

std::uint32_t RdmSender::wire_key(RegionKey key) {
  return aliases_.wire_key(key, [this](const MessageHeader& header) {
    RdmOperation& operation = begin(nullptr, false);
    operation.copy.resize(kMessageHeader);
    post_header(operation, header, 0, {}, 0);
    --operation.works;
  });
}

void RdmSender::post_access(RdmOperation& operation, const Work& work,
                            std::span<const LocalRange> local, std::uint64_t offset) {
  Segment pieces[link::kMaxPieces];
  std::transform(local.begin(), local.end(), pieces, segment_of);
  transport::post_in_parts(work, {pieces, local.size()}, offset,
                           [&](const Work& part) { return post(operation, part), true; });
}

Outcome RdmSender::access(const link::AccessRequest& request) {
  if (const Outcome may = may_begin(); may.state != Outcome::State::kDone) return may;
  if (!link::buffers_mapped(request)) return Outcome::failed(EFAULT);
  RdmOperation& operation = begin(request.cookie, true);
  operation.borrows = true;
  operation.reads = !request.write;
  operation.follows_reads = request.write;
  if (operation.reads) ++reading_;
  std::span<const LocalRange> local = request.local;
  LocalRange copied;
  operation.copy.resize(kMessageHeader);
  if (request.write && request.must_copy) {
    operation.copy.resize(kMessageHeader + request.length);
    copied = {operation.copy.data() + kMessageHeader, request.length};
    if (!os::gather(copied.base, request.local, request.length)) return fault(operation);
    local = {&copied, 1};
    operation.borrows = false;
  }
  const bool announced = is_announced(request.write, request.remote);
  if (announced) {
    std::byte list[link::kMaxPieces * kRange];
    tell(announcement_of(request.write, request.remote),
         {list, write_ranges(request.remote, list)});
  }
  if (request.has_data) {
    MessageHeader notice;
    notice.kind = MessageKind::kWriteImmInfo;
    notice.data = request.data;
    notice.length = request.length;
    post_header(operation, notice, 0, {}, 0);
  }
  std::uint64_t offset = 0;
  for (const RemoteRange& range : request.remote) {
    Work work;
    work.kind = request.write ? WorkKind::kWrite : WorkKind::kRead;
    work.has_immediate = request.has_data && &range == &request.remote.back();
    work.length = range.length;
    work.address = range.address;
    work.key = wire_key(range.key);
    post_access(operation, work, local, offset);
    offset += range.length;
  }
  if (announced) {
    MessageHeader end;
    end.kind = MessageKind::kRangeEnd;
    tell(end);
  }
  started(operation);
  return Outcome::pending();
}

Outcome RdmSender::atomic(const link::AtomicRequest& request) {
  if (const Outcome may = may_begin(); may.state != Outcome::State::kDone) return may;
  if (!link::buffers_mapped(request)) return Outcome::failed(EFAULT);
  RdmOperation& operation = begin(request.cookie, true);
  operation.borrows = request.action.fetches();
  operation.follows_reads = true;
  operation.awaits_answer = true;
  operation.exchange = shared_.exchanges.name(operation);
  operation.count = request.result.size();
  operation.length = request.action.fetches() ? request.length : 0;
  std::copy(request.result.begin(), request.result.end(), operation.pieces.begin());
  const std::size_t ranges = request.remote.size() * kRange;
  const std::size_t operand = request.action.has_operand() ? request.length : 0;
  const std::size_t compare = request.action.compares() ? request.length : 0;
  operation.copy.resize(kMessageHeader + ranges + operand + compare);
  std::byte* at = operation.copy.data() + kMessageHeader;
  at += write_ranges(request.remote, at);
  if (!os::gather(at, request.operand, operand) ||
      !os::gather(at + operand, request.compare, compare)) {
    return fault(operation);
  }
  MessageHeader header;
  header.kind = MessageKind::kAtomic;
  header.has_data = request.has_data;
  header.action = request.action;
  header.exchange = operation.exchange;
  header.tag = request.remote.size();
  header.data = request.data;
  header.length = request.length;
  post_header(operation, header, ranges + operand + compare, {}, 0);
  started(operation);
  return Outcome::pending();
}

void RdmSender::accept(const link::Offer& offer, std::uint64_t from,
                       std::span<const LocalRange> pieces, std::uint64_t length, void* cookie) {
  RdmOperation& operation = begin(cookie, false);
  operation.takes = operation.borrows = operation.awaits_answer = true;
  operation.offer = offer;
  if (state_ == Phase::kLost) {
    operation.failure.error = ECONNRESET;
    return end(operation);
  }
  operation.exchange = shared_.exchanges.name(operation);
  operation.count = pieces.size();
  operation.length = length;
  std::copy(pieces.begin(), pieces.end(), operation.pieces.begin());
  operation.copy.resize(kMessageHeader);
  MessageHeader header;
  header.kind = MessageKind::kCts;
  header.exchange = offer.exchange;
  header.tag = operation.exchange;
  header.data = from;
  header.length = length;
  post_header(operation, header, 0, {}, 0);
  started(operation);
}

void RdmSender::abandon(RdmOperation& receive) {
  shared_.ended_receives.push_back({receive.cookie, ECONNRESET});
  detach(receive);
}

void RdmSender::detach(RdmOperation& receive) {
  shared_.exchanges.forget(std::exchange(receive.exchange, 0));
  receive.takes = receive.borrows = receive.awaits_answer = false;
  if (receive.works == 0) end(receive);
}

// A CTS also acknowledges the RTS.
void RdmSender::deliver(RdmOperation& offered, std::uint32_t key, std::uint64_t length,
                        os::Time now) {
  ++offered.works;  // until started()
  offered.offered = offered.awaits_answer = false;
  requester_->arrived(&offered, now);
  Work work;
  work.kind = WorkKind::kWrite;
  work.key = key;
  work.length = length;
  post_access(offered, work, offered.buffers(), 0);
  started(offered);
}

void RdmSender::answer(const MessageHeader& header, std::span<const std::byte> bytes) {
  tell(header, bytes, true);
}

void RdmSender::tell(const MessageHeader& header, std::span<const std::byte> bytes, bool answers) {
  if (state_ == Phase::kLost) return;
  RdmOperation& operation = begin(nullptr, false);
  if (answers) messages_.charge(operation.charged = link::kAnswerCost + bytes.size());
  operation.copy.resize(kMessageHeader + bytes.size());
  if (!bytes.empty()) {
    std::memcpy(operation.copy.data() + kMessageHeader, bytes.data(), bytes.size());
  }
  post_header(operation, header, bytes.size(), {}, 0);
  started(operation);
}

// An answer also acknowledges its request.
void RdmSender::answered(RdmOperation& operation, const MessageHeader& header,
                         std::span<const std::byte> bytes, os::Time now) {
  if (!operation.awaits_answer) return;
  const bool value = header.kind == MessageKind::kResult;
  if (value) {
    operation.failure.error = link::known_error(header.tag, EPROTO);
    operation.failure.detail = known_access_error(header.length);
    if (operation.failure.error == 0 && bytes.size() != operation.length)
      operation.failure.error = EPROTO;
    if (operation.failure.error == 0 &&
        !os::scatter(operation.buffers(), bytes.data(), bytes.size())) {
      operation.failure.error = EFAULT;
    }
  }
  // A message that this end receives is written; all that may be said of it is that it will not be.
  if (operation.takes && operation.failure.error == 0) operation.failure.error = EPROTO;
  has_answer(operation, now);
}

void RdmSender::has_answer(RdmOperation& operation, os::Time now) {
  operation.awaits_answer = operation.offered = false;
  if (operation.works == 0) return end(operation);
  if (!requester_) return;
  requester_->arrived(&operation, now);
  shared_.flows->emission().activate(*this);
}

void RdmSender::ended(const transport::Ended& work) {
  RdmOperation& operation = *static_cast<RdmOperation*>(work.cookie);
  --operation.works;
  if (work.status != transport::Status::kSuccess && operation.failure.error == 0) {
    operation.failure.error = errno_of(work.status);
    operation.failure.detail = known_access_error(work.detail);
  }
  if (operation.works == 0 && (!operation.awaits_answer || operation.failure.error != 0))
    end(operation);
}

void RdmSender::end(RdmOperation& operation) {
  if (operation.exchange != 0) shared_.exchanges.forget(operation.exchange);
  if (operation.takes)
    shared_.ended_receives.push_back({operation.cookie, operation.failure.error});
  if (operation.reads) --reading_;
  messages_.give(operation.charged);
  report_end(operation, operation.failure.error, operation.failure.detail);
  operations_.give(operation);
}

// Nothing of it was posted: a buffer of the program is not mapped.
Outcome RdmSender::fault(RdmOperation& operation) {
  if (std::exchange(operation.reported, false)) --reported_;
  end(operation);
  return Outcome::failed(EFAULT);
}

// The program is told of the end, once, and has its buffers back. Packets may still be in flight.
void RdmSender::report_end(RdmOperation& operation, int error, int detail) {
  if (operation.reported) {
    --reported_;
    if (holders_ != 0) finished_.push_back({operation.cookie, error, detail});
  }
  operation.reported = operation.offered = operation.borrows = operation.awaits_answer = false;
}

void RdmSender::report(link::FlowSink& sink) {
  for (const Finished& each : std::exchange(finished_, {})) {
    sink.ended(each.cookie, each.error, each.detail);
  }
}

void RdmSender::count_unreachable(bool proven) {
  const bool hopes = state_ == Phase::kAsking && !persisting_ && !doubting_;
  if (state_ == Phase::kLost || hopes) return;
  if (proven || ++unreachable_ >= kMostUnreachable) lose(link::PeerState::kDied);
}

// Its key was drawn at random, and the peer has told it to this end.
bool RdmSender::has_sent(const wire::Packet& request) const {
  return state_ == Phase::kOpen && wire::layout_of(request.opcode).request &&
         wire::transport_of(request.opcode) == wire::Transport::kReliableDatagram &&
         request.end_to_end_context == peer_context_ && request.queue_key == peer_key_;
}

void RdmSender::on_rejected() {
  if (state_ == Phase::kAsking && persisting_) lose(link::PeerState::kDied);
}

void RdmSender::probe(os::Time now) { send_req(now); }

void RdmSender::take(const wire::Packet& response, os::Time now) {
  if (!requester_) {
    ++unasked_;
    return;
  }
  hear(now);
  requester_->take(response, now);
  if (requester_->failed()) lose(link::PeerState::kDied);
}

// The last acknowledgement may be lost.
void RdmSender::part(std::optional<Psn> expected, os::Time now) {
  if (requester_ && expected) {
    wire::Packet acknowledgement;
    acknowledgement.opcode =
        opcode_of(wire::Transport::kReliableDatagram, wire::Operation::kAcknowledge);
    acknowledgement.psn = expected->after(-1);
    acknowledgement.syndrome = transport::kSyndromeAck;
    requester_->take(acknowledgement, now);
  }
  lose(link::PeerState::kLeft);
}

void RdmSender::emit(os::Time now) {
  if (state_ == Phase::kAsking) {
    if (now < next_req_) return;
    if (persisting_ || asks_for_ != os::Time::duration::zero()) return send_req(now);
    // An answer may have come that was not read yet.
    if (shared_.emptied >= next_req_) lose(link::PeerState::kLeft);
    return;
  }
  if (state_ != Phase::kOpen) return;
  if (bundle_ != nullptr) tie_up();
  look_for_hole(now);
  look_for_more(now);
  if (requester_->failed()) return lose(link::PeerState::kDied);
  if (has_to_ask() && now >= next_req_) send_req(now);
  Host& host = shared_.host;
  for (unsigned sent = 0; sent < kPacketsAtOnce; ++sent) {
    const std::span<std::byte> place = host.place();
    if (place.empty()) return;
    if (!host.pending()) host.expect(requester_->at_hand());
    const std::size_t length = requester_->next(now, place);
    if (length == 0) break;
    fragments_.send(requester_->settings(), place.first(length), carries_, host, *path_);
  }
  // A buffer of the program is not mapped any more. The peer lives: the next send opens a new flow.
  if (requester_->failed()) close();
}

void RdmSender::trim() {
  if (requester_) requester_->trim();
  fragments_.trim();
  operations_.trim();
  early_.shrink_to_fit();
  finished_.shrink_to_fit();
}

os::Time RdmSender::due() const {
  if (state_ == Phase::kAsking) return next_req_;
  if (state_ == Phase::kLost || bundle_ != nullptr) return os::Time::min();
  const os::Time sends = requester_->due();
  return has_to_ask() ? std::min(sends, next_req_) : sends;
}

bool RdmSender::owes() const {
  if (state_ == Phase::kAsking) return !early_.empty() || !early_data_.empty();
  return state_ == Phase::kOpen && (requester_->busy() || bundle_ != nullptr);
}

bool RdmSender::quiet() const {
  if (state_ == Phase::kAsking) return false;
  return state_ == Phase::kLost || (!owes() && !narrows() && !wants_more_ && !raising_);
}

}  // namespace weft::rdm
