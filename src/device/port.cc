// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint reach its peers, whichever link leads to them?
#include "device/port.h"

#include <algorithm>

#include "link_shm/group.h"

namespace weft::device {

Port::Port(std::shared_ptr<Device> device, std::unique_ptr<shm::Mailbox> mailbox,
           shm::Sender sender)
    : device_(std::move(device)), mailbox_(std::move(mailbox)), sender_(std::move(sender)) {}

Result<std::unique_ptr<Port>> Port::open(std::shared_ptr<Device> device,
                                         const os::SocketAddress& address,
                                         const PortOptions& options) {
  shm::MailboxOptions box;
  box.directory = device->directory();
  box.address = address;
  box.domain = options.domain;
  box.table = device->regions().name();
  box.counts_access = (options.count_remote_reads ? shm::kCountsReads : 0) |
                      (options.count_remote_writes ? shm::kCountsWrites : 0);
  box.service = options.service;
  box.regions = device->regions_of_users();
  auto mailbox = shm::Mailbox::create(box);
  if (!mailbox) return mailbox.error();
  shm::Sender sender;
  sender.directory = device->directory();
  sender.address = options.name;
  sender.bell = &mailbox.value()->bell();
  sender.eager_limit = std::min<std::size_t>(options.eager_limit, shm::kMaxEager);
  sender.service = options.service;
  return std::unique_ptr<Port>(
      new Port(std::move(device), std::move(mailbox).value(), std::move(sender)));
}

Result<std::unique_ptr<link::Flow>> Port::connect(const os::SocketAddress& peer) {
  auto outbox = shm::Outbox::open(sender_, peer);
  if (!outbox) return outbox.error();
  return std::unique_ptr<link::Flow>(std::move(outbox).value());
}

Result<std::unique_ptr<link::Membership>> Port::join(const os::SocketAddress& group) {
  return shm::join_group(device_->directory(), group, sender_.address);
}

std::unique_ptr<link::Flow> Port::connect_group(const os::SocketAddress& group) {
  return std::make_unique<shm::GroupOutbox>(sender_, group);
}

}  // namespace weft::device
