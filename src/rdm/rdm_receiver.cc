// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint receive from one peer over the network?
#include "rdm_receiver.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "flow_table.h"
#include "memory/atomic_kernels.h"
#include "operation.h"
#include "os/user_memory.h"
#include "rendezvous.h"
#include "shared.h"

namespace weft::rdm {

using work::RequestVerdict;

namespace {

// Of what it did not ask for it hears that much later, well before it misses it.
constexpr auto kLazily = std::chrono::microseconds(200);
constexpr unsigned kAnswersAtOnce = 128;
// Aliases of one peer: regions whose keys have more than 31 bits.
constexpr std::size_t kMostAliases = std::size_t{1} << 20;
constexpr std::size_t kFewAliases = 16;
// Messages of other kinds than kEager that may take several packets.
constexpr std::size_t kLongestWithRanges =
    kMessageHeader + link::kMaxPieces * kRange + 2 * kMaxAtomicBytes;
constexpr RequestVerdict kInvalid{RequestVerdict::Kind::kInvalid, 0};

transport::Settings settings_for(const ConnReq& req, const ConnRep& rep) {
  transport::Settings settings;
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
  arrival.offer = {source, header.exchange};
  return arrival;
}

RequestVerdict verdict_of(const memory::Accessed& accessed) {
  if (accessed.refusal != memory::AccessError::kNone) {
    return {RequestVerdict::Kind::kAccess, static_cast<std::uint8_t>(accessed.refusal)};
  }
  if (accessed.error != 0) return {RequestVerdict::Kind::kOperational, 0};
  return {};
}

}  // namespace

RdmReceiver::RdmReceiver(Shared& shared, const ConnReq& req, const ConnRep& rep,
                         std::shared_ptr<const roce::Path> path, std::uint32_t number,
                         std::size_t longest)
    : shared_(shared),
      req_(req),
      rep_(rep),
      path_(std::move(path)),
      number_(number),
      longest_(longest),
      packets_(shared.packet_memory),
      messages_(shared.message_memory),
      fragments_(packets_),
      responder_(settings_for(req, rep), *this, &packets_) {}

void RdmReceiver::take_early_data(std::span<const std::byte> early_data) {
  link::Arrival arrival;
  arrival.operation = link::Operation::kControl;
  arrival.source = number_;
  arrival.length = early_data.size();
  arrival.payload = early_data.data();
  shared_.sink->arrived(arrival);
}

void RdmReceiver::take(const wire::Packet& request, os::Time now) {
  if (shut_) {
    shared_.flows->emission().send_cm(*path_,
                                      ConnRej{ConnRej::Why::kUnwanted, req_.me.connection_id, 0});
    return;
  }
  hear(now);
  arrived_at_ = request.payload.data();
  responder_.take(request, now);
  shared_.memory.release();  // a checked access without a write
  if (!packet_.empty()) keep_packet();
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
    fragments_.send(responder_.settings(), place.first(length), rep_.me.path_mtu, shared_.host,
                    *path_);
  }
}

bool RdmReceiver::suggest(std::size_t path_mtu) {
  if (path_mtu >= rep_.me.path_mtu) return false;
  rep_.me.path_mtu = path_mtu;
  return true;
}

// Larger packets are agreed to only for the next number: a REQ that was on its way for long must
// change nothing, as the peer does not know of it any more.
void RdmReceiver::agree(const ConnReq& again) {
  const bool raises = again.raises == static_cast<std::uint8_t>(rep_.raises + 1);
  if (!raises && again.raises != rep_.raises) return;
  std::size_t path_mtu = again.path_mtu;
  if (raises) {
    const std::size_t own = shared_.flows->path_mtu_to(path_->to);
    path_mtu = std::clamp(path_mtu, rep_.path_mtu, std::max(own, rep_.path_mtu));
    if (path_mtu != rep_.path_mtu && !responder_.widen(path_mtu)) return;
    rep_.raises = again.raises;
    rep_.path_mtu = path_mtu;
    rep_.me.path_mtu = std::min(again.me.path_mtu, std::max(own, rep_.me.path_mtu));
    return;
  }
  static_cast<void>(suggest(again.me.path_mtu));  // the peer knows
  if (responder_.narrow(path_mtu)) rep_.path_mtu = path_mtu;
}

bool RdmReceiver::count_unreachable(bool proven) {
  return proven || ++unreachable_ >= kMostUnreachable;
}

void RdmReceiver::trim() {
  fragments_.trim();
  told_keys_.shrink_to_fit();
}

void RdmReceiver::shut() {
  message_breaks();
  shut_ = true;
  shared_.flows->emission().send_cm(*path_,
                                    ConnRej{ConnRej::Why::kUnwanted, req_.me.connection_id, 0});
}

// While closing, reject instead of RNR, so that two closing peers cannot deadlock. Allow twice the
// unexpected limit from a peer with operations outstanding here: its answer may be queued behind
// other messages.
RequestVerdict RdmReceiver::message_begins() {
  if (shared_.closing && !shut_) shut();
  const link::InboxSink& sink = *shared_.sink;
  const bool taken =
      sink.takes_more() || (shared_.exchanges.waits_for(station()) && sink.takes_more_urgently());
  if (shut_ || !taken || shared_.flows->owes_too_much(*this))
    return {RequestVerdict::Kind::kNotReady, 0};
  return {};
}

// Most messages are one packet: they are read where it lies, if that is where it has just arrived.
RequestVerdict RdmReceiver::message_goes_on(std::span<const std::byte> bytes) {
  if (incoming_ != nullptr) {
    if (bytes.size() > incoming_->length - incoming_->there) return kInvalid;
    put(bytes);
    return {};
  }
  const bool first = message_.empty() && packet_.empty();
  if (first && taken_as_it_comes(bytes)) return {};
  if (first) {
    if (const RequestVerdict room = begins_with(bytes); !room.ok()) return room;
  }
  if (message_.size() + packet_.size() + bytes.size() > promised_) return kInvalid;
  keep_packet();
  packet_ = bytes;
  if (bytes.data() != arrived_at_) keep_packet();
  return {};
}

// Memory for all of a message of several packets is taken when it begins: if each packet took its
// own, messages that have begun could wait for each other without end.
RequestVerdict RdmReceiver::begins_with(std::span<const std::byte> first) {
  promised_ = first.size();
  const bool alone = first.size() < responder_.settings().path_mtu || first.size() < kMessageHeader;
  if (alone) return {};
  const MessageHeader header = read_header(first.data());
  if (header.kind == MessageKind::kEager) {
    if (header.length > longest_ - kMessageHeader) return kInvalid;
    promised_ = std::max<std::size_t>(promised_, kMessageHeader + header.length);
  } else if (header.kind == MessageKind::kAtomic || header.kind == MessageKind::kRangeBegin) {
    promised_ = std::max(promised_, kLongestWithRanges);
  } else if (header.kind == MessageKind::kResult) {
    promised_ = std::max(promised_, kMessageHeader + kMaxAtomicBytes);
  } else if (header.kind == MessageKind::kCoalesced) {
    // It filled one packet when it was written; the packets may have become smaller since.
    promised_ = std::max(promised_, wire::kMaxReliableDatagramMtu);
  }
  if (promised_ == first.size()) return {};
  if (!messages_.take(promised_)) return {RequestVerdict::Kind::kNotReady, 0};
  reserved_ = promised_;
  message_.reserve(promised_);
  return {};
}

// Large messages need no copy where a receive waits for them.
bool RdmReceiver::taken_as_it_comes(std::span<const std::byte> first) {
  if (shut_ || first.size() < kMessageHeader) return false;
  const MessageHeader header = read_header(first.data());
  const std::span<const std::byte> bytes = first.subspan(kMessageHeader);
  const bool message =
      header.operation == link::Operation::kMessage || header.operation == link::Operation::kTagged;
  if (header.kind != MessageKind::kEager || !message) return false;
  if (header.length <= bytes.size() || header.length > longest_) return false;
  link::Arrival arrival = arrival_of(header, number_);
  arrival.wants_ack = false;
  arrival.offer.exchange = 0;
  if (!shared_.sink->arriving(arrival)) return false;
  incoming_->length = header.length;
  if (header.wants_ack) incoming_->exchange = header.exchange;
  put(bytes);
  return true;
}

void RdmReceiver::place(std::span<const LocalRange> pieces, std::uint64_t length, void* cookie) {
  incoming_ = std::make_unique<Incoming>();
  incoming_->cookie = cookie;
  incoming_->count = pieces.size();
  std::copy(pieces.begin(), pieces.end(), incoming_->pieces.begin());
  incoming_->wanted = length;
}

void RdmReceiver::forget_places() {
  if (incoming_ != nullptr) incoming_->wanted = 0;
}

void RdmReceiver::put(std::span<const std::byte> bytes) {
  Incoming& to = *incoming_;
  const std::uint64_t wanted = to.wanted - std::min(to.wanted, to.there);
  const std::size_t length = std::min<std::uint64_t>(bytes.size(), wanted);
  if (!os::scatter({to.pieces.data(), to.count}, bytes.data(), length, to.there)) {
    to.error = EFAULT;
  }
  to.there += bytes.size();
}

void RdmReceiver::all_there() {
  const auto message = std::exchange(incoming_, nullptr);
  const bool whole = message->there == message->length;
  if (!whole) ++senseless_;
  if (whole && message->exchange != 0) acknowledge(message->exchange);
  shared_.ended_receives.push_back({message->cookie, whole ? message->error : ECONNRESET});
}

// The header of an answer to what came over this flow.
MessageHeader RdmReceiver::answer_to(std::uint32_t exchange, MessageKind kind) const {
  MessageHeader header;
  header.kind = kind;
  header.exchange = exchange;
  header.data = identity();
  return header;
}

void RdmReceiver::acknowledge(std::uint32_t exchange) {
  shared_.flows->return_path(*this).answer(answer_to(exchange, MessageKind::kTaken));
}

void RdmReceiver::message_breaks() {
  if (const auto message = std::exchange(incoming_, nullptr)) {
    shared_.ended_receives.push_back({message->cookie, ECONNRESET});
  }
  if (message_.capacity() != 0) std::vector<std::byte>().swap(message_);
  messages_.give(std::exchange(reserved_, 0));
  packet_ = {};
}

void RdmReceiver::keep_packet() {
  message_.insert(message_.end(), packet_.begin(), packet_.end());
  packet_ = {};
}

void RdmReceiver::message_ends(const work::MessageEnd&) {
  if (incoming_ != nullptr) return all_there();
  if (!message_.empty()) keep_packet();
  const std::span<const std::byte> message = message_.empty() ? packet_ : message_;
  if (!shut_ && (message.size() < kMessageHeader ||
                 !arrived(read_header(message.data()), message.subspan(kMessageHeader)))) {
    ++senseless_;
  }
  message_breaks();
}

// One that makes no sense ends the bundle.
bool RdmReceiver::untie(std::span<const std::byte> bundle) {
  while (!shut_ && bundle.size() >= kMessageHeader) {
    const MessageHeader header = read_header(bundle.data());
    bundle = bundle.subspan(kMessageHeader);
    // A packet is answered once at most, whatever is tied up in it.
    if (header.kind != MessageKind::kEager || header.wants_ack) return false;
    if (header.length > bundle.size()) return false;
    if (!arrived(header, bundle.first(header.length))) ++senseless_;
    bundle = bundle.subspan(header.length);
  }
  return true;
}

// What a peer says is checked where it is used; what makes no sense is dropped: false.
bool RdmReceiver::arrived(const MessageHeader& header, std::span<const std::byte> bytes) {
  switch (header.kind) {
    case MessageKind::kEager:
    case MessageKind::kRts: {
      const bool whole = header.kind == MessageKind::kEager;
      if (whole ? header.length != bytes.size() : header.exchange == 0) return false;
      // Accesses announce themselves in other ways.
      const bool message = header.operation == link::Operation::kMessage ||
                           header.operation == link::Operation::kTagged ||
                           header.operation == link::Operation::kControl;
      if (!message) return false;
      link::Arrival arrival = arrival_of(header, number_);
      arrival.payload = whole ? bytes.data() : nullptr;
      shared_.sink->arrived(arrival);
      return true;
    }
    case MessageKind::kTaken:
    case MessageKind::kResult:
      return answered(header, bytes);
    case MessageKind::kCts:
      return wanted(header);
    case MessageKind::kWithdrawn:
      withdrawn({number_, header.exchange});
      return true;
    case MessageKind::kAtomic:
      return carry_out(header, bytes);
    case MessageKind::kCoalesced:
      return untie(bytes);
    case MessageKind::kWriteImmInfo:
      notice_ = header;
      notice_.has_data = true;
      refused_ = false;
      if (announced_) announced_->has_data = true;
      return true;
    case MessageKind::kRangeBegin:
      return check(header, bytes);
    case MessageKind::kRangeEnd:
      checked();
      return true;
    case MessageKind::kAlias:
      return know_alias(header);
  }
  return false;
}

// A sender numbers its aliases from 0 on: no other number than the next is one.
bool RdmReceiver::know_alias(const MessageHeader& header) {
  if (header.exchange != aliases_.size() || header.exchange >= kMostAliases) return false;
  if (aliases_.size() == aliases_.capacity()) {
    const std::size_t more = std::max(kFewAliases, aliases_.size());
    if (!messages_.take(more * sizeof(RegionKey))) return false;
    aliases_.reserve(aliases_.size() + more);
  }
  aliases_.push_back(RegionKey{header.tag});
  return true;
}

bool RdmReceiver::answered(const MessageHeader& header, std::span<const std::byte> bytes) {
  RdmOperation* operation = shared_.exchanges.find(header.exchange, header.data);
  if (operation != nullptr) operation->queue->answered(*operation, header, bytes, heard_);
  return operation != nullptr;
}

// A CTS for a withdrawn offer is answered, so that the receiver does not wait.
bool RdmReceiver::wanted(const MessageHeader& header) {
  RdmOperation* offer = shared_.exchanges.find(header.exchange, header.data);
  const bool stands = offer != nullptr && offer->offered;
  if (header.tag > kNumberBits || (stands && header.length > offer->length)) return false;
  const auto exchange = static_cast<std::uint32_t>(header.tag);
  if (stands) {
    deliver(*offer, receive_key(exchange), header.length, heard_);
    return true;
  }
  MessageHeader none = answer_to(exchange, MessageKind::kResult);
  none.tag = ECONNRESET;
  shared_.flows->return_path(*this).answer(none);
  return true;
}

// At once: the messages behind it are for the receive that has asked for it. The sender had not
// heard of that yet, so it writes nothing, and what it answers comes too late.
void RdmReceiver::withdrawn(const link::Offer& offer) {
  shared_.sink->withdrawn(offer);
  RdmOperation* receive = shared_.exchanges.find_taker(offer);
  if (receive == nullptr) return;
  void* const cookie = receive->cookie;
  receive->queue->detach(*receive);
  shared_.sink->received(cookie, link::kWithdrawn);
}

bool RdmReceiver::check(const MessageHeader& header, std::span<const std::byte> bytes) {
  if (header.tag > link::kMaxPieces || bytes.size() != header.tag * kRange) return false;
  const Access need = header.data != 0 ? Access::kRemoteWrite : Access::kRemoteRead;
  announced_ = {need};
  refused_ = false;
  told_keys_.clear();
  memory::Accessed may;
  for (std::size_t i = 0; i < header.tag && may.ok(); ++i) {
    may = shared_.memory.check(need, read_range(bytes.data() + i * kRange));
    for (const RegionKey key : shared_.memory.to_tell()) {
      if (std::find(told_keys_.begin(), told_keys_.end(), key) == told_keys_.end()) {
        told_keys_.push_back(key);
      }
    }
  }
  ranges_ = verdict_of(may);
  return true;
}

void RdmReceiver::checked() {
  ranges_ = {};
  const auto announced = std::exchange(announced_, std::nullopt);
  if (refused_) told_keys_.clear();
  if (refused_ || !announced) return;
  tell_of_keys(announced->need);
  if (!announced->has_data) announce_access(announced->need);
}

// Everything is checked before anything is changed.
bool RdmReceiver::carry_out(const MessageHeader& header, std::span<const std::byte> bytes) {
  MessageHeader result = answer_to(header.exchange, MessageKind::kResult);
  const AtomicAction& action = header.action;
  const std::size_t element = size_of(action.type);
  const std::uint64_t ranges = header.tag;
  const std::uint64_t length = header.length;
  const bool sane = element != 0 && memory::meaningful(action) && length <= kMaxAtomicBytes &&
                    length % element == 0 && ranges <= link::kMaxPieces;
  const std::size_t operands =
      (action.has_operand() ? length : 0) + (action.compares() ? length : 0);
  if (!sane || bytes.size() != ranges * kRange + operands) return false;
  const std::byte* operand = bytes.data() + ranges * kRange;
  std::byte fetched[kMaxAtomicBytes];
  RemoteRange list[link::kMaxPieces];
  std::uint64_t sum = 0;
  memory::Accessed done;
  for (std::size_t i = 0; i < ranges; ++i) {
    list[i] = read_range(bytes.data() + i * kRange);
    if (list[i].length > length - sum || list[i].length % element != 0) return false;
    sum += list[i].length;
    if (done.ok()) done = shared_.memory.check(memory::rights_for(action), list[i], element);
  }
  if (sum != length) return false;
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < ranges && done.ok(); offset += list[i++].length) {
    std::byte both[2 * kMaxAtomicBytes];
    const std::size_t part = list[i].length;
    if (action.has_operand()) std::memcpy(both, operand + offset, part);
    if (action.compares()) std::memcpy(both + part, operand + length + offset, part);
    done = shared_.memory.change(action, list[i], both, fetched + offset, memory::Patience::kUsual);
    if (done.ok()) told(memory::rights_for(action));
  }
  result.tag =
      static_cast<std::uint64_t>(done.refusal != memory::AccessError::kNone ? EACCES : done.error);
  result.length = static_cast<std::uint64_t>(done.refusal);
  if (done.ok()) {
    const bool fetches = action.fetches();
    const auto event = fetches ? link::Operation::kReadEvent : link::Operation::kWriteEvent;
    const auto data =
        fetches ? link::Operation::kAtomicReadData : link::Operation::kAtomicWriteData;
    const Access need = fetches ? Access::kRemoteRead : Access::kRemoteWrite;
    if (header.has_data || shared_.counts(need)) announce(header.has_data ? data : event, header);
  }
  const std::size_t back = done.ok() && action.fetches() ? length : 0;
  shared_.flows->return_path(*this).answer(result, {fetched, back});
  return true;
}

void RdmReceiver::announce(link::Operation event, const MessageHeader& from) {
  link::Arrival arrival;
  arrival.operation = event;
  arrival.has_data = from.has_data;
  arrival.source = number_;
  arrival.tag = from.length;
  arrival.data = from.data;
  shared_.sink->arrived(arrival);
}

void RdmReceiver::announce_access(Access need) {
  if (!shared_.counts(need)) return;
  announce(
      need == Access::kRemoteWrite ? link::Operation::kWriteEvent : link::Operation::kReadEvent,
      {});
}

void RdmReceiver::tell_of_keys(Access need) {
  if (!told_keys_.empty()) shared_.sink->accessed(number_, need, told_keys_);
  told_keys_.clear();
}

void RdmReceiver::told(Access need) {
  const std::span<const RegionKey> keys = shared_.memory.to_tell();
  if (!keys.empty()) shared_.sink->accessed(number_, need, keys);
}

std::optional<RegionKey> RdmReceiver::region_of(std::uint32_t key) const {
  if (key < kAliasBit) return RegionKey{key};
  const std::uint32_t number = key & kNumberBits;
  if (!is_alias(key) || number >= aliases_.size()) return std::nullopt;
  return aliases_[number];
}

// A receive of this endpoint that waits for what the peer has to write next.
RdmOperation* RdmReceiver::receive_of(const work::RemoteMemory& memory) const {
  RdmOperation* operation = shared_.exchanges.find_receive(memory.key & kNumberBits, number_);
  if (operation == nullptr) return nullptr;
  const bool next =
      memory.address == operation->there && memory.length <= operation->length - operation->there;
  return next ? operation : nullptr;
}

RequestVerdict RdmReceiver::may_access(Access need, const work::RemoteMemory& memory) {
  const RequestVerdict verdict = judge(need, memory);
  if (!verdict.ok()) refused_ = true;
  return verdict;
}

RequestVerdict RdmReceiver::judge(Access need, const work::RemoteMemory& memory) {
  if (shut_) return kInvalid;
  if (is_receive(memory.key)) {
    const bool allowed = need == Access::kRemoteWrite && receive_of(memory) != nullptr;
    return allowed ? RequestVerdict{} : kInvalid;
  }
  if (!ranges_.ok()) return ranges_;
  const auto key = region_of(memory.key);
  memory::Accessed may{memory::AccessError::kUnknownKey, 0};
  if (key || memory.length == 0) {
    const RemoteRange range{memory.address, memory.length, key.value_or(RegionKey{})};
    may = shared_.memory.check(need, range);
  }
  if (!may.ok()) return verdict_of(may);
  if (announced_) return {};
  const auto keys = key ? shared_.memory.to_tell() : std::span<const RegionKey>();
  told_keys_.assign(keys.begin(), keys.end());
  if (need == Access::kRemoteWrite) return {};
  tell_of_keys(need);
  announce_access(need);
  return {};
}

RequestVerdict RdmReceiver::write(const work::RemoteMemory& memory, std::uint64_t offset,
                                  std::span<const std::byte> bytes) {
  if (shut_) return kInvalid;
  if (is_receive(memory.key)) {
    RdmOperation* receive = receive_of(memory);
    if (receive == nullptr) return kInvalid;
    const std::uint64_t begin = memory.address + offset;
    if (os::scatter(receive->buffers(), bytes.data(), bytes.size(), begin)) return {};
    receive->failure.error = EFAULT;
    receive->queue->has_answer(*receive, heard_);
    return {RequestVerdict::Kind::kOperational, 0};
  }
  if (bytes.empty()) return {};
  const auto key = region_of(memory.key);
  if (!key) return kInvalid;
  return verdict_of(shared_.memory.write({memory.address + offset, bytes.size(), *key}, bytes));
}

void RdmReceiver::written(const work::RemoteMemory& memory, const work::MessageEnd& end) {
  if (is_receive(memory.key)) {
    RdmOperation* receive = receive_of(memory);
    if (receive == nullptr) return;
    receive->there += memory.length;
    if (receive->there == receive->length) receive->queue->has_answer(*receive, heard_);
    return;
  }
  if (!announced_) tell_of_keys(Access::kRemoteWrite);
  const bool tells = end.has_immediate;
  const MessageHeader notice = notice_;
  if (tells) notice_ = {};
  if (tells && !refused_ && notice.has_data) return announce(link::Operation::kWriteData, notice);
  const bool part = notice.has_data;  // of one that is announced at its end
  if (!part && !announced_) announce_access(Access::kRemoteWrite);
}

RequestVerdict RdmReceiver::read(const work::RemoteMemory& memory, std::uint64_t offset,
                                 std::span<std::byte> out) {
  if (out.empty()) return {};
  const auto key = region_of(memory.key);
  if (!key) return {RequestVerdict::Kind::kOperational, 0};
  const memory::Accessed done =
      shared_.memory.read({memory.address + offset, out.size(), *key}, out);
  return done.ok() ? RequestVerdict{} : RequestVerdict{RequestVerdict::Kind::kOperational, 0};
}

RequestVerdict RdmReceiver::atomic(bool compares, const work::AtomicOperands& what,
                                   std::uint64_t& original) {
  if (shut_) return kInvalid;
  const auto key = region_of(what.key);
  if (!key || what.address % 8 != 0) return kInvalid;
  const AtomicAction action{compares ? AtomicForm::kCompare : AtomicForm::kFetch,
                            compares ? AtomicOp::kSwapIfEqual : AtomicOp::kSum,
                            AtomicType::kUint64};
  const std::uint64_t operands[] = {what.swap_or_add, what.compare};
  std::byte bytes[sizeof operands];
  std::memcpy(bytes, operands, sizeof operands);
  std::byte fetched[8];
  const memory::Accessed done = shared_.memory.change(action, {what.address, 8, *key}, bytes,
                                                      fetched, memory::Patience::kUsual);
  if (!done.ok()) return verdict_of(done);
  std::memcpy(&original, fetched, sizeof original);
  return {};
}

}  // namespace weft::rdm
