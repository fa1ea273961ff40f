// SPDX-License-Identifier: BSD-2-Clause
// What is behind the rdma_event_channel of a program?
#pragma once

#include <deque>
#include <memory>
#include <utility>

#include "abi.h"
#include "cm_event.h"
#include "os/event.h"

namespace weft::rdmacm {

class CmSpace;

// Events in the order in which they have happened, and a descriptor that is readable while one
// waits. Guarded by the lock of the space.
class CmChannel : public rdma_event_channel {
 public:
  // Errors: those of eventfd(2).
  static Result<std::unique_ptr<CmChannel>> create(std::shared_ptr<CmSpace> space);
  static CmChannel& of(rdma_event_channel* handle) { return *static_cast<CmChannel*>(handle); }

  CmSpace& space() { return *space_; }
  // Each one makes the descriptor readable anew, as edge-triggered epoll(7) wants it.
  void add(std::unique_ptr<CmEventRecord> record);
  // One that was taken and could not be handed out: it is the first again.
  void put_back(std::unique_ptr<CmEventRecord> record);
  // Null when there is none.
  std::unique_ptr<CmEventRecord> take();
  // Removes those for which that holds.
  template <class Condition>
  void drop(Condition condition) {
    const bool had = !records_.empty();
    std::erase_if(records_, [&](const auto& each) { return condition(*each); });
    if (had && records_.empty()) event_.clear();
  }
  // Moves the events of an id to another channel.
  void move(const CmId& id, CmChannel& to);

  // The program has destroyed it. A thread inside of rdma_get_cm_event(3), or one that calls it
  // afterwards, waits there for ever.
  void close();

  unsigned readers = 0;  // such threads

 private:
  CmChannel(std::shared_ptr<CmSpace> space, os::Event event)
      : rdma_event_channel{event.fd()}, space_(std::move(space)), event_(std::move(event)) {}

  const std::shared_ptr<CmSpace> space_;
  os::Event event_;
  std::deque<std::unique_ptr<CmEventRecord>> records_;
};

}  // namespace weft::rdmacm
