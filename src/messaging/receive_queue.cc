// SPDX-License-Identifier: BSD-2-Clause
// How are receives posted, and how do they find the messages that came before them?
#include "messaging/receive_queue.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/slices.h"
#include "messaging/endpoint.h"

namespace weft::messaging {

Status ReceiveQueue::join(Endpoint& endpoint) {
  const ControlGuard guard(lock_);
  const EndpointSetup& setup = endpoint.setup();
  const auto numbers_differently = [&](const Endpoint* other) {
    return setup.connection == nullptr && other->setup().connection == nullptr &&
           other->setup().addresses != setup.addresses;
  };
  if (std::any_of(endpoints_.begin(), endpoints_.end(), numbers_differently)) {
    return Error{EINVAL, "endpoints that share their receives have different address vectors"};
  }
  endpoints_.push_back(&endpoint);
  return {};
}

void ReceiveQueue::leave(Endpoint& endpoint) {
  std::erase(endpoints_, &endpoint);
  tagged_.drop_all_to(endpoint.receiver());
  untagged_.drop_all_to(endpoint.receiver());
}

void ReceiveQueue::forget(const RemoteSender& gone) {
  tagged_.forget(gone);
  untagged_.forget(gone);
}

void ReceiveQueue::forget(const RemoteSender& sender, std::uint32_t rendezvous_id) {
  tagged_.forget(sender, rendezvous_id);
  untagged_.forget(sender, rendezvous_id);
}

Receive& ReceiveQueue::new_receive(const ReceiveCall& call) {
  Receive& receive = receives_.take();
  receive.order = ++orders_;
  receive.tag = call.tag;
  receive.ignore = call.tagged ? call.ignore : ~std::uint64_t{0};
  receive.source = call.source;
  receive.context = call.report.context;
  receive.report = call.report.wanted();
  if (device::Counter* const counter = call.report.counter()) [[unlikely]]
    receive.counter = UseOf(*counter);
  if (call.staging != nullptr) [[unlikely]]
    receive.staging = call.staging;
  receive.capacity = total_length(call.sges);
  receive.count = static_cast<std::uint32_t>(call.sges.size());
  for (std::size_t i = 0; i < call.sges.size(); ++i) receive.sges[i] = call.sges[i];
  receive.claims = false;
  receive.multi = call.multi;
  receive.used_up = false;
  receive.parts = 0;
  receive.whole = nullptr;
  if (call.multi) receive.least = std::max<std::size_t>(call.least, 1);
  return receive;
}

int ReceiveQueue::receive(const ReceiveCall& call) {
  const Section section(lock_);
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

// Puts the number in the place of `source` by which its messages are known. All endpoints number
// their peers alike.
bool ReceiveQueue::find_source(PeerIndex& source) const {
  if (source == kNoPeer) return true;
  if (endpoints_.empty()) return false;
  source = endpoints_.front()->setup().addresses->canonical(source);
  return source != kNoPeer;
}

int ReceiveQueue::post(const ReceiveCall& call) {
  Receive& receive = new_receive(call);
  if (!find_source(receive.source)) return give_back(receive, EINVAL);
  Matcher& queue = matcher(call.tagged);
  if (receive.multi) [[unlikely]]
    return post_multi(receive);
  if (!queue.nothing_kept() && take_kept(receive, queue)) return 0;
  if (ended_ != 0) [[unlikely]]
    return give_back(receive, ended_);
  if (full()) [[unlikely]]
    return give_back(receive, EAGAIN);
  queue.post(receive);
  return 0;
}

// Gives the receive the first kept message for it that is to be had.
bool ReceiveQueue::take_kept(Receive& receive, Matcher& queue) {
  while (QueuedUnexpected* message = queue.find({receive.tag, receive.ignore, receive.source})) {
    if (message->from->receiver->take(receive, *message)) return true;
  }
  return false;
}

void ReceiveQueue::post_again(Receive& receive, bool tagged) {
  Matcher& queue = matcher(tagged);
  if (take_kept(receive, queue)) return;
  if (ended_ != 0) return endpoints_.front()->receiver().fail(receive, tagged, ended_);
  queue.put_back(receive);
}

std::size_t ReceiveQueue::room() {
  const Section section(lock_);
  return full() ? 0 : size_ - waiting();
}

int ReceiveQueue::give_back(Receive& receive, int error) {
  give(receive);
  return error;
}

// First the messages that came before it, as long as there is room. With the last of them the
// receive may be over.
int ReceiveQueue::post_multi(Receive& receive) {
  if (ended_ != 0) return give_back(receive, ended_);
  if (full()) return give_back(receive, EAGAIN);
  const Wanted wanted{receive.tag, receive.ignore, receive.source};
  untagged_.post(receive);
  for (bool room = true; room;) {
    QueuedUnexpected* message = untagged_.find(wanted);
    if (message == nullptr) return 0;
    Receive& part = part_of(receive, message->arrival.length);
    room = !receive.used_up;
    MessageReceiver& receiver = *message->from->receiver;
    if (!receiver.take(part, *message)) receiver.miss(part, false);
  }
  return 0;
}

Receive& ReceiveQueue::part_of(Receive& whole, std::uint64_t length) {
  Receive& part = receives_.take();
  part.source = whole.source;
  part.context = whole.context;
  part.report = whole.report;
  if (whole.counter) part.counter = UseOf(*whole.counter.get());
  part.staging = whole.staging;
  part.capacity = whole.capacity;
  part.count = 1;
  part.sges[0] = whole.sges[0];
  part.multi = false;
  part.parts = 0;
  part.whole = &whole;
  const std::size_t used = std::min<std::uint64_t>(length, whole.capacity);
  whole.sges[0] = {static_cast<std::byte*>(whole.sges[0].base) + used, whole.capacity - used};
  whole.capacity -= used;
  ++whole.parts;
  if (whole.capacity < whole.least) {
    whole.used_up = true;
    untagged_.withdraw(whole);
  }
  return part;
}

bool ReceiveQueue::leave_whole(Receive& part) {
  Receive& whole = *std::exchange(part.whole, nullptr);
  if (--whole.parts != 0 || !whole.used_up) return false;
  give(whole);
  return true;
}

int ReceiveQueue::peek(const ReceiveCall& call) {
  if (endpoints_.empty()) return EINVAL;
  for (Endpoint* endpoint : endpoints_) endpoint->port().progress_inside();
  PeerIndex source = call.source;
  if (!find_source(source)) return EINVAL;
  const std::uint64_t ignore = call.tagged ? call.ignore : ~std::uint64_t{0};
  QueuedUnexpected* message = matcher(call.tagged).find({call.tag, ignore, source});
  if (message == nullptr) {
    endpoints_.front()->receiver().report_peek(call, nullptr, ENOMSG);
    return 0;
  }
  MessageReceiver& receiver = *message->from->receiver;
  receiver.report_peek(call, message, 0);
  if (call.mode == ReceiveCall::Mode::kPeekClaim) {
    message->claimed = true;
    message->claimed_by = call.report.context;
  }
  if (call.mode == ReceiveCall::Mode::kPeekDiscard) receiver.discard(*message);
  return 0;
}

int ReceiveQueue::take_claimed(const ReceiveCall& call) {
  QueuedUnexpected* message = matcher(call.tagged).find_claimed(call.report.context);
  if (message == nullptr) return EINVAL;
  MessageReceiver& receiver = *message->from->receiver;
  if (message->withdrawn) {
    receiver.report_peek(call, message, ECANCELED);
    matcher(call.tagged).take(*message);
    return 0;
  }
  if (call.mode == ReceiveCall::Mode::kDiscardClaimed) {
    receiver.report_peek(call, message, 0);
    receiver.discard(*message);
    return 0;
  }
  Receive& receive = new_receive(call);
  receive.claims = true;
  if (!receiver.take(receive, *message)) receiver.fail(receive, call.tagged, ECANCELED);
  return 0;
}

int ReceiveQueue::cancel(void* context) {
  const Section section(lock_);
  for (const bool tagged : {true, false}) {
    Receive* receive = matcher(tagged).cancel(context);
    if (receive == nullptr) continue;
    if (endpoints_.empty()) return give_back(*receive, 0);
    endpoints_.front()->receiver().fail(*receive, tagged, ECANCELED);
    return 0;
  }
  return ENOENT;
}

void ReceiveQueue::abandon(const ReceiveCall& call, int error) {
  const Section section(lock_);
  if (!endpoints_.empty())
    endpoints_.front()->receiver().fail(new_receive(call), call.tagged, error);
}

int ReceiveQueue::refuse(const ReceiveCall& call, const RefusedAccess& refused) {
  const Section section(lock_);
  if (endpoints_.empty()) return EACCES;
  return endpoints_.front()->receiver().refuse(call, refused);
}

}  // namespace weft::messaging
