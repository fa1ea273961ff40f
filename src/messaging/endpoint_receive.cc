// SPDX-License-Identifier: BSD-2-Clause
// How do messages get from their arrival into the buffers of receives?
#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>
#include <utility>

#include "base/slices.h"
#include "messaging/endpoint.h"
#include "os/user_memory.h"

namespace weft::messaging {
namespace {

constexpr auto kClosePatience = std::chrono::seconds(2);
// Of datagrams that came before their receives: about what a socket buffer holds by default.
constexpr std::size_t kMostDatagramBytes = 192 * 1024;

std::uint64_t receive_flags(const link::Arrival& arrival) {
  return device::kReceive |
         (arrival.operation == link::Operation::kTagged ? device::kTagged : device::kMessage) |
         (arrival.has_data ? std::uint64_t{device::kHasRemoteData} : 0);
}

MatchInfo taken_of(const link::Arrival& arrival, PeerIndex sender) {
  return {receive_flags(arrival), arrival.data, arrival.tag, arrival.length, sender};
}

// Of a message or a datagram, whose tag is the number of its group.
MatchInfo taken_of_either(const link::Arrival& arrival, PeerIndex sender) {
  MatchInfo taken = taken_of(arrival, sender);
  if (arrival.operation != link::Operation::kDatagram) return taken;
  if (arrival.tag != 0) taken.flags |= device::kMulticast;
  taken.tag = 0;
  return taken;
}

}  // namespace

// A receive names its source by number: that must mean the same at all endpoints.
Status Endpoint::join_queue() {
  const ControlGuard guard(lock_);
  const auto numbers_differently = [&](const Endpoint* other) {
    return setup_.connection == nullptr && other->setup_.connection == nullptr &&
           other->setup_.addresses != setup_.addresses;
  };
  if (std::any_of(queue_.endpoints_.begin(), queue_.endpoints_.end(), numbers_differently)) {
    return Error{EINVAL, "endpoints that share their receives have different address vectors"};
  }
  queue_.endpoints_.push_back(this);
  return {};
}

// With the lock taken anew each time: other endpoints of a shared queue go on meanwhile.
Status Endpoint::close() {
  const auto end = std::chrono::steady_clock::now() + kClosePatience;
  while (!try_to_close()) {
    if (std::chrono::steady_clock::now() >= end) {
      const ControlGuard guard(lock_);
      closing_ = false;
      return Error{EBUSY, "a stopped peer is in the middle of a copy to a receive buffer"};
    }
    std::this_thread::yield();
  }
  return {};
}

bool Endpoint::try_to_close() {
  const ControlGuard guard(lock_);
  closing_ = true;
  if (!port_->inbox().reclaim_buffers()) return false;
  leave_queue();
  return true;
}

// The buffers of shared receives are not this endpoint's alone: their program is told of those that
// the endpoint takes with it.
void Endpoint::leave_queue() {
  if (own_queue_ == nullptr) {
    while (!under_way_.empty()) received(&under_way_.front(), ECANCELED);
  }
  std::erase(queue_.endpoints_, this);
  queue_.tagged_.drop_all_to(*this);
  queue_.untagged_.drop_all_to(*this);
}

void Endpoint::source_opened(std::uint32_t source, const os::SocketAddress& address) {
  if (sources_.size() <= source) sources_.resize(source + 1);
  sources_[source] = std::make_shared<RemoteSender>();
  sources_[source]->address = address;
  sources_[source]->receiver = this;
  sources_[source]->addresses = setup_.addresses;
  sources_[source]->admitted = setup_.connection == nullptr;
}

void Endpoint::source_closed(std::uint32_t source, bool died) {
  const std::shared_ptr<RemoteSender> gone = sources_[source];
  queue_.forget(*gone);
  const PeerIndex index = number_of(*gone);
  // One that left in good order may come back; one that died will not send what is waited for.
  if (died && index != kNoPeer) died_.push_back(index);
  sources_[source].reset();
  if (gone == peer_source_) [[unlikely]]
    connection_lost(died);
}

inline void Endpoint::finish(Receive& receive, const MatchInfo& taken, int error) {
  const bool truncated = error == 0 && taken.length > receive.capacity;
  if (truncated) error = EMSGSIZE;
  const bool gives_back = receive.whole != nullptr && queue_.leave_whole(receive);
  const bool reports = receive.report || (error != 0 && !receive.counter) || gives_back;
  if (reports && setup_.bindings.rx != nullptr) {
    setup_.bindings.rx->push([&](device::Completion& completion) {
      completion.context = receive.context;
      completion.flags = taken.flags | (gives_back ? std::uint64_t{device::kMultiReceive} : 0);
      completion.length = truncated ? receive.capacity : taken.length;
      completion.buffer = receive.count != 0 ? receive.pieces[0].base : nullptr;
      completion.data = taken.data;
      completion.tag = taken.tag;
      completion.source = taken.sender;
      completion.status = work::CompletionStatus::kSuccess;
      completion.reason = 0;
      completion.vendor = 0;
      if (error != 0) [[unlikely]]
        completion.end(error, 0);
      if (truncated) [[unlikely]] {
        completion.vendor =
            std::min(taken.length - receive.capacity, device::Completion::kMaxVendor);
      }
    });
  }
  count(receive.counter.get(), Event::kReceive, error == 0);
  queue_.give(receive);
}

inline bool Endpoint::deliver(Receive& receive, const link::Arrival& arrival,
                              const MatchInfo& taken) {
  const std::span<const LocalRange> pieces(receive.pieces, receive.count);
  if (arrival.payload == nullptr) {
    receive.taken = taken;
    under_way_.push_back(receive);
    ++takes_under_way_;
    const std::uint64_t length = std::min<std::uint64_t>(arrival.length, receive.capacity);
    const bool placed = !arrival.by_processor || os::writable(pieces, length);
    receive.fault = placed ? 0 : EFAULT;
    if (port_->inbox().accept(*this, arrival.offer, placed ? pieces : std::span<const LocalRange>(),
                              placed ? length : 0, &receive)) [[likely]] {
      return true;
    }
    leave_under_way(receive);
    return false;
  }
  const bool placed = os::scatter(pieces, arrival.payload, arrival.length).has_value();
  if (arrival.wants_ack) port_->inbox().acknowledge(arrival.offer);
  finish(receive, taken, placed ? 0 : EFAULT);
  return true;
}

// For a receive that was posted, and taken out for a message that its sender has withdrawn. The
// bytes of a multi-receive that were for it stay unused.
void Endpoint::miss(Receive& receive, bool tagged) {
  if (receive.whole == nullptr) return queue_.matcher(tagged).put_back(receive);
  const bool gives_back = queue_.leave_whole(receive);
  if (gives_back && setup_.bindings.rx != nullptr) {
    setup_.bindings.rx->push([&](device::Completion& completion) {
      completion = {};
      completion.context = receive.context;
      completion.flags = device::kReceive | device::kMessage | device::kMultiReceive;
    });
  }
  queue_.give(receive);
}

void Endpoint::withdrawn(const link::Offer& offer) {
  queue_.forget(*sources_[offer.source], offer.exchange);
}

void Endpoint::leave_under_way(Receive& receive) {
  under_way_.erase(under_way_.iterator_to(receive));
  --takes_under_way_;
}

// Fails what waits for messages of the dead, unless a living process has taken over the address.
void Endpoint::settle_deaths() {
  // Another one may send datagrams from the same address at any time.
  if (setup_.service == link::Service::kDatagram) return died_.clear();
  std::erase_if(died_, [&](PeerIndex index) {
    const link::Flow* const way = index < peers_.size() ? peers_[index].flow.get() : nullptr;
    // Whether that leads to a living process is not known yet.
    if (way != nullptr && !way->reached()) return false;
    const bool sends = std::any_of(sources_.begin(), sources_.end(), [&](const auto& source) {
      return source != nullptr && number_of(*source) == index;
    });
    if (way == nullptr && !sends) fail_waiting(index, ECONNRESET);
    return true;
  });
}

// Fails the receives that wait for messages of `source`.
void Endpoint::fail_waiting(PeerIndex source, int error) {
  for (const bool tagged : {true, false}) {
    while (Receive* receive = queue_.matcher(tagged).take_directed(source)) {
      fail_receive(*receive, tagged, error);
    }
  }
}

// Every message may become an entry of the completion queue, which must not overrun (fi_domain(3),
// FI_RM_ENABLED): a full one holds the senders back. A datagram is lost instead.
unsigned Endpoint::room() const {
  if (queue_.bytes_kept() > setup_.options->unexpected_limit) return 0;
  const bool bounded = setup_.bindings.rx != nullptr && setup_.service != link::Service::kDatagram;
  if (!bounded) return std::numeric_limits<unsigned>::max();
  const std::size_t room = setup_.bindings.rx->room();
  return static_cast<unsigned>(room - std::min(room, takes_under_way_));
}

bool Endpoint::takes_more_urgently() const {
  return queue_.bytes_kept() / 2 <= setup_.options->unexpected_limit &&
         (setup_.bindings.rx == nullptr || !setup_.bindings.rx->overrun());
}

void Endpoint::arrived(const link::Arrival& arrival) {
  const bool tagged = arrival.operation == link::Operation::kTagged;
  if (!tagged && arrival.operation != link::Operation::kMessage) return event(arrival);
  RemoteSender& from = *sources_[arrival.source];
  if (!from.admitted) [[unlikely]]
    return port_->inbox().refuse(*this, arrival.source);
  const PeerIndex sender = number_of(from);
  Receive* receive = queue_.matcher(tagged).match(arrival.tag, sender);
  if (receive == nullptr) {
    if (setup_.service == link::Service::kDatagram) return;  // no peer of ours sends such
    queue_.matcher(tagged).keep(arrival, sources_[arrival.source]);
    return;
  }
  if (receive->multi) [[unlikely]]
    receive = &queue_.part_of(*receive, arrival.length);
  if (!deliver(*receive, arrival, taken_of(arrival, sender))) miss(*receive, tagged);
}

// What no receive waits for yet is matched when all of it is here.
bool Endpoint::arriving(const link::Arrival& arrival) {
  const bool tagged = arrival.operation == link::Operation::kTagged;
  if (!tagged && arrival.operation != link::Operation::kMessage) return false;
  RemoteSender& from = *sources_[arrival.source];
  if (!from.admitted || setup_.service == link::Service::kDatagram) return false;
  const PeerIndex sender = number_of(from);
  Receive* receive = queue_.matcher(tagged).match(arrival.tag, sender);
  if (receive == nullptr) return false;
  if (receive->multi) receive = &queue_.part_of(*receive, arrival.length);
  return deliver(*receive, arrival, taken_of(arrival, sender));
}

// Without a receive a datagram is kept as a socket buffer would keep it: a few, for a moment.
// Without room to report it, it is lost.
void Endpoint::datagram(const link::Arrival& arrival) {
  if (setup_.service != link::Service::kDatagram || !hears(arrival.tag)) return;
  if (setup_.bindings.rx != nullptr && setup_.bindings.rx->full()) {
    ++drops_.unwanted;
    return;
  }
  const PeerIndex sender = number_of(*sources_[arrival.source]);
  Receive* receive = queue_.matcher(false).match(0, sender);
  if (receive == nullptr) return keep_datagram(arrival);
  if (receive->multi) receive = &queue_.part_of(*receive, arrival.length);
  deliver(*receive, arrival, taken_of_either(arrival, sender));
}

void Endpoint::keep_datagram(const link::Arrival& arrival) {
  const std::size_t limit = std::min(kMostDatagramBytes, setup_.options->unexpected_limit);
  if (queue_.bytes_kept() + Matcher::cost_of(arrival) > limit) {
    ++drops_.unwanted;
    return;
  }
  queue_.matcher(false).keep(arrival, sources_[arrival.source]);
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
  count(nullptr, read ? Event::kRemoteRead : Event::kRemoteWrite, true);
  if (!arrival.has_data || setup_.bindings.rx == nullptr) return;
  setup_.bindings.rx->push([&](device::Completion& completion) {
    completion = {};
    completion.flags = (atomic ? device::kAtomic : device::kRma) |
                       (read ? device::kRemoteRead : device::kRemoteWrite) | device::kHasRemoteData;
    completion.data = arrival.data;
    completion.length = arrival.tag;  // an announcement carries the length there
    completion.source = number_of(*sources_[arrival.source]);
  });
}

void Endpoint::accessed(std::uint32_t source, Access access, std::span<const RegionKey> regions) {
  if (setup_.region_counters == nullptr || !sources_[source]->admitted) return;
  for (const RegionKey region : regions) setup_.region_counters->count(region, access);
}

void Endpoint::received(void* cookie, int error) {
  Receive& receive = *static_cast<Receive*>(cookie);
  leave_under_way(receive);
  if (error != link::kWithdrawn) [[likely]] {
    return finish(receive, receive.taken, error != 0 ? error : receive.fault);
  }
  const bool tagged = (receive.taken.flags & device::kTagged) != 0;
  if (receive.claims) return fail_receive(receive, tagged, ECANCELED);
  if (receive.whole != nullptr) return miss(receive, tagged);
  queue_.post_again(receive, tagged);
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

// The message leaves the queue first: delivering it may report the end of the receive.
bool Endpoint::take(Receive& receive, QueuedUnexpected& message) {
  const Unexpected taken = queue_.matcher_of(message).take(message);
  const PeerIndex sender = number_of(*taken.from);
  return deliver(receive, taken.arrival, taken_of_either(taken.arrival, sender));
}

void Endpoint::report_peek(const ReceiveCall& call, const QueuedUnexpected* message, int error) {
  if (setup_.bindings.rx == nullptr) return;
  setup_.bindings.rx->push([&](device::Completion& completion) {
    completion = {};
    completion.context = call.report.context;
    completion.flags = device::kReceive | (call.tagged ? device::kTagged : device::kMessage);
    completion.tag = call.tag;
    completion.end(error, 0);
    if (message == nullptr) return;
    completion.flags = receive_flags(message->arrival);
    completion.length = message->arrival.length;
    completion.data = message->arrival.data;
    completion.tag = message->arrival.tag;
    completion.source = number_of(*message->from);
  });
}

void Endpoint::discard(QueuedUnexpected& message) {
  const Unexpected taken = queue_.matcher_of(message).take(message);
  const link::Arrival& arrival = taken.arrival;
  if (arrival.payload == nullptr || arrival.wants_ack) port_->inbox().acknowledge(arrival.offer);
}

}  // namespace weft::messaging
