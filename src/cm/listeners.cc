// SPDX-License-Identifier: BSD-2-Clause
// To which user does a service belong, and which requests for it are half open?
#include "listeners.h"

namespace weft::cm {

ServiceListener* Listeners::add(std::uint64_t service) {
  if (by_service_.contains(service)) return nullptr;
  ServiceListener& listener = by_id_[++last_];
  listener.id = last_;
  listener.service = service;
  by_service_[service] = last_;
  return &listener;
}

ServiceListener* Listeners::find(ListenerId id) {
  const auto at = by_id_.find(id);
  return at == by_id_.end() ? nullptr : &at->second;
}

ServiceListener* Listeners::of_service(std::uint64_t service) {
  const auto at = by_service_.find(service);
  return at == by_service_.end() ? nullptr : find(at->second);
}

void Listeners::remove(const ServiceListener& listener) {
  by_service_.erase(listener.service);
  by_id_.erase(listener.id);
}

}  // namespace weft::cm
