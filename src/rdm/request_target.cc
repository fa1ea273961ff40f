// SPDX-License-Identifier: BSD-2-Clause
// What becomes of the requests of one peer?
#include "request_target.h"

#include <cerrno>
#include <utility>

#include "flow_table.h"
#include "os/user_memory.h"
#include "rendezvous.h"
#include "shared.h"

namespace weft::rdm {

using work::RequestVerdict;

namespace {

// Well above the time in which a requester that goes on sends again what is not acknowledged, so
// that a path that loses most packets carries the message all the same.
constexpr auto kPartKept = std::chrono::seconds(5);

link::Arrival arrival_of(const MessageHeader& header, std::uint32_t source) {
  link::Arrival arrival;
  arrival.operation = header.operation;
  arrival.has_data = header.has_data;
  arrival.wants_ack = header.wants_ack;
  arrival.by_processor = true;
  arrival.source = source;
  arrival.tag = header.tag;
  arrival.data = header.data;
  arrival.length = header.length;
  arrival.offer = {source, header.rendezvous_id};
  return arrival;
}

}  // namespace

RequestTarget::RequestTarget(Shared& shared, RequestSource source)
    : shared_(shared),
      source_(std::move(source)),
      messages_(shared.message_memory),
      assembly_(messages_),
      accesses_(shared, source_.number, messages_) {}

void RequestTarget::begin_packet(const std::byte* payload, std::size_t path_mtu, os::Time now) {
  now_ = now;
  assembly_.begin_packet(payload, path_mtu);
}

void RequestTarget::end_packet() {
  shared_.memory.release();  // a checked access without a write
  assembly_.end_packet();
}

void RequestTarget::forget_places() {
  if (assembly_.placed() != nullptr) assembly_.placed()->wanted = 0;
}

bool RequestTarget::trim(os::Time now) {
  accesses_.trim();
  if (!assembly_.reserves()) return true;
  if (now - now_ < kPartKept) return false;
  assembly_.clear();
  return given_up_ = true;
}

void RequestTarget::shut() {
  message_breaks();
  shut_ = true;
}

void RequestTarget::discard() {
  message_breaks();
  discards_ = true;
}

// While closing, refuse the peer instead of RNR, so that two closing peers cannot deadlock. Allow
// twice the unexpected limit from a peer with operations outstanding here: its answer may be queued
// behind other messages.
RequestVerdict RequestTarget::message_begins() {
  if (shared_.closing && !shut_ && source_.pair == 0)
    shared_.flows->refuse(*shared_.flows->source(source_.number));
  if (shared_.closing && !discards_ && source_.pair != 0) discard();
  if (discards_) return {};
  const link::InboxSink& sink = *shared_.sink;
  const bool taken =
      sink.room_for(source_.number) != 0 ||
      (shared_.named_operations.waits_for(source_) && sink.takes_more_urgently(source_.number));
  if (shut_ || !taken || shared_.flows->owes_too_much(source_))
    return {RequestVerdict::Kind::kNotReady, 0};
  return {};
}

RequestVerdict RequestTarget::message_goes_on(std::span<const std::byte> bytes) {
  if (discards_) return {};
  if (given_up_) [[unlikely]]
    return {RequestVerdict::Kind::kGivenUp, 0};
  if (PlacedMessage* const placed = assembly_.placed()) {
    if (bytes.size() > placed->length - placed->there) return work::kInvalidRequest;
    placed->put(bytes);
    return {};
  }
  if (assembly_.is_empty() && taken_as_it_comes(bytes)) return {};
  return assembly_.add(bytes);
}

// Large messages need no copy where a receive waits for them.
bool RequestTarget::taken_as_it_comes(std::span<const std::byte> first) {
  if (shut_ || first.size() < kMessageHeader) return false;
  const MessageHeader header = read_header(first.data());
  const std::span<const std::byte> bytes = first.subspan(kMessageHeader);
  const bool message = header.operation == link::MessageOperation::kMessage ||
                       header.operation == link::MessageOperation::kTagged;
  if (header.kind != MessageKind::kEager || !message) return false;
  if (header.length <= bytes.size() || header.length > kLongestMessage) return false;
  link::Arrival arrival = arrival_of(header, source_.number);
  arrival.wants_ack = false;
  arrival.offer.rendezvous_id = 0;
  if (!shared_.sink->arriving(arrival) || assembly_.placed() == nullptr) return false;
  PlacedMessage& placed = *assembly_.placed();
  placed.length = header.length;
  if (header.wants_ack) placed.rendezvous_id = header.rendezvous_id;
  placed.put(bytes);
  return true;
}

void RequestTarget::end_placed() {
  const auto message = assembly_.take_placed();
  const bool whole = message->there == message->length;
  if (!whole) shared_.stats.add(Stat::kInvalidMessages);
  if (whole && message->rendezvous_id != 0) acknowledge(message->rendezvous_id);
  shared_.ended_receives.push_back({message->cookie, whole ? message->error : ECONNRESET});
}

void RequestTarget::message_ends(const work::MessageEnd&) {
  if (assembly_.placed() != nullptr) return end_placed();
  const std::span<const std::byte> message = assembly_.message();
  if (!shut_ && !discards_ &&
      (message.size() < kMessageHeader ||
       !arrived(read_header(message.data()), message.subspan(kMessageHeader)))) {
    shared_.stats.add(Stat::kInvalidMessages);
  }
  message_breaks();
}

void RequestTarget::message_breaks() {
  if (const auto message = assembly_.take_placed()) {
    shared_.ended_receives.push_back({message->cookie, ECONNRESET});
  }
  assembly_.clear();
  given_up_ = false;
}

// A message is checked where it is used; one that makes no sense is dropped: false.
bool RequestTarget::arrived(const MessageHeader& header, std::span<const std::byte> bytes) {
  switch (header.kind) {
    case MessageKind::kEager:
    case MessageKind::kRts:
      return message_arrived(header, bytes);
    case MessageKind::kTaken:
    case MessageKind::kResult:
      return answered(header, bytes);
    case MessageKind::kCts:
      return wanted(header);
    case MessageKind::kWithdrawn:
      withdrawn({source_.number, header.rendezvous_id});
      return true;
    case MessageKind::kAtomic:
      return atomic_arrived(header, bytes);
    case MessageKind::kCoalesced:
      return split(bytes);
    case MessageKind::kWriteImmInfo:
      accesses_.expect_immediate(header);
      return true;
    case MessageKind::kRangeBegin:
      return accesses_.begin_ranges(header, bytes);
    case MessageKind::kRangeEnd:
      accesses_.end_ranges();
      return true;
    case MessageKind::kAlias:
      return accesses_.know_alias(header);
  }
  return false;
}

// Accesses are announced by messages of other kinds.
bool RequestTarget::message_arrived(const MessageHeader& header, std::span<const std::byte> bytes) {
  const bool whole = header.kind == MessageKind::kEager;
  if (whole ? header.length != bytes.size() : header.rendezvous_id == 0) return false;
  const bool message = header.operation == link::MessageOperation::kMessage ||
                       header.operation == link::MessageOperation::kTagged;
  if (!message) return false;
  link::Arrival arrival = arrival_of(header, source_.number);
  arrival.payload = whole ? bytes.data() : nullptr;
  shared_.sink->arrived(arrival);
  return true;
}

// A message that makes no sense ends the packet of coalesced ones.
bool RequestTarget::split(std::span<const std::byte> coalesced) {
  while (!shut_ && !discards_ && coalesced.size() >= kMessageHeader) {
    const MessageHeader header = read_header(coalesced.data());
    coalesced = coalesced.subspan(kMessageHeader);
    // A packet is answered once at most, whatever it contains.
    if (header.kind != MessageKind::kEager || header.wants_ack) return false;
    if (header.length > coalesced.size()) return false;
    if (!message_arrived(header, coalesced.first(header.length)))
      shared_.stats.add(Stat::kInvalidMessages);
    coalesced = coalesced.subspan(header.length);
  }
  return true;
}

bool RequestTarget::answered(const MessageHeader& header, std::span<const std::byte> bytes) {
  RdmOperation* operation = shared_.named_operations.find(header.rendezvous_id, header.data);
  if (operation != nullptr) operation->queue->answered(*operation, header, bytes, now_);
  return operation != nullptr;
}

// A CTS for a withdrawn offer is answered, so that the receiver does not wait.
bool RequestTarget::wanted(const MessageHeader& header) {
  RdmOperation* offer = shared_.named_operations.find(header.rendezvous_id, header.data);
  const bool stands = offer != nullptr && offer->offered;
  if (header.tag > kNumberBits || (stands && header.length > offer->length)) return false;
  const auto rendezvous_id = static_cast<std::uint32_t>(header.tag);
  if (stands) {
    deliver(*offer, receive_key(rendezvous_id), header.length, now_);
    return true;
  }
  MessageHeader none;
  none.kind = MessageKind::kResult;
  none.tag = ECONNRESET;
  answer(rendezvous_id, none);
  return true;
}

// At once: the messages behind it are for the receive that has asked for it. The sender had not
// heard of that yet, so it writes nothing, and its answer to the CTS comes too late.
void RequestTarget::withdrawn(const link::Offer& offer) {
  shared_.sink->withdrawn(offer);
  RdmOperation* receive = shared_.named_operations.find_taker(offer);
  if (receive == nullptr) return;
  void* const cookie = receive->cookie;
  receive->queue->detach(*receive);
  shared_.sink->received(cookie, link::kWithdrawn);
}

bool RequestTarget::atomic_arrived(const MessageHeader& header, std::span<const std::byte> bytes) {
  std::byte fetched[kMaxAtomicBytes];
  const auto done = accesses_.execute(header, bytes, fetched);
  if (!done) return false;
  const bool refused = done->refusal != memory::AccessError::kNone;
  MessageHeader result;
  result.kind = MessageKind::kResult;
  result.tag = static_cast<std::uint64_t>(refused ? EACCES : done->error);
  result.length = static_cast<std::uint64_t>(done->refusal);
  const std::size_t back = done->ok() && header.action.fetches() ? header.length : 0;
  answer(header.rendezvous_id, result, {fetched, back});
  return true;
}

void RequestTarget::acknowledge(std::uint32_t rendezvous_id) {
  MessageHeader header;
  header.kind = MessageKind::kTaken;
  answer(rendezvous_id, header);
}

void RequestTarget::answer(std::uint32_t rendezvous_id, MessageHeader header,
                           std::span<const std::byte> bytes) {
  header.rendezvous_id = rendezvous_id;
  header.data = source_.identity;
  shared_.flows->return_path(source_).answer(header, bytes);
}

// A receive of this endpoint that waits for these bytes of its message next.
RdmOperation* RequestTarget::receive_of(const work::RemoteMemory& memory) const {
  RdmOperation* operation =
      shared_.named_operations.find_receive(memory.key & kNumberBits, source_.number);
  if (operation == nullptr) return nullptr;
  const bool next =
      memory.address == operation->there && memory.length <= operation->length - operation->there;
  return next ? operation : nullptr;
}

RequestVerdict RequestTarget::may_access(Access need, const work::RemoteMemory& memory) {
  RequestVerdict verdict = work::kInvalidRequest;
  if (!shut_ && !is_receive(memory.key)) {
    verdict = accesses_.may_access(need, memory);
  } else if (!shut_ && need == Access::kRemoteWrite && receive_of(memory) != nullptr) {
    verdict = {};
  }
  if (!verdict.ok()) accesses_.refuse();
  return verdict;
}

RequestVerdict RequestTarget::write(const work::RemoteMemory& memory, std::uint64_t offset,
                                    std::span<const std::byte> bytes) {
  if (shut_) return work::kInvalidRequest;
  if (!is_receive(memory.key)) return accesses_.write(memory, offset, bytes);
  RdmOperation* receive = receive_of(memory);
  if (receive == nullptr) return work::kInvalidRequest;
  const std::uint64_t begin = memory.address + offset;
  if (os::scatter(receive->buffers(), bytes.data(), bytes.size(), begin)) return {};
  receive->failure.error = EFAULT;
  receive->queue->has_answer(*receive, now_);
  return {RequestVerdict::Kind::kOperational, 0};
}

void RequestTarget::written(const work::RemoteMemory& memory, const work::MessageEnd& end) {
  if (!is_receive(memory.key)) return accesses_.written(end);
  RdmOperation* receive = receive_of(memory);
  if (receive == nullptr) return;
  receive->there += memory.length;
  if (receive->there == receive->length) receive->queue->has_answer(*receive, now_);
}

RequestVerdict RequestTarget::read(const work::RemoteMemory& memory, std::uint64_t offset,
                                   std::span<std::byte> out) {
  return accesses_.read(memory, offset, out);
}

RequestVerdict RequestTarget::atomic(bool compares, const work::AtomicOperands& what,
                                     std::uint64_t& original) {
  return shut_ ? work::kInvalidRequest : accesses_.atomic(compares, what, original);
}

}  // namespace weft::rdm
