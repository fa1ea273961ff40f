// SPDX-License-Identifier: BSD-2-Clause
// How do peers of the host find a shared receive queue of an XRC domain?
#include "queue/shared_entry.h"

#include <utility>

#include "base/warning.h"
#include "near_peer.h"

namespace weft::queue {

Result<std::unique_ptr<SharedEntry>> SharedEntry::add(std::shared_ptr<device::Device> device,
                                                      std::uint32_t number, DomainId domain,
                                                      std::uint32_t group) {
  memory::RegionAttributes entry;
  entry.domain = kDomainOfQueuePairs;
  entry.access = Access::kRemoteRead | Access::kRemoteWrite | Access::kRemoteAtomic;
  entry.base = QueueEntry{domain, group}.packed();
  entry.length = 1;
  entry.key = key_of_shared(number);
  auto registration = device->regions().add(entry);
  if (!registration) return registration.error();
  return std::unique_ptr<SharedEntry>(new SharedEntry(std::move(device), registration.value()));
}

SharedEntry::~SharedEntry() {
  if (Status left = device_->regions().remove(registration_); !left) warn(left.error().message);
}

}  // namespace weft::queue
