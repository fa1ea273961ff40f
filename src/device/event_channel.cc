// SPDX-License-Identifier: BSD-2-Clause
// How does a program hear of events of many objects through one descriptor?
#include "device/event_channel.h"

#include <utility>

namespace weft::device {

Result<std::unique_ptr<EventChannel>> EventChannel::open() {
  auto event = os::Event::create_for_program();
  if (!event) return event.error();
  return std::unique_ptr<EventChannel>(new EventChannel(std::move(event).value()));
}

void EventChannel::raise(EventSource& source, void* object) {
  const std::lock_guard guard(mutex_);
  source.object_ = object;
  if (source.waiting_++ != 0) return;
  if (sources_.empty()) event_.set();
  sources_.push_back(source);
  if (group_ != nullptr) group_->notify();
}

bool EventChannel::has_event() {
  const std::lock_guard guard(mutex_);
  return !sources_.empty();
}

std::optional<ChannelEvent> EventChannel::take() {
  const std::lock_guard guard(mutex_);
  if (sources_.empty()) return std::nullopt;
  EventSource& first = sources_.front();
  const ChannelEvent channel_event{first.cause_, first.object_};
  if (--first.waiting_ == 0) remove(first);
  return channel_event;
}

void EventChannel::forget(EventSource& source) {
  const std::lock_guard guard(mutex_);
  if (std::exchange(source.waiting_, 0) != 0) remove(source);
}

// With the mutex held, as the descriptor changes: it is never wrong for longer than that.
void EventChannel::remove(EventSource& source) {
  sources_.erase(sources_.iterator_to(source));
  if (sources_.empty()) event_.clear();
}

}  // namespace weft::device
