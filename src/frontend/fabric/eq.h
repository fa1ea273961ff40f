// SPDX-License-Identifier: BSD-2-Clause
// What is an event queue? fi_eq(3)
#pragma once

#include <rdma/fi_eq.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/usable.h"
#include "device/engine.h"
#include "fabric.h"
#include "fid_object.h"
#include "info.h"
#include "wait_point.h"

namespace weft::fabric {

// The object behind a fid_eq. Any thread.
class EventQueue : public ChildObject<EventQueue, fid_eq, Fabric>, public Usable {
 public:
  EventQueue(Fabric& fabric, std::uint64_t flags, const WaitWish& wish, void* context);
  ~EventQueue();

  Fabric& fabric() const { return parent(); }
  // Drives what reports here when the queue is read.
  device::EngineGroup& waiting() { return waiting_; }
  WaitPoint& wait_point() { return wait_point_; }
  // True when programs may add events (FI_WRITE).
  bool writable() const { return writable_; }
  // Adds an event: its number (FI_AV_COMPLETE ...) and what the program reads.
  void push(std::uint32_t event, const void* content, std::size_t length);
  // Adds an error with its data: `data`, or else what its fields say. They are copied.
  void push_error(const fi_eq_err_entry& error, std::span<const std::byte> data = {});
  // Adds work, which the thread does that reads it first, or the engine of background_work(). It
  // returns 0, and `event` is read with the object and its context (struct fi_eq_entry), or a
  // negative libfabric error, and that is. Until it has ended other threads find nothing to read.
  void push_work(std::uint32_t event, struct fid& object, std::function<int()> work);
  // The engine that does work before it is read. Errors: EMFILE and others of eventfd(2).
  Result<device::Engine*> background_work();
  // Adds an event of a connection (struct fi_eq_cm_entry). An info that is not read is freed.
  void push_connection(std::uint32_t event, struct fid& object, InfoList info,
                       std::span<const std::byte> data);
  // Adds a connection request. Events that the same requester caused before at other endpoints of
  // this queue (an earlier connection is established) are read before it.
  void push_request(struct fid& object, InfoList info, std::span<const std::byte> data);
  // Removes the event of a connection request whose info has that handle. False when the program
  // has read it, or looked at it.
  bool withdraw_request(const struct fid* handle);
  // Removes what was said of an object that is closed now, after work for it that is under way.
  void forget(const struct fid& object);
  // The first event, taken out unless `peek`. -FI_EAGAIN when there is none, -FI_EAVAIL when an
  // error comes first, -FI_ETOOSMALL when it does not fit into `length` bytes.
  ssize_t take(std::uint32_t* event, void* buffer, std::size_t length, bool peek);
  // As take(), and waits for so long where there is none; negative: no limit.
  ssize_t wait_and_take(std::uint32_t* event, void* buffer, std::size_t length, std::uint64_t flags,
                        int timeout_ms);
  // The first error. -FI_EAGAIN when the next event is none. On entry `out` says where its err_data
  // goes and what fits there; without a place it is lent until the next call (fi_eq(3)).
  ssize_t take_error(fi_eq_err_entry& out, bool peek);
  // True when something can be read.
  bool ready() const;

 private:
  struct QueuedEvent {
    std::uint32_t event = 0;
    bool failed = false;
    fi_eq_err_entry error{};
    const struct fid* object = nullptr;  // that it is about, if that may be closed meanwhile
    InfoList info;                       // owned by the reader once the event is read
    std::size_t least = 0;               // bytes of the content without which it cannot be read
    std::vector<std::byte> content;      // or the data of an error
    std::function<int()> work;           // to be done before it is read
    bool shown = false;                  // the program has looked at it
  };
  // Does work while the program does not read the queue.
  class BackgroundWork;

  static QueuedEvent of_connection(std::uint32_t event, struct fid& object, InfoList info,
                                   std::span<const std::byte> data);
  void add(QueuedEvent entry);
  void bring_up_to_date();
  QueuedEvent* first(std::unique_lock<std::mutex>& lock);
  void do_work(std::unique_lock<std::mutex>& lock);
  bool has_work() const;
  void do_work_for(std::chrono::nanoseconds longest);
  void give_error(const QueuedEvent& failed, fi_eq_err_entry& out);

  const bool writable_;
  const bool fills_error_data_;  // the place for err_data is the program's (API 1.5)
  device::EngineGroup waiting_;
  mutable std::mutex mutex_;
  std::list<QueuedEvent> entries_;
  std::deque<QueuedEvent> requests_;        // that go behind what the engines still have to say
  std::deque<QueuedEvent*> undone_;         // those of entries_ that await work, in their order
  const QueuedEvent* worked_on_ = nullptr;  // the entry whose work is under way
  std::condition_variable work_ended_;
  std::unique_ptr<BackgroundWork> background_work_;
  std::atomic<unsigned> reads_{0};
  std::vector<std::byte> lent_;  // the err_data that the program looks at
  WaitPoint wait_point_;
};

// The event queue that is bound to an object, once and as long as that lives. Any thread.
class BoundEventQueue {
 public:
  // Errors: -FI_EINVAL for a second one, -FI_EPERM for a parent's.
  int bind(EventQueue& eq) {
    if (eq.wait_point().inherited()) return -FI_EPERM;
    Use use(eq);
    EventQueue* none = nullptr;
    if (!eq_.compare_exchange_strong(none, &eq)) return -FI_EINVAL;
    use_ = std::move(use);
    return 0;
  }
  // Null while there is none.
  EventQueue* get() const { return eq_.load(); }

 private:
  std::atomic<EventQueue*> eq_{nullptr};
  Use use_;
};

}  // namespace weft::fabric
