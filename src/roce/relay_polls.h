// SPDX-License-Identifier: BSD-2-Clause
// When does a port look for packets at port 4791?
#pragma once

#include <cstddef>
#include <memory>

#include "base/result.h"
#include "os/clock.h"
#include "os/local_name.h"
#include "os/wake_set.h"
#include "roce/port4791_relay.h"

namespace weft::roce {

// The part of one port in looking at the relay of its address. One thread at a time.
class RelayPolls {
 public:
  explicit RelayPolls(std::shared_ptr<Port4791Relay> relay) : relay_(std::move(relay)) {}
  // Claims the name by which the relay knows that there is a port at that address. Errors: those of
  // os::LocalName::claim().
  Status open(const os::SocketAddress& address);
  // The same without a name: there is none for datagrams.
  void attend() { relay_->attend(); }
  // Claims, or gives back, the name by which the relay knows that messages for queue pair 1 may go
  // there. Errors: those of os::LocalName::claim().
  Status open_manager(const os::SocketAddress& address);
  void close_manager() { manager_name_ = {}; }

  // Looks, unless it is too soon; visit() gets packets for that queue pair. `idle`: the port itself
  // had none. Returns how many.
  unsigned poll(bool idle, std::uint32_t queue_pair, const Port4791Relay::Visit& visit);
  // Adds the descriptors of the relay to the set of a port that falls asleep.
  void watch(os::WakeSet& set);
  // More is here that no descriptor tells of.
  bool has_more() const { return more_; }
  // More is likely to come at once.
  bool hot() const { return hot_polls_ != 0; }
  // As Port4791Relay::count_overflows().
  void count_overflows() { relay_->count_overflows(); }

 private:
  bool time_to_look(bool idle);

  const std::shared_ptr<Port4791Relay> relay_;
  os::LocalName name_;
  os::LocalName manager_name_;
  std::size_t descriptors_ = 0;  // of the relay, that are in the set
  unsigned hot_polls_ = 0;       // looks before they become seldom
  unsigned busy_ = 0;            // polls that found something else
  os::Time looked_at_{};
  bool more_ = false;
};

}  // namespace weft::roce
