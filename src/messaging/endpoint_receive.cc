// SPDX-License-Identifier: BSD-2-Clause
// How do messages get from their arrival into the buffers of receives?
#include <algorithm>
#include <utility>

#include "base/slices.h"
#include "base/small_copy.h"
#include "messaging/endpoint.h"

namespace weft::messaging {
namespace {

std::uint64_t receive_flags(const link::Arrival& arrival) {
  return device::kReceive |
         (arrival.operation == link::Operation::kTagged ? device::kTagged : device::kMessage) |
         (arrival.has_data ? std::uint64_t{device::kHasRemoteData} : 0);
}

Taken taken_of(const link::Arrival& arrival, PeerIndex sender) {
  return {receive_flags(arrival), arrival.data, arrival.tag, arrival.length, sender};
}

}  // namespace

void Endpoint::source_opened(std::uint32_t source, const os::SocketAddress& address) {
  if (sources_.size() <= source) sources_.resize(source + 1);
  sources_[source] = std::make_shared<Correspondent>();
  sources_[source]->address = address;
  sources_[source]->admitted = setup_.connection == nullptr;
}

void Endpoint::source_closed(std::uint32_t source, bool died) {
  const std::shared_ptr<Correspondent> gone = sources_[source];
  tagged_.forget(*gone);
  untagged_.forget(*gone);
  const PeerIndex index = number_of(*setup_.addresses, *gone);
  // One that left in good order may come back; one that died will not send what is waited for.
  if (died && index != kNoPeer) died_.push_back(index);
  sources_[source].reset();
  if (gone == peer_source_) [[unlikely]]
    connection_lost(died);
}

inline void Endpoint::finish(Receive& receive, const Taken& taken, int error) {
  const bool truncated = error == 0 && taken.length > receive.capacity;
  if (truncated) error = EMSGSIZE;
  const bool gives_back = receive.whole != nullptr && leave_whole(receive);
  if ((receive.report || error != 0 || gives_back) && setup_.bindings.rx != nullptr) {
    setup_.bindings.rx->push([&](device::Completion& completion) {
      completion.context = receive.context;
      completion.flags = taken.flags | (gives_back ? std::uint64_t{device::kMultiReceive} : 0);
      completion.length = truncated ? receive.capacity : taken.length;
      completion.buffer = receive.count != 0 ? receive.pieces[0].base : nullptr;
      completion.data = taken.data;
      completion.tag = taken.tag;
      completion.source = taken.sender;
      completion.error = error;
      completion.detail = 0;
      completion.overflow = truncated ? taken.length - receive.capacity : 0;
    });
  }
  count(Event::kReceive, error == 0);
  receives_.give(receive);
}

inline void Endpoint::deliver(Receive& receive, const link::Arrival& arrival, const Taken& taken) {
  const std::span<const LocalRange> pieces(receive.pieces, receive.count);
  if (arrival.payload == nullptr) {
    receive.taken = taken;
    const std::uint64_t length = std::min<std::uint64_t>(arrival.length, receive.capacity);
    port_->inbox().accept(*this, arrival.offer, pieces, length, &receive);
    return;
  }
  if (receive.count == 1 && arrival.length <= std::min(receive.capacity, kMostSmallCopy)) {
    copy_small(receive.pieces[0].base, arrival.payload, arrival.length);
  } else {
    scatter(pieces, arrival.payload, arrival.length);
  }
  if (arrival.wants_ack) port_->inbox().acknowledge(arrival.offer);
  finish(receive, taken, 0);
}

// Fails what waits for messages of the dead, unless a living process has taken over the address.
void Endpoint::settle_deaths() {
  // Another one may send datagrams from the same address at any time.
  if (setup_.service == link::Service::kDatagram) return died_.clear();
  for (const PeerIndex index : std::exchange(died_, {})) {
    const bool flows = index < peers_.size() && peers_[index].flow != nullptr;
    const bool sends = std::any_of(sources_.begin(), sources_.end(), [&](const auto& source) {
      return source != nullptr && number_of(*setup_.addresses, *source) == index;
    });
    if (!flows && !sends) fail_waiting(index, ECONNRESET);
  }
}

// Fails the receives that wait for messages of `source`.
void Endpoint::fail_waiting(PeerIndex source, int error) {
  for (const bool tagged : {true, false}) {
    while (Receive* receive = matcher(tagged).take_directed(source)) {
      fail_receive(*receive, tagged, error);
    }
  }
}

bool Endpoint::takes_more() const {
  return tagged_.bytes_kept() + untagged_.bytes_kept() <= setup_.options.unexpected_limit;
}

void Endpoint::arrived(const link::Arrival& arrival) {
  const bool tagged = arrival.operation == link::Operation::kTagged;
  if (!tagged && arrival.operation != link::Operation::kMessage) return event(arrival);
  Correspondent& from = *sources_[arrival.source];
  if (!from.admitted) [[unlikely]]
    return port_->inbox().refuse(*this, arrival.source);
  const PeerIndex sender = number_of(*setup_.addresses, from);
  Receive* receive = matcher(tagged).match(arrival.tag, sender);
  if (receive == nullptr) {
    if (setup_.service == link::Service::kDatagram) return;  // no peer of ours sends such
    matcher(tagged).keep(arrival, sources_[arrival.source]);
    return;
  }
  if (receive->multi) [[unlikely]]
    receive = &part_of(*receive, arrival.length);
  deliver(*receive, arrival, taken_of(arrival, sender));
}

// Nothing of a datagram is kept: what cannot be placed at once is lost.
void Endpoint::datagram(const link::Arrival& arrival) {
  if (setup_.service != link::Service::kDatagram || !hears(arrival.tag)) return;
  const bool reportable = setup_.bindings.rx == nullptr || !setup_.bindings.rx->full();
  const PeerIndex sender = number_of(*setup_.addresses, *sources_[arrival.source]);
  Receive* receive = reportable ? untagged_.match(0, sender) : nullptr;
  if (receive == nullptr) {
    ++drops_.unwanted;
    return;
  }
  if (receive->multi) receive = &part_of(*receive, arrival.length);
  Taken taken = taken_of(arrival, sender);
  taken.tag = 0;
  if (arrival.tag != 0) taken.flags |= device::kMulticast;
  deliver(*receive, arrival, taken);
}

// The next part of a posted multi-receive, for a message of that length.
Receive& Endpoint::part_of(Receive& whole, std::uint64_t length) {
  Receive& part = receives_.take();
  part.source = whole.source;
  part.context = whole.context;
  part.report = whole.report;
  part.capacity = whole.capacity;
  part.count = 1;
  part.pieces[0] = whole.pieces[0];
  part.multi = false;
  part.parts = 0;
  part.whole = &whole;
  const std::size_t used = std::min<std::uint64_t>(length, whole.capacity);
  whole.pieces[0] = {static_cast<std::byte*>(whole.pieces[0].base) + used, whole.capacity - used};
  whole.capacity -= used;
  ++whole.parts;
  if (whole.capacity < whole.least) {
    whole.used_up = true;
    untagged_.withdraw(whole);
  }
  return part;
}

// True when that was the last part, with which the buffer goes back to the program.
bool Endpoint::leave_whole(Receive& part) {
  Receive& whole = *std::exchange(part.whole, nullptr);
  if (--whole.parts != 0 || !whole.used_up) return false;
  receives_.give(whole);
  return true;
}

// What takes no receive.
void Endpoint::event(const link::Arrival& arrival) {
  if (arrival.operation == link::Operation::kControl) return control(arrival);
  if (arrival.operation == link::Operation::kDatagram) return datagram(arrival);
  if (!sources_[arrival.source]->admitted) {
    return port_->inbox().refuse(*this, arrival.source);
  }
  remote_access(arrival);
}

void Endpoint::remote_access(const link::Arrival& arrival) {
  const bool atomic = arrival.operation == link::Operation::kAtomicReadData ||
                      arrival.operation == link::Operation::kAtomicWriteData;
  const bool read = arrival.operation == link::Operation::kReadEvent ||
                    arrival.operation == link::Operation::kAtomicReadData;
  count(read ? Event::kRemoteRead : Event::kRemoteWrite, true);
  if (!arrival.has_data || setup_.bindings.rx == nullptr) return;
  setup_.bindings.rx->push([&](device::Completion& completion) {
    completion = {};
    completion.flags = (atomic ? device::kAtomic : device::kRma) |
                       (read ? device::kRemoteRead : device::kRemoteWrite) | device::kHasRemoteData;
    completion.data = arrival.data;
    completion.length = arrival.tag;  // an announcement carries the length there
    completion.source = number_of(*setup_.addresses, *sources_[arrival.source]);
  });
}

void Endpoint::received(void* cookie, int error) {
  Receive& receive = *static_cast<Receive*>(cookie);
  finish(receive, receive.taken, error);
}

// One that no message came for. A multi-receive some of whose messages are under way goes back with
// the last of them instead.
void Endpoint::fail_receive(Receive& receive, bool tagged, int error) {
  if (receive.parts != 0) {
    receive.used_up = true;
    return;
  }
  const std::uint64_t flags = device::kReceive | (tagged ? device::kTagged : device::kMessage) |
                              (receive.multi ? std::uint64_t{device::kMultiReceive} : 0);
  finish(receive, {flags, 0, receive.tag, 0, receive.source}, error);
}

Receive& Endpoint::new_receive(const ReceiveCall& call) {
  Receive& receive = receives_.take();
  receive.tag = call.tag;
  receive.ignore = call.tagged ? call.ignore : ~std::uint64_t{0};
  receive.source = call.source;
  receive.context = call.report.context;
  receive.report = call.report.wanted;
  receive.capacity = total_length(call.pieces);
  receive.count = static_cast<std::uint32_t>(call.pieces.size());
  for (std::size_t i = 0; i < call.pieces.size(); ++i) receive.pieces[i] = call.pieces[i];
  receive.multi = call.multi;
  receive.used_up = false;
  receive.parts = 0;
  receive.whole = nullptr;
  if (call.multi) receive.least = std::max<std::size_t>(call.least, 1);
  return receive;
}

int Endpoint::receive(const ReceiveCall& call) {
  const std::lock_guard guard(lock_);
  switch (call.mode) {
    case ReceiveCall::Mode::kPost:
      return post(call);
    case ReceiveCall::Mode::kPeek:
    case ReceiveCall::Mode::kPeekClaim:
    case ReceiveCall::Mode::kPeekDiscard:
      return peek(call);
    case ReceiveCall::Mode::kTakeClaimed:
    case ReceiveCall::Mode::kDiscardClaimed:
      return take_claimed(call);
  }
  return EINVAL;
}

int Endpoint::post(const ReceiveCall& call) {
  Receive& receive = new_receive(call);
  if (receive.source != kNoPeer) {
    receive.source = setup_.addresses->canonical(receive.source);
    if (receive.source == kNoPeer) {
      receives_.give(receive);
      return EINVAL;
    }
  }
  Matcher& queue = matcher(call.tagged);
  if (receive.multi) [[unlikely]]
    return post_multi(receive);
  if (!queue.nothing_kept()) {
    if (Unexpected* message = queue.find({receive.tag, receive.ignore, receive.source})) {
      take(receive, *message);
      return 0;
    }
  }
  if (ended_ != 0) [[unlikely]]
    return give_back(receive);
  queue.post(receive);
  return 0;
}

// Nobody will send what it could take.
int Endpoint::give_back(Receive& receive) {
  receives_.give(receive);
  return ended_;
}

// First the messages that came before it, as long as there is room. With the last of them the
// receive may be over.
int Endpoint::post_multi(Receive& receive) {
  if (ended_ != 0) return give_back(receive);
  const Wanted wanted{receive.tag, receive.ignore, receive.source};
  untagged_.post(receive);
  for (bool room = true; room;) {
    Unexpected* message = untagged_.find(wanted);
    if (message == nullptr) return 0;
    Receive& part = part_of(receive, message->arrival.length);
    room = !receive.used_up;
    take(part, *message);
  }
  return 0;
}

// The message leaves the queue first: delivering it may report the end of the receive.
void Endpoint::take(Receive& receive, Unexpected& message) {
  const bool tagged = message.arrival.operation == link::Operation::kTagged;
  const Kept taken = matcher(tagged).take(message);
  const PeerIndex sender = number_of(*setup_.addresses, *taken.from);
  deliver(receive, taken.arrival, taken_of(taken.arrival, sender));
}

void Endpoint::report_peek(const ReceiveCall& call, const Unexpected* message, int error) {
  if (setup_.bindings.rx == nullptr) return;
  setup_.bindings.rx->push([&](device::Completion& completion) {
    completion = {};
    completion.context = call.report.context;
    completion.flags = device::kReceive | (call.tagged ? device::kTagged : device::kMessage);
    completion.tag = call.tag;
    completion.error = error;
    if (message == nullptr) return;
    completion.flags = receive_flags(message->arrival);
    completion.length = message->arrival.length;
    completion.data = message->arrival.data;
    completion.tag = message->arrival.tag;
    completion.source = number_of(*setup_.addresses, *message->from);
  });
}

void Endpoint::discard(Unexpected& message, bool tagged) {
  const Kept taken = matcher(tagged).take(message);
  const link::Arrival& arrival = taken.arrival;
  if (arrival.payload == nullptr || arrival.wants_ack) port_->inbox().acknowledge(arrival.offer);
}

int Endpoint::peek(const ReceiveCall& call) {
  progress_locked();
  PeerIndex source = kNoPeer;
  if (call.source != kNoPeer) {
    source = setup_.addresses->canonical(call.source);
    if (source == kNoPeer) return EINVAL;
  }
  const std::uint64_t ignore = call.tagged ? call.ignore : ~std::uint64_t{0};
  Unexpected* message = matcher(call.tagged).find({call.tag, ignore, source});
  report_peek(call, message, message == nullptr ? ENOMSG : 0);
  if (message == nullptr) return 0;
  if (call.mode == ReceiveCall::Mode::kPeekClaim) {
    message->claimed = true;
    message->claimed_by = call.report.context;
  }
  if (call.mode == ReceiveCall::Mode::kPeekDiscard) discard(*message, call.tagged);
  return 0;
}

int Endpoint::take_claimed(const ReceiveCall& call) {
  Unexpected* message = matcher(call.tagged).find_claimed(call.report.context);
  if (message == nullptr) return EINVAL;
  if (call.mode == ReceiveCall::Mode::kDiscardClaimed) {
    report_peek(call, message, 0);
    discard(*message, call.tagged);
    return 0;
  }
  take(new_receive(call), *message);
  return 0;
}

int Endpoint::cancel(void* context) {
  const std::lock_guard guard(lock_);
  for (const bool tagged : {true, false}) {
    Receive* receive = matcher(tagged).cancel(context);
    if (receive == nullptr) continue;
    fail_receive(*receive, tagged, ECANCELED);
    return 0;
  }
  return ENOENT;
}

}  // namespace weft::messaging
