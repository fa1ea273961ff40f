// SPDX-License-Identifier: BSD-2-Clause
// How does a program hear of events of many objects through one descriptor?
#pragma once

#include <boost/intrusive/list.hpp>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "base/result.h"
#include "device/engine.h"
#include "os/event.h"

namespace weft::device {

// What has happened to an object.
enum class Cause : std::uint8_t {
  kCompletion,    // an armed completion queue got an entry (ibv_get_cq_event(3))
  kOverrun,       // a completion queue refused an entry: IBV_EVENT_CQ_ERR (ibv_get_async_event(3))
  kReceiveLimit,  // a shared receive queue is shorter than its limit
  // Of a queue pair: its first packet in RTR, a refused access or an invalid request of its peer,
  // an error of its completion queue, and its last receive of a shared queue.
  kCommunicationEstablished,
  kAccessError,
  kRequestError,
  kFatal,
  kLastReceive,
};

// One event as it is taken from a channel.
struct ChannelEvent {
  Cause cause = Cause::kCompletion;
  void* object = nullptr;  // a token: what the front end knows the object by
};

// An event that an object can raise, again and again. The object owns it and has it forgotten
// before its own end. So a channel needs no memory, and raising cannot fail.
class EventSource : public boost::intrusive::list_base_hook<
                        boost::intrusive::link_mode<boost::intrusive::normal_link>> {
 public:
  explicit EventSource(Cause cause) : cause_(cause) {}

 private:
  friend class EventChannel;
  const Cause cause_;
  void* object_ = nullptr;
  std::uint64_t waiting_ = 0;  // how often it was raised and not taken; not 0: it is in a list
};

// A queue of events with a descriptor that is readable exactly while an event waits. Events are
// told in the order in which they came to wait. Any thread. Its lock is the innermost: an event may
// be raised with the lock of the object held.
class EventChannel {
 public:
  // Errors: those of eventfd(2).
  static Result<std::unique_ptr<EventChannel>> open();

  // Readable while an event waits (poll(2)). Only to be waited on.
  int fd() const { return event_.fd(); }
  // Adds an event about `object`. One that is raised again before it was taken is taken as often.
  void raise(EventSource& source, void* object);
  // The first event, or none.
  std::optional<ChannelEvent> take();
  // True while an event waits.
  bool has_event();
  // Threads that wait for engines wait for events of this channel, too: `group` outlives it.
  void wake(EngineGroup& group) { group_ = &group; }
  // Drops what waits of `source`: none of it is taken after this.
  void forget(EventSource& source);

 private:
  explicit EventChannel(os::Event event) : event_(std::move(event)) {}
  void remove(EventSource& source);

  os::Event event_;
  EngineGroup* group_ = nullptr;
  std::mutex mutex_;
  boost::intrusive::list<EventSource, boost::intrusive::constant_time_size<false>> sources_;
};

}  // namespace weft::device
