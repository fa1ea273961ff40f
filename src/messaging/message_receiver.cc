// SPDX-License-Identifier: BSD-2-Clause
// How do messages get from their arrival into the buffers of receives?
#include "messaging/message_receiver.h"

#include <algorithm>
#include <limits>

#include "base/slices.h"
#include "device/provider_error.h"
#include "device/refusals.h"
#include "memory/explanation.h"
#include "messaging/connected_peer.h"
#include "messaging/datagram_service.h"
#include "messaging/peer_flows.h"
#include "messaging/receive_queue.h"
#include "os/user_memory.h"

namespace weft::messaging {
namespace {

// Of datagrams that came before their receives: about what a socket buffer holds by default.
constexpr std::size_t kMostDatagramBytes = 192 * 1024;

std::uint64_t receive_flags(const link::Arrival& arrival) {
  return device::kReceive |
         (arrival.operation == link::MessageOperation::kTagged ? device::kTagged
                                                               : device::kMessage) |
         (arrival.has_data ? std::uint64_t{device::kHasRemoteData} : 0);
}

MatchInfo taken_of(const link::Arrival& arrival, PeerIndex sender) {
  return {receive_flags(arrival), arrival.data, arrival.tag, arrival.length, sender};
}

// Of a message or a datagram, whose tag is the number of its group.
MatchInfo taken_of_either(const link::Arrival& arrival, PeerIndex sender) {
  MatchInfo taken = taken_of(arrival, sender);
  if (arrival.operation != link::MessageOperation::kDatagram) return taken;
  if (arrival.tag != 0) taken.flags |= device::kMulticast;
  taken.tag = 0;
  return taken;
}

}  // namespace

MessageReceiver::MessageReceiver(const EndpointSetup& setup, ReceiveQueue& queue,
                                 EndpointPort& port, PeerFlows& flows, DatagramService& datagrams,
                                 ConnectedPeer& peer)
    : bindings_(setup.bindings),
      setup_(setup),
      queue_(queue),
      port_(port),
      flows_(flows),
      datagrams_(datagrams),
      peer_(peer) {}

// Other endpoints of a shared queue may have messages for those receives.
void MessageReceiver::end(int refusal, int error) {
  if (setup_.receives != nullptr) return;
  queue_.end(refusal);
  fail_waiting(kNoPeer, error);
}

void MessageReceiver::cancel_under_way() {
  while (!under_way_.empty()) received(&under_way_.front(), ECANCELED);
}

void MessageReceiver::begin_closing(bool reports) {
  withdrawn_ = true;
  silent_ = !reports && setup_.receives == nullptr;
}

void MessageReceiver::bind(RemoteSender& source) {
  source.receiver = this;
  source.addresses = setup_.addresses;
  source.accepted = true;
}

void MessageReceiver::source_opened(std::uint32_t source, const os::SocketAddress& address) {
  bind(port_.open_sender(source, address));
}

void MessageReceiver::source_closed(std::uint32_t source, bool died) {
  const std::shared_ptr<RemoteSender> gone = port_.senders[source];
  queue_.forget(*gone);
  const PeerIndex index = number_of(*gone);
  // One that left in good order may come back; one that died will not send what is waited for.
  if (died && index != kNoPeer) flows_.add_death(index);
  port_.senders[source].reset();
  peer_.source_closed(*gone);
}

int MessageReceiver::finish_staged(const Receive& receive, const MatchInfo& taken) {
  return receive.staging->finish_part({receive.sges, receive.count},
                                      std::min<std::uint64_t>(taken.length, receive.capacity));
}

inline void MessageReceiver::finish(Receive& receive, const MatchInfo& taken, int error) {
  void* buffer = receive.count != 0 ? receive.sges[0].base : nullptr;
  if (receive.staging != nullptr) [[unlikely]] {
    if (error == 0) error = finish_staged(receive, taken);
    if (buffer != nullptr) buffer = receive.staging->buffer_of(buffer);
  }
  const bool truncated = error == 0 && taken.length > receive.capacity;
  if (truncated) error = EMSGSIZE;
  const bool gives_back = receive.whole != nullptr && queue_.leave_whole(receive);
  const bool reports = receive.report || (error != 0 && !receive.counter) || gives_back;
  if (reports && bindings_.rx != nullptr) {
    bindings_.rx->push([&](device::Completion& completion) {
      completion.context = receive.context;
      completion.flags = taken.flags | (gives_back ? std::uint64_t{device::kMultiReceive} : 0);
      completion.length = truncated ? receive.capacity : taken.length;
      completion.buffer = buffer;
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
  bindings_.count(receive.counter.get(), CounterEvent::kReceive, error == 0);
  queue_.give(receive);
}

inline bool MessageReceiver::deliver(Receive& receive, const link::Arrival& arrival,
                                     const MatchInfo& taken) {
  const std::span<const LocalRange> sges(receive.sges, receive.count);
  if (arrival.payload == nullptr) {
    receive.taken = taken;
    receive.receiver = this;
    under_way_.push_back(receive);
    ++takes_under_way_;
    const std::uint64_t length = std::min<std::uint64_t>(arrival.length, receive.capacity);
    const bool placed = !arrival.by_processor || os::writable(sges, length);
    receive.fault = placed ? 0 : EFAULT;
    if (port_.inbox().accept(*port_.sink, arrival.offer,
                             placed ? sges : std::span<const LocalRange>(), placed ? length : 0,
                             &receive)) [[likely]] {
      return true;
    }
    leave_under_way(receive);
    return false;
  }
  const bool placed = os::scatter(sges, arrival.payload, arrival.length).has_value();
  if (arrival.wants_ack) port_.inbox().acknowledge(arrival.offer);
  finish(receive, taken, placed ? 0 : EFAULT);
  return true;
}

void MessageReceiver::miss(Receive& receive, bool tagged) {
  if (receive.whole == nullptr) return queue_.matcher(tagged).put_back(receive);
  const bool gives_back = queue_.leave_whole(receive);
  if (gives_back && bindings_.rx != nullptr) {
    bindings_.rx->push([&](device::Completion& completion) {
      completion = {};
      completion.context = receive.context;
      completion.flags = device::kReceive | device::kMessage | device::kMultiReceive;
    });
  }
  queue_.give(receive);
}

void MessageReceiver::withdrawn(const link::Offer& offer) {
  queue_.forget(*port_.senders[offer.source], offer.rendezvous_id);
}

void MessageReceiver::leave_under_way(Receive& receive) {
  under_way_.erase(under_way_.iterator_to(receive));
  --takes_under_way_;
}

void MessageReceiver::settle_deaths() {
  // Another process may send datagrams from the same address at any time.
  if (takes_datagrams()) return flows_.forget_deaths();
  flows_.settle_deaths([&](PeerIndex index, bool has_successor) {
    const bool sends = std::any_of(
        port_.senders.begin(), port_.senders.end(),
        [&](const auto& source) { return source != nullptr && number_of(*source) == index; });
    if (!has_successor && !sends) fail_waiting(index, ECONNRESET);
  });
}

void MessageReceiver::fail_waiting(PeerIndex source, int error) {
  for (const bool tagged : {true, false}) {
    while (Receive* receive = queue_.matcher(tagged).take_directed(source)) {
      fail(*receive, tagged, error);
    }
  }
}

// Every message may become an entry of the completion queue, which must not overrun (fi_domain(3),
// FI_RM_ENABLED): a full one holds the senders back. A datagram is lost instead.
unsigned MessageReceiver::room() const {
  if (queue_.bytes_kept() > setup_.options->unexpected_limit) return 0;
  const bool bounded = bindings_.rx != nullptr && !takes_datagrams();
  if (!bounded) return std::numeric_limits<unsigned>::max();
  const std::size_t room = bindings_.rx->room();
  return static_cast<unsigned>(room - std::min(room, takes_under_way_));
}

bool MessageReceiver::takes_more_urgently(std::uint32_t) const {
  return queue_.bytes_kept() / 2 <= setup_.options->unexpected_limit &&
         (bindings_.rx == nullptr || !bindings_.rx->overrun());
}

void MessageReceiver::arrived(const link::Arrival& arrival) {
  const bool tagged = arrival.operation == link::MessageOperation::kTagged;
  if (!tagged && arrival.operation != link::MessageOperation::kMessage) return event(arrival);
  RemoteSender& from = *port_.senders[arrival.source];
  if (!from.accepted) [[unlikely]]
    return port_.refuse(arrival.source);
  const PeerIndex sender = number_of(from);
  Receive* receive = queue_.matcher(tagged).match(arrival.tag, sender);
  if (receive == nullptr) {
    if (takes_datagrams()) return;  // no peer of ours sends such
    queue_.matcher(tagged).keep(arrival, port_.senders[arrival.source]);
    return;
  }
  if (receive->multi) [[unlikely]]
    receive = &queue_.part_of(*receive, arrival.length);
  if (!deliver(*receive, arrival, taken_of(arrival, sender))) miss(*receive, tagged);
}

// What no receive waits for yet is matched when all of it is here.
bool MessageReceiver::arriving(const link::Arrival& arrival) {
  const bool tagged = arrival.operation == link::MessageOperation::kTagged;
  if (!tagged && arrival.operation != link::MessageOperation::kMessage) return false;
  RemoteSender& from = *port_.senders[arrival.source];
  if (!from.accepted || takes_datagrams()) return false;
  const PeerIndex sender = number_of(from);
  Receive* receive = queue_.matcher(tagged).match(arrival.tag, sender);
  if (receive == nullptr) return false;
  if (receive->multi) receive = &queue_.part_of(*receive, arrival.length);
  return deliver(*receive, arrival, taken_of(arrival, sender));
}

// Without a receive a datagram is kept as a socket buffer would keep it: a few, for a moment.
// Without room to report it, it is lost.
void MessageReceiver::datagram(const link::Arrival& arrival) {
  if (!takes_datagrams() || !datagrams_.accepts(arrival.tag)) return;
  if (bindings_.rx != nullptr && bindings_.rx->full()) {
    datagrams_.count_unwanted();
    return;
  }
  const PeerIndex sender = number_of(*port_.senders[arrival.source]);
  Receive* receive = queue_.matcher(false).match(0, sender);
  if (receive == nullptr) return keep_datagram(arrival);
  if (receive->multi) receive = &queue_.part_of(*receive, arrival.length);
  deliver(*receive, arrival, taken_of_either(arrival, sender));
}

void MessageReceiver::keep_datagram(const link::Arrival& arrival) {
  const std::size_t limit = std::min(kMostDatagramBytes, setup_.options->unexpected_limit);
  if (queue_.bytes_kept() + Matcher::cost_of(arrival) > limit) {
    datagrams_.count_unwanted();
    return;
  }
  queue_.matcher(false).keep(arrival, port_.senders[arrival.source]);
}

// What takes no receive.
void MessageReceiver::event(const link::Arrival& arrival) {
  if (arrival.operation == link::MessageOperation::kControl) return port_.take_control(arrival);
  if (arrival.operation == link::MessageOperation::kDatagram) return datagram(arrival);
  if (!port_.senders[arrival.source]->accepted) {
    return port_.refuse(arrival.source);
  }
  remote_access(arrival);
}

void MessageReceiver::remote_access(const link::Arrival& arrival) {
  const bool atomic = arrival.operation == link::MessageOperation::kAtomicReadData ||
                      arrival.operation == link::MessageOperation::kAtomicWriteData;
  const bool read = arrival.operation == link::MessageOperation::kReadEvent ||
                    arrival.operation == link::MessageOperation::kAtomicReadData;
  bindings_.count(nullptr, read ? CounterEvent::kRemoteRead : CounterEvent::kRemoteWrite, true);
  if (!arrival.has_data || bindings_.rx == nullptr) return;
  bindings_.rx->push([&](device::Completion& completion) {
    completion = {};
    completion.flags = (atomic ? device::kAtomic : device::kRma) |
                       (read ? device::kRemoteRead : device::kRemoteWrite) | device::kHasRemoteData;
    completion.data = arrival.data;
    completion.length = arrival.tag;  // an announcement carries the length there
    completion.source = number_of(*port_.senders[arrival.source]);
  });
}

void MessageReceiver::accessed(std::uint32_t source, Access access,
                               std::span<const RegionKey> regions) {
  if (setup_.region_counters == nullptr || !port_.senders[source]->accepted) return;
  for (const RegionKey region : regions) setup_.region_counters->count(region, access);
}

void MessageReceiver::refused(std::uint32_t source, const char* operation,
                              const RefusedAccess& access) {
  if (port_.senders[source] == nullptr) return;
  device::refusal_log().of_peer([&] {
    return port_.name.text() + " refused an access of " + port_.senders[source]->address.text() +
           ": " + memory::explain(access, "key", operation);
  });
}

void MessageReceiver::received(void* cookie, int error) {
  Receive& receive = *static_cast<Receive*>(cookie);
  leave_under_way(receive);
  if (withdrawn_) [[unlikely]] {
    if (silent_) return queue_.give(receive);
    error = ECANCELED;
  }
  if (error != link::kWithdrawn) [[likely]] {
    return finish(receive, receive.taken, error != 0 ? error : receive.fault);
  }
  const bool tagged = (receive.taken.flags & device::kTagged) != 0;
  if (receive.claims) return fail(receive, tagged, ECANCELED);
  if (receive.whole != nullptr) return miss(receive, tagged);
  queue_.post_again(receive, tagged);
}

void MessageReceiver::fail(Receive& receive, bool tagged, int error) {
  if (receive.parts != 0) {
    receive.used_up = true;
    return;
  }
  const std::uint64_t flags = device::kReceive | (tagged ? device::kTagged : device::kMessage) |
                              (receive.multi ? std::uint64_t{device::kMultiReceive} : 0);
  finish(receive, {flags, 0, receive.tag, 0, receive.source}, error);
}

// The message leaves the queue first: delivering it may report the end of the receive.
bool MessageReceiver::take(Receive& receive, QueuedUnexpected& message) {
  const Unexpected taken = queue_.matcher_of(message).take(message);
  const PeerIndex sender = number_of(*taken.from);
  return deliver(receive, taken.arrival, taken_of_either(taken.arrival, sender));
}

int MessageReceiver::refuse(const ReceiveCall& call, const RefusedAccess& refused) {
  const bool reports = bindings_.rx != nullptr && call.report.reports_failure();
  if (reports && bindings_.rx->full()) return EAGAIN;
  if (reports) {
    bindings_.rx->push([&](device::Completion& completion) {
      completion = {};
      completion.context = call.report.context;
      completion.flags = device::kReceive | (call.tagged ? device::kTagged : device::kMessage) |
                         (call.multi ? std::uint64_t{device::kMultiReceive} : 0);
      completion.tag = call.tag;
      completion.refuse(EACCES, refused);
    });
  }
  port_.port->stats().add(device::refusal_counter(refused.reason));
  device::refusal_log().own(
      [&] { return "refused: " + device::explain(device::kReceive, refused); });
  bindings_.count(call.report.counter(), CounterEvent::kReceive, false);
  return 0;
}

void MessageReceiver::report_peek(const ReceiveCall& call, const QueuedUnexpected* message,
                                  int error) {
  if (bindings_.rx == nullptr) return;
  bindings_.rx->push([&](device::Completion& completion) {
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

void MessageReceiver::discard(QueuedUnexpected& message) {
  const Unexpected taken = queue_.matcher_of(message).take(message);
  const link::Arrival& arrival = taken.arrival;
  if (arrival.payload == nullptr || arrival.wants_ack) port_.inbox().acknowledge(arrival.offer);
}

}  // namespace weft::messaging
