// SPDX-License-Identifier: BSD-2-Clause
// What is behind the rdma_event_channel of a program?
#pragma once

#include <deque>
#include <memory>
#include <utility>

#include "abi.h"
#include "cm_event.h"
#include "os/event.h"
#include "os/origin.h"

namespace weft::rdmacm {

class CmSpace;

// Events in the order in which they have happened, and a descriptor that is readable while one
// waits. Guarded by the lock of the space.
class CmChannel : public rdma_event_channel, public std::enable_shared_from_this<CmChannel> {
 public:
  // Errors: those of eventfd(2).
  static Result<std::shared_ptr<CmChannel>> create(std::shared_ptr<CmSpace> space);
  static CmChannel& of(rdma_event_channel* handle) { return *static_cast<CmChannel*>(handle); }
  // Whether a parent of this process has made it, to which it belongs.
  bool is_inherited() const { return origin_.inherited(); }

  CmSpace& space() { return *space_; }
  // Each one makes the descriptor readable anew, as edge-triggered epoll(7) wants it.
  void add(std::unique_ptr<CmEventRecord> record);
  // The first event; null when there is none.
  CmEventRecord* first() { return records_.empty() ? nullptr : records_.front().get(); }
  std::unique_ptr<CmEventRecord> take();
  // Removes the events for which the condition holds.
  template <class Condition>
  void drop(Condition condition) {
    const bool had = !records_.empty();
    std::erase_if(records_, [&](const auto& each) { return condition(*each); });
    if (had && records_.empty()) clear();
  }
  // The first event for which the condition holds, or null.
  template <class Condition>
  CmEventRecord* find(Condition condition) {
    for (const auto& each : records_) {
      if (condition(*each)) return each.get();
    }
    return nullptr;
  }
  // Moves the events of an id to another channel.
  void move(const CmId& id, CmChannel& to);

  // The program has destroyed it: events are dropped.
  void close();

  unsigned readers = 0;                   // threads inside of rdma_get_cm_event(3)
  std::shared_ptr<CmChannel> of_program;  // itself, until the program destroys it

 private:
  CmChannel(std::shared_ptr<CmSpace> space, os::Event event)
      : rdma_event_channel{event.fd()}, space_(std::move(space)), event_(std::move(event)) {}

  void clear();

  const std::shared_ptr<CmSpace> space_;
  const os::Origin origin_;
  os::Event event_;
  bool is_closed_ = false;
  std::deque<std::unique_ptr<CmEventRecord>> records_;
};

}  // namespace weft::rdmacm
