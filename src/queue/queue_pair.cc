// SPDX-License-Identifier: BSD-2-Clause
// What is a queue pair?
#include "queue/queue_pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "datagram_link.h"
#include "link.h"
#include "os/user_memory.h"
#include "packet_link.h"
#include "queue/address_handle.h"
#include "queue/state_table.h"
#include "roce/route.h"
#include "target.h"

namespace weft::queue {

using work::CompletionStatus;
using work::WorkKind;

namespace {

constexpr std::uint64_t kAtomicBytes = 8;
constexpr std::uint8_t kMostRetries = 7;
constexpr std::uint8_t kMostTimerCode = 31;

bool is_connected(QpType type) { return type != QpType::kUd; }
bool sends(QpType type) { return type != QpType::kXrcReceive; }
bool receives(QpType type) { return type != QpType::kXrcSend; }

bool is_path_mtu(std::size_t bytes) {
  return bytes >= 256 && bytes <= wire::kMaxPathMtu && (bytes & (bytes - 1)) == 0;
}

// The time of a completion. An error may come long after the poll or the post has begun.
void* stamp(Time at, CompletionStatus status) {
  const Time time = status == CompletionStatus::kSuccess ? at : Time::clock::now();
  return reinterpret_cast<void*>(time.time_since_epoch().count());
}

bool is_atomic(const work::Work& work) {
  return work.kind == WorkKind::kCompareSwap || work.kind == WorkKind::kFetchAdd;
}
// Its answer is a value.
bool asks(const work::Work& work) { return work.kind >= WorkKind::kRead; }

// Which operations a service has (IBTA table 9.4).
bool has_operation(QpType type, const work::Work& work) {
  if (work.invalidates) return false;  // no memory windows
  switch (type) {
    case QpType::kRc:
    case QpType::kXrcSend:
      return true;
    case QpType::kUc:
      return work.kind == WorkKind::kSend || work.kind == WorkKind::kWrite;
    case QpType::kUd:
    case QpType::kXrcReceive:
      return work.kind == WorkKind::kSend;
  }
  return false;
}

}  // namespace

Result<std::unique_ptr<QueuePair>> QueuePair::create(const QpSetup& setup) {
  const QpCapacities& wanted = setup.capacities;
  const bool fits = wanted.sends <= kMaxWorkRequests && wanted.receives <= kMaxWorkRequests &&
                    wanted.send_sges <= kMaxSges && wanted.receive_sges <= kMaxSges &&
                    wanted.inline_bytes <= kMaxInline;
  if (!fits) return Error{EINVAL, "queue pair: a capacity is beyond the device's limit"};
  QpCapacities granted = wanted;
  granted.inline_bytes = std::max(wanted.inline_bytes, kLeastInline);
  if (!sends(setup.type)) granted.sends = granted.send_sges = granted.inline_bytes = 0;
  if (!receives(setup.type) || setup.shared != nullptr || setup.type == QpType::kXrcReceive) {
    granted.receives = granted.receive_sges = 0;
  }
  std::unique_ptr<QueuePair> pair(new QueuePair(setup, granted));
  const MutexLock guard(setup.port->lock());
  auto attachment = setup.port->attach(*pair);
  if (!attachment) return attachment.error();
  pair->attachment_ = attachment.value();
  return pair;
}

QueuePair::QueuePair(const QpSetup& setup, const QpCapacities& granted)
    : setup_(setup),
      capacities_(granted),
      send_queue_(granted.sends, granted.inline_bytes),
      own_receives_(granted.receives, granted.receive_sges),
      receives_(setup.shared != nullptr ? *setup.shared : own_receives_),
      memory_(std::in_place, setup.port->reader(), setup.port->writer(), setup.domain) {}

QueuePair::~QueuePair() {
  if (attachment_.packets != nullptr && !attachment_.packets->inherited()) {
    const MutexLock guard(setup_.port->lock());
    setup_.port->detach(*this, attachment_);
    leave_table();
    const MutexLock sending(send_lock_);
    emit_waiting();
    link_.reset();
  }
  for (device::CompletionQueue* queue : {setup_.sends, setup_.receives}) {
    if (queue != nullptr) queue->purge(this);
  }
}

void QueuePair::raise(QpEvent event) {
  if (setup_.events != nullptr) setup_.events->happened(event);
}

// Attributes

Status QueuePair::check(const QpAttributes& attributes, std::uint32_t mask,
                        std::size_t most_mtu) const {
  const auto refuse = [](const std::string& why) { return Error{EINVAL, why}; };
  const auto has = [mask](Attribute one) { return (mask & one) != 0; };
  if (has(kAttributePort) && attributes.port != 1) return refuse("the only port is 1");
  if (has(kAttributePkeyIndex) && attributes.pkey_index != 0) {
    return refuse("the only P_Key has index 0");
  }
  constexpr auto kRights = Access::kRemoteRead | Access::kRemoteWrite | Access::kRemoteAtomic;
  if (has(kAttributeAccess) && !includes(kRights, attributes.access)) {
    return refuse("unknown access flags");
  }
  if (has(kAttributePathMtu) &&
      (!is_path_mtu(attributes.path_mtu) || attributes.path_mtu > most_mtu)) {
    return refuse("path MTU " + std::to_string(attributes.path_mtu) + ": the interface carries " +
                  std::to_string(most_mtu));
  }
  if (has(kAttributeMaxReads) && attributes.max_reads > kMaxReads) {
    return refuse("max_rd_atomic above " + std::to_string(kMaxReads));
  }
  if (has(kAttributeMaxReadsOfPeer) && attributes.max_reads_of_peer > kMaxReads) {
    return refuse("max_dest_rd_atomic above " + std::to_string(kMaxReads));
  }
  if (has(kAttributeRnrTimer) && attributes.rnr_timer > kMostTimerCode) {
    return refuse("min_rnr_timer above 31");
  }
  if (has(kAttributeTimeout) && attributes.timeout > kMostTimerCode) {
    return refuse("timeout above 31");
  }
  if ((has(kAttributeRetries) && attributes.retries > kMostRetries) ||
      (has(kAttributeRnrRetries) && attributes.rnr_retries > kMostRetries)) {
    return refuse("retry_cnt or rnr_retry above 7");
  }
  if (has(kAttributeAddress) &&
      attributes.address.remote.family() != attributes.address.local.family()) {
    return refuse("source and destination GID are of different families");
  }
  return {};
}

void QueuePair::apply(const QpAttributes& attributes, std::uint32_t mask) {
  const auto take = [&](Attribute one, auto member) {
    if ((mask & one) != 0) attributes_.*member = attributes.*member;
  };
  take(kAttributeAccess, &QpAttributes::access);
  take(kAttributePkeyIndex, &QpAttributes::pkey_index);
  take(kAttributePort, &QpAttributes::port);
  take(kAttributeQueueKey, &QpAttributes::queue_key);
  take(kAttributeAddress, &QpAttributes::address);
  take(kAttributePathMtu, &QpAttributes::path_mtu);
  take(kAttributeDestination, &QpAttributes::destination);
  take(kAttributeReceivePsn, &QpAttributes::receive_psn);
  take(kAttributeSendPsn, &QpAttributes::send_psn);
  take(kAttributeMaxReads, &QpAttributes::max_reads);
  take(kAttributeMaxReadsOfPeer, &QpAttributes::max_reads_of_peer);
  take(kAttributeRnrTimer, &QpAttributes::rnr_timer);
  take(kAttributeTimeout, &QpAttributes::timeout);
  take(kAttributeRetries, &QpAttributes::retries);
  take(kAttributeRnrRetries, &QpAttributes::rnr_retries);
}

Status QueuePair::modify(const QpAttributes& attributes, std::uint32_t mask, std::size_t most_mtu) {
  if (inherited()) return Error{EINVAL, "the queue pair is that of the parent process"};
  const MutexLock guard(setup_.port->lock());
  conclude();
  MutexLock sending(send_lock_);
  const QpState from = state();
  const bool moves = (mask & kAttributeState) != 0;
  const QpState to = moves ? attributes.state : from;
  if ((mask & kAttributeCurrentState) != 0 && attributes.current_state != from) {
    return Error{EINVAL, std::string("the queue pair is in ") + name_of(from)};
  }
  if (Status ok = check_transition(setup_.type, from, to, mask); !ok) return ok;
  if (Status ok = check(attributes, mask, most_mtu); !ok) return ok;
  constexpr std::uint32_t kLater = kAttributeAlternatePath | kAttributePathMigration;
  if (to == QpState::kSendQueueDrained || (mask & kLater) != 0) {
    return Error{EOPNOTSUPP, "SQD and alternate paths are not offered"};
  }
  if (to == QpState::kReset) {
    reset();
    return {};
  }
  if (to == QpState::kError) {
    sending.unlock();
    if (from != to) fail();
    return {};
  }
  const QpAttributes before = attributes_;
  apply(attributes, mask);
  if (from == QpState::kInit && to == QpState::kReadyToReceive) {
    if (Status ok = begin_receiving(most_mtu); !ok) {
      attributes_ = before;
      return ok;
    }
  }
  if (from == QpState::kReadyToReceive && to == QpState::kReadyToSend) {
    link_->begin_sending(attributes_);
  }
  if (from == QpState::kSendQueueError) {
    send_failed_ = false;
    link_->begin_sending(attributes_);
  }
  if (target_ != nullptr) target_->serve(attributes_.access);
  if (entry_ && before.access != attributes_.access) {
    const bool shares = !uses_packets_;
    if (Status ok = setup_.device->regions().replace(*entry_, entry(shares)); !ok) return ok;
  }
  if (link_ != nullptr) link_->change(attributes_);
  state_.store(to, std::memory_order_release);
  return {};
}

// INIT to RTR.
Status QueuePair::begin_receiving(std::size_t most_mtu) {
  QpPort& port = *setup_.port;
  ReceiveEnd end;
  end.domain = setup_.domain;
  end.completions = setup_.receives;
  if (receives(setup_.type) && setup_.type != QpType::kXrcReceive) end.receives = &receives_;
  ReceiveSink& sink = *this;
  auto target =
      std::make_unique<QpTarget>(port.writer(), end, qpn(), sink, setup_.shared_by_number);
  target->serve(attributes_.access);
  roce::PacketPort& packets = *attachment_.packets;
  if (!is_connected(setup_.type)) {
    DatagramParts parts{[&packets](int family) { return packets.output(family); },
                        *this,
                        *memory_,
                        *target,
                        port.stats(),
                        port,
                        qpn(),
                        std::min(most_mtu, wire::kMaxPathMtu),
                        attachment_.memory,
                        setup_.device->capture()};
    link_ = std::make_unique<DatagramLink>(attributes_, parts);
    target_ = std::move(target);
    return {};
  }
  target_ = std::move(target);
  const auto shares = begin_sharing();
  if (!shares) return shares.error();
  return shares.value() ? Status() : begin_packets();
}

// The queues are emptied without completions, and those of this queue pair leave their queues (IBTA
// 10.3.1).
void QueuePair::reset() {
  state_.store(QpState::kReset, std::memory_order_release);
  leave_table();
  emit_waiting();
  link_.reset();
  target_.reset();
  own_receives_.clear();
  send_queue_.clear();
  attributes_ = {};
  memory_.emplace(setup_.port->reader(), setup_.port->writer(), setup_.domain);
  send_failed_ = receive_failed_ = overran_ = communicates_ = false;
  announced_ = Time::max();
  for (device::CompletionQueue* queue : {setup_.sends, setup_.receives}) {
    if (queue != nullptr) queue->purge(this);
  }
}

QpAttributes QueuePair::query() {
  const auto answer = [this] {
    QpAttributes found = attributes_;
    found.state = found.current_state = state();
    return found;
  };
  if (inherited()) return answer();
  const MutexLock guard(setup_.port->lock());
  conclude();
  return answer();
}

// Sending

int QueuePair::accept(QpSendRequest& request) const {
  const work::Work& work = request.work;
  const QpState at = state();
  if (at < QpState::kReadyToSend) return EINVAL;
  if (!sends(setup_.type)) return EINVAL;
  if (work.sges.size() > capacities_.send_sges) return EINVAL;
  const bool datagrams = setup_.type == QpType::kUd;
  const bool known = has_operation(setup_.type, work);
  if (!known && !datagrams) return EINVAL;
  if (datagrams && request.to == nullptr) return EINVAL;
  if (request.copied && (work.kind > WorkKind::kWrite || work.length > capacities_.inline_bytes)) {
    return EINVAL;
  }
  const bool foreign = datagrams && request.to->domain() != setup_.domain;
  if (!known || foreign || (asks(work) && attributes_.max_reads == 0)) {
    request.refusal = CompletionStatus::kLocalOperation;
  } else if (is_atomic(work) ? work.sges.size() != 1 || work.length != kAtomicBytes
                             : work.length > work::kMaxMessage) {
    request.refusal = CompletionStatus::kLocalLength;
  }
  return 0;
}

int QueuePair::post(const QpSendRequest& wanted) {
  QpSendRequest request = wanted;
  work::Work& work = request.work;
  if (const int error = accept(request); error != 0) return error;
  SendSlot* const slot = send_queue_.take();
  if (slot == nullptr) return ENOMEM;
  slot->id = request.id;
  slot->length = work.length;
  slot->address = work.address;
  slot->key = work.key;
  slot->opcode = request.opcode;
  slot->signaled = request.signaled || setup_.all_signaled;
  work::Segment copied{send_queue_.inline_place(*slot), work.length, 0};
  if (request.copied) {
    std::size_t done = 0;
    for (const work::Segment& each : work.sges) {
      if (!os::copy_from_user(static_cast<std::byte*>(copied.base) + done, each.base,
                              each.length)) {
        send_queue_.give_back();
        return EFAULT;
      }
      done += each.length;
    }
    work.sges = {&copied, 1};
  }
  if (is_atomic(work)) {
    slot->result = work.sges.empty() ? work::Segment{} : work.sges[0];
    work.original = &slot->original;
    work.sges = {};
  }
  work.prompt = slot->signaled;
  work.cookie = slot;
  if (state() > QpState::kReadyToSend || send_failed_ || link_ == nullptr) {
    ended({slot, CompletionStatus::kFlushed, 0});
    return 0;
  }
  link_->post(request);
  return 0;
}

// The last post has been made: packets leave without waiting for the port's lock. Returns when the
// port is to look, if that is earlier than it would.
Time QueuePair::posted() {
  const Time now = setup_.port->clock().now();
  if (was_polled_.load(std::memory_order_relaxed)) {
    was_polled_.store(false, std::memory_order_relaxed);
    setup_.port->was_polled(now);
  }
  const bool polls = setup_.port->is_polled_often(now);
  const bool replies = link_ != nullptr && link_->expects_post();
  if (replies && setup_.port->lock().try_lock()) {
    const MutexLock answering(setup_.port->lock(), std::adopt_lock);
    emit(Answers::kOfReply, polls, now);
  } else {
    if (replies) replied_.store(true, std::memory_order_relaxed);  // the next poll
    emit(Answers::kNo, polls, now);
  }
  const Time due = send_due();
  return due < announced_ ? announced_ = due : Time::max();
}

// Requests first: acknowledgements are smaller, and may end a train.
void QueuePair::emit(Answers answers, bool polls, Time now) {
  if (link_ == nullptr) return;
  emits_at_ = now;
  if (link_->has_near_work()) begin_watch();
  const MutexLock guard(setup_.port->transmit_lock());
  if (answers != Answers::kNo) link_->take_answers(now);
  link_->emit_requests(polls, now);
  if (answers != Answers::kNo) link_->emit_answers(answers == Answers::kOfReply, now);
  flush_output();
}

void QueuePair::flush_output() {
  for (const int family : {AF_INET, AF_INET6}) {
    if (roce::PacketOutput* output = attachment_.packets->output(family)) output->flush();
  }
}

// An acknowledgement that waits for a request leaves, as there will be none.
void QueuePair::emit_waiting() {
  if (link_ == nullptr || !link_->expects_post()) return;
  const MutexLock guard(setup_.port->transmit_lock());
  emit_last_answers();
}

void QueuePair::emit_last_answers() {
  link_->emit_answers(true, Time::clock::now());
  flush_output();
}

// A signal handler may have interrupted the holder of a lock.
void QueuePair::finish() {
  setup_.port->lock().assert_held();
  if (!send_lock_.try_lock()) return;
  const MutexLock sending(send_lock_, std::adopt_lock);
  if (link_ == nullptr || !setup_.port->transmit_lock().try_lock()) return;
  const MutexLock guard(setup_.port->transmit_lock(), std::adopt_lock);
  emit_last_answers();
}

Time QueuePair::send_due() {
  if (send_failed_ && state() == QpState::kReadyToSend) return Time::min();
  return link_ != nullptr ? link_->send_due() : Time::max();
}

// An error ends the send queue: all work behind it is flushed. The port's next poll ends the rest
// of the queue pair.
void QueuePair::ended(const work::Ended& work) {
  send_lock_.assert_held();
  const SendSlot& slot = *static_cast<const SendSlot*>(work.cookie);
  CompletionStatus status = send_failed_ ? CompletionStatus::kFlushed : work.status;
  const bool atomic =
      slot.opcode == CompletionOpcode::kCompareSwap || slot.opcode == CompletionOpcode::kFetchAdd;
  if (status == CompletionStatus::kSuccess && atomic) {
    const auto* value = reinterpret_cast<const std::byte*>(&slot.original);
    if (!memory_->scatter({&slot.result, 1}, 0, {value, kAtomicBytes})) {
      status = CompletionStatus::kLocalProtection;
    }
  }
  const bool failed = status != CompletionStatus::kSuccess;
  const std::uint32_t frees = send_queue_.ended(slot.signaled || failed);
  if (failed && status != CompletionStatus::kFlushed) send_failed_ = true;
  if (slot.signaled || failed) complete_send(slot, status, work.detail, frees);
}

void QueuePair::complete_send(const SendSlot& slot, CompletionStatus status, std::uint8_t detail,
                              std::uint32_t frees) {
  const bool takes = slot.opcode >= CompletionOpcode::kRead;  // bytes of the peer's memory
  const auto local =
      static_cast<std::uint8_t>(takes ? memory_->scatter_error() : memory_->gather_error());
  const bool at_this_end = status == CompletionStatus::kLocalProtection && detail == 0;
  const std::uint8_t reason = at_this_end ? local : detail;
  if (status != CompletionStatus::kSuccess) explain(slot, status, reason);
  const bool added = setup_.sends->push([&](device::Completion& completion) {
    completion = {};
    completion.context = reinterpret_cast<void*>(slot.id);
    completion.flags = flags_of(slot.opcode);
    completion.length = slot.length;
    completion.tag = tag_of(qpn(), frees);
    send_lock_.assert_held();
    completion.owner = this;
    completion.buffer = stamp(emits_at_, status);
    completion.status = status;
    completion.reason = reason;
  });
  if (!added) overran_ = send_failed_ = true;
}

void QueuePair::polled(const device::Completion& completion) {
  const bool sent = static_cast<std::uint8_t>(opcode_of(completion)) <
                    static_cast<std::uint8_t>(CompletionOpcode::kReceive);
  if (!sent) return;
  auto* const pair = static_cast<QueuePair*>(const_cast<void*>(completion.owner));
  pair->was_polled_.store(true, std::memory_order_relaxed);
  pair->send_queue_.retire(static_cast<std::uint32_t>(completion.tag));
}

// Receiving

int QueuePair::post_receive(std::uint64_t id, std::span<const work::Segment> segments) {
  if (setup_.shared != nullptr || setup_.receives == nullptr || inherited()) return EINVAL;
  if (state() == QpState::kReset) return EINVAL;
  if (state() != QpState::kError) return own_receives_.post(id, segments);
  const MutexLock guard(setup_.port->lock());
  if (segments.size() > capacities_.receive_sges) return EINVAL;
  flush_receive(id);
  return 0;
}

void QueuePair::flush_receive(std::uint64_t id) {
  ReceiveEnding flushed;
  flushed.id = id;
  flushed.status = CompletionStatus::kFlushed;
  received(flushed, setup_.receives);
}

void QueuePair::received(const ReceiveEnding& receive, device::CompletionQueue* completions) {
  const bool failed = receive.status != CompletionStatus::kSuccess;
  if (failed && receive.status != CompletionStatus::kFlushed) receive_failed_ = true;
  if (receive.status == CompletionStatus::kLocalProtection) {
    setup_.refusals->own([&] {
      return fmt::format("QP {:#x}: a receive (wr_id {:#x}) may not use its buffer: {}", qpn(),
                         receive.id, memory::describe(receive.reason));
    });
  }
  if (completions == nullptr) return;
  const bool added = completions->push([&](device::Completion& completion) {
    completion = {};
    completion.context = reinterpret_cast<void*>(receive.id);
    completion.flags = flags_of(receive.opcode);
    if (receive.end.has_immediate) completion.flags |= kHasImmediate;
    if (receive.end.solicited) completion.flags |= device::kSolicited;
    if (receive.source) completion.flags |= kHasGrh;
    completion.length = receive.length;
    completion.data = receive.end.immediate;
    completion.tag = tag_of(qpn(), receive.source.value_or(attributes_.destination));
    completion.owner = completions == setup_.receives ? this : nullptr;
    setup_.port->lock().assert_held();
    completion.buffer = stamp(setup_.port->now(), receive.status);
    completion.status = receive.status;
    completion.reason = static_cast<std::uint8_t>(receive.reason);
  });
  if (!added) overran_ = receive_failed_ = true;
}

void QueuePair::take(const roce::PacketArrival& arrival) {
  setup_.port->lock().assert_held();
  const QpState at = state();
  const bool listens = at >= QpState::kReadyToReceive && at < QpState::kError;
  if (!listens || link_ == nullptr || !link_->is_peer(arrival.from)) {
    return setup_.port->stats().add(listens ? Stat::kWrongPeer : Stat::kUnknownQp);
  }
  const bool request = wire::layout_of(arrival.packet.opcode).request;
  setup_.port->stats().add(request ? Stat::kRequests : Stat::kResponses);
  if (arrival.marked) setup_.port->stats().add(Stat::kEcnMarked);
  if (!std::exchange(communicates_, true) && is_connected(setup_.type) &&
      at == QpState::kReadyToReceive) {
    raise(QpEvent::kCommunicationEstablished);
  }
  if (request || !is_connected(setup_.type)) {
    link_->take_request(arrival, setup_.port->now());
    explain_refusal();
    target_->release();
  } else {
    const MutexLock guard(send_lock_);
    emits_at_ = setup_.port->now();
    link_->take_response(arrival, emits_at_);
  }
  setup_.port->touch(*this);
}

void QueuePair::take_cnp(const roce::PacketArrival& arrival) {
  setup_.port->lock().assert_held();
  if (link_ == nullptr || arrival.from.host() != attributes_.address.remote.host()) {
    return setup_.port->stats().add(Stat::kUnknownFlow);
  }
  setup_.port->stats().add(Stat::kCnpsHandled);
  const MutexLock guard(send_lock_);
  link_->take_cnp(setup_.port->now());
}

// Retries decide whether the peer is there: an ICMP error can be forged.
void QueuePair::unreachable(const os::UdpError& /*error*/) {}

Time QueuePair::settle(Time now) {
  setup_.port->lock().assert_held();
  Time next = Time::max();
  {
    const MutexLock guard(send_lock_);
    const bool replied = replied_.exchange(false, std::memory_order_relaxed);
    const Answers answers = replied ? Answers::kOfReply : Answers::kOfPoll;
    emit(answers, true, now);
    if (link_ != nullptr && link_->wants_packets() && entry_ && state() != QpState::kError) {
      turn_to_packets();
      emit(answers, true, now);
    }
    next = next_due();
  }
  conclude();
  return state() == QpState::kError ? Time::max() : next;
}

// Draws the conclusions from an error of either queue. With the port's lock.
void QueuePair::conclude() {
  if (state() == QpState::kError) return;
  const bool refused = link_ != nullptr && link_->receive_failed();
  const bool unreliable = setup_.type == QpType::kUc || setup_.type == QpType::kUd;
  if (send_failed_ && unreliable && !receive_failed_ && !overran_) return fail_sends();
  if (!send_failed_ && !receive_failed_ && !refused) return;
  if (refused && !receive_failed_) report_refusal();
  if (overran_) raise(QpEvent::kFatal);
  fail();
}

// A refused request raises an event, unless the completion of a receive says why (IBTA 9.9.3).
void QueuePair::report_refusal() {
  switch (target_->last_verdict()) {
    case work::RequestVerdict::Kind::kAccess:
      return raise(QpEvent::kAccessError);
    case work::RequestVerdict::Kind::kOperational:
      return raise(QpEvent::kFatal);
    case work::RequestVerdict::Kind::kYes:
    case work::RequestVerdict::Kind::kNotReady:
    case work::RequestVerdict::Kind::kInvalid:
    case work::RequestVerdict::Kind::kGivenUp:
      return raise(QpEvent::kRequestError);
  }
}

// Errors of the send queue of an unreliable service leave its receive queue alone (IBTA 10.3.1).
void QueuePair::fail_sends() {
  const MutexLock guard(send_lock_);
  state_.store(QpState::kSendQueueError, std::memory_order_release);
  link_->flush();
}

// The peer may read buffers of SENDs until the queue pair has left the table.
void QueuePair::fail() {
  {
    const MutexLock guard(send_lock_);
    emit_waiting();
    state_.store(QpState::kError, std::memory_order_release);
    leave_table();
    if (link_ != nullptr) link_->flush();
  }
  flush_receives();
}

void QueuePair::flush_receives() {
  if (target_ != nullptr) target_->flush();
  if (setup_.shared != nullptr || setup_.type == QpType::kXrcReceive) {
    return raise(QpEvent::kLastReceiveReached);
  }
  if (setup_.receives == nullptr) return;
  for (PostedReceive receive; own_receives_.take(receive);) flush_receive(receive.id);
}

void QueuePair::tick(Time now) {
  setup_.port->lock().assert_held();
  const MutexLock guard(send_lock_);
  if (link_ != nullptr) link_->tick(now);
}

Time QueuePair::due() {
  setup_.port->lock().assert_held();
  const MutexLock guard(send_lock_);
  return next_due();
}

Time QueuePair::next_due() {
  if (state() == QpState::kError || link_ == nullptr) return announced_ = Time::max();
  return announced_ = std::min(send_due(), link_->receive_due());
}

}  // namespace weft::queue
