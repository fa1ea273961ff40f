// SPDX-License-Identifier: BSD-2-Clause
// What is an event queue? fi_eq(3)
#pragma once

#include <rdma/fi_eq.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <vector>

#include "device/engine.h"
#include "fabric.h"
#include "usable.h"

namespace weft::fabric {

// The object behind a fid_eq. Any thread.
class EventQueue : public fid_eq, public Usable {
 public:
  EventQueue(Fabric& fabric, std::uint64_t flags, device::WaitKind wait, void* context);

  // The object behind `eq`.
  static EventQueue& from(fid_eq* eq) { return *static_cast<EventQueue*>(eq); }

  device::EngineGroup& waiting() { return waiting_; }
  // True when programs may add events (FI_WRITE).
  bool writable() const { return writable_; }
  // Adds an event: its number (FI_AV_COMPLETE ...) and what the program reads.
  void push(std::uint32_t event, const void* content, std::size_t length);
  // Adds an error.
  void push_error(const fi_eq_err_entry& error);
  // The first event, taken out unless `peek`. -FI_EAGAIN when there is none, -FI_EAVAIL when an
  // error comes first, -FI_ETOOSMALL when it does not fit into `length` bytes.
  ssize_t take(std::uint32_t* event, void* buffer, std::size_t length, bool peek);
  // The first error. -FI_EAGAIN when the next event is none.
  ssize_t take_error(fi_eq_err_entry& out, bool peek);
  // True when something can be read.
  bool ready() const;

 private:
  struct Entry {
    std::uint32_t event = 0;
    bool failed = false;
    fi_eq_err_entry error{};
    std::vector<std::byte> content;
  };

  const Fabric::Use fabric_use_;
  const bool writable_;
  device::EngineGroup waiting_;
  mutable std::mutex mutex_;
  std::deque<Entry> entries_;
};

}  // namespace weft::fabric
