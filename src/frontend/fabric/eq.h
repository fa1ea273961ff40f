// SPDX-License-Identifier: BSD-2-Clause
// What is an event queue? fi_eq(3)
#pragma once

#include <rdma/fi_eq.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <span>
#include <vector>

#include "device/engine.h"
#include "fabric.h"
#include "info.h"
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
  // Adds an error; what its fields say of data does not count.
  void push_error(const fi_eq_err_entry& error, std::span<const std::byte> data = {});
  // Adds an event of a connection (struct fi_eq_cm_entry). An info that nobody reads is freed.
  void push_connection(std::uint32_t event, struct fid& object, InfoList info,
                       std::span<const std::byte> data);
  // Removes what was said of an object that is closed now.
  void forget(const struct fid& object);
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
    const struct fid* object = nullptr;  // that it is about, if that may be closed meanwhile
    InfoList info;                       // the reader's, once he has read the event
    std::size_t least = 0;               // bytes of the content without which it cannot be read
    std::vector<std::byte> content;      // or the data of an error
  };
  void add(Entry entry);
  void give_data(const Entry& failed, fi_eq_err_entry& out);

  const Fabric::Use fabric_use_;
  const bool writable_;
  device::EngineGroup waiting_;
  const bool copies_data_;  // into the reader's buffer, where he has one
  mutable std::mutex mutex_;
  std::deque<Entry> entries_;
  std::vector<std::byte> shown_;  // data of the last error that was read
};

}  // namespace weft::fabric
