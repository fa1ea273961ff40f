// SPDX-License-Identifier: BSD-2-Clause
// What is an endpoint made of, and where does it report?
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "device/completion_queue.h"
#include "device/counter.h"
#include "device/port.h"
#include "device/region_counters.h"
#include "link/place.h"
#include "messaging/address_vector.h"
#include "messaging/connection.h"
#include "messaging/receive_queue.h"
#include "os/optional_lock.h"

namespace weft::messaging {

class SharedPort;

// Which events a counter counts; index into Bindings::counters.
enum class CounterEvent : std::uint8_t {
  kSend,
  kReceive,
  kRead,
  kWrite,
  kRemoteRead,
  kRemoteWrite,
  kCount
};

// Where an endpoint reports (fi_ep_bind(3)). What is null is not reported.
struct Bindings {
  device::CompletionQueue* tx = nullptr;
  device::CompletionQueue* rx = nullptr;
  std::array<device::Counter*, static_cast<std::size_t>(CounterEvent::kCount)> counters{};
  bool rx_selective = false;  // remote writes with data are reported all the same

  // The counter of an event, or null.
  device::Counter* counter(CounterEvent event) const {
    return counters[static_cast<std::size_t>(event)];
  }
  // Counts the end of an operation in the counter of its own, if it has one, else in that of
  // `event`.
  void count(device::Counter* own, CounterEvent event, bool success) const {
    device::Counter* const to = own != nullptr ? own : counter(event);
    if (to == nullptr) return;
    if (success) {
      to->add(1);
    } else {
      to->add_errors(1);
    }
  }
};

// What an endpoint is made of; all pointers outlive it, but that of its place. Its port is opened
// with the base, where `connected` follows from `connection`.
struct EndpointSetup : device::PortSetup {
  std::shared_ptr<device::Device> device;
  AddressVector* addresses = nullptr;    // empty for a connected endpoint, and stays so
  ConnectionSink* connection = nullptr;  // of a connected endpoint
  // That it shares with other connected endpoints; null: a port of its own at `place`.
  std::shared_ptr<SharedPort> port = nullptr;
  // Shared with other endpoints, all with the same addresses; null: receives of its own.
  ReceiveQueue* receives = nullptr;
  std::size_t transmit_room = std::size_t{1} << 16;  // operations that it holds at once
  std::size_t receive_room = std::size_t{1} << 16;   // of its own ones that wait
  Bindings bindings;
  link::Place place;  // where it is: at `name`, unless that replaces a wildcard
  Locking locking = true;
  device::RegionCounters* region_counters = nullptr;  // of the domain's regions, or none
};

}  // namespace weft::messaging
