// SPDX-License-Identifier: BSD-2-Clause
// To which user does a service belong, and which requests for it are half open?
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "age_list.h"
#include "cm/event.h"

namespace weft::cm {

// A service that is listened for.
struct ServiceListener {
  ListenerId id = 0;
  std::uint64_t service = 0;
  std::size_t backlog = 1;
  User* user = nullptr;
  void* context = nullptr;
  AgeLists half_open;  // undecided, or without an RTU
};

// All listeners of an agent. Pointers stay valid until remove().
class Listeners {
 public:
  // Null when the service has a listener.
  ServiceListener* add(std::uint64_t service);
  ServiceListener* find(ListenerId id);
  ServiceListener* of_service(std::uint64_t service);
  // Its list of half-open requests is empty by then.
  void remove(const ServiceListener& listener);

 private:
  ListenerId last_ = 0;
  std::unordered_map<ListenerId, ServiceListener> by_id_;
  std::unordered_map<std::uint64_t, ListenerId> by_service_;
};

}  // namespace weft::cm
