// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint reach its peers, whichever link leads to them?
#include "device/port.h"

#include <algorithm>

#include "link_shm/group.h"

namespace weft::device {

Status Port::open_mailbox(const os::SocketAddress& address, const PortOptions& options) {
  shm::MailboxOptions box;
  box.directory = device_->directory();
  box.address = address;
  box.domain = options.domain;
  box.table = device_->regions().name();
  box.counts_access = (options.count_remote_reads ? shm::kCountsReads : 0) |
                      (options.count_remote_writes ? shm::kCountsWrites : 0);
  box.service = options.service;
  box.regions = device_->regions_of_users();
  auto mailbox = shm::Mailbox::create(box);
  if (!mailbox) return mailbox.error();
  mailbox_ = std::move(mailbox).value();
  sender_.directory = device_->directory();
  sender_.address = options.name;
  sender_.bell = &mailbox_->bell();
  sender_.eager_limit = std::min<std::size_t>(options.eager_limit, shm::kMaxEager);
  sender_.service = options.service;
  inbox_ = mailbox_.get();
  return {};
}

Status Port::open_station(const link::Place& place, const PortOptions& options) {
  if (options.service != link::Service::kReliableDatagram) {
    return Error{EOPNOTSUPP, "datagrams go within the host only"};
  }
  if (place.port == nullptr) return Error{EINVAL, "no socket at " + place.address.text()};
  auto socket = os::UdpSocket::over(*place.port, {});
  if (!socket) return socket.error();
  udp::StationOptions wanted;
  wanted.name = options.name;
  wanted.domain = options.domain;
  wanted.regions = device_->regions_of_users();
  wanted.counts_reads = options.count_remote_reads;
  wanted.counts_writes = options.count_remote_writes;
  wanted.service = options.service;
  wanted.connect_timeout = options.connect_timeout;
  auto station = udp::Station::create(std::move(socket).value(), wanted);
  if (!station) return station.error();
  station_ = std::move(station).value();
  inbox_ = station_.get();
  return {};
}

Result<std::unique_ptr<Port>> Port::open(std::shared_ptr<Device> device, const link::Place& place,
                                         const PortOptions& options) {
  std::unique_ptr<Port> port(new Port(std::move(device)));
  const Status opened = place.links.udp ? port->open_station(place, options)
                                        : port->open_mailbox(place.address, options);
  if (!opened) return opened.error();
  return port;
}

Result<std::unique_ptr<link::Flow>> Port::connect(const os::SocketAddress& peer, bool insists) {
  if (station_ != nullptr) return station_->connect(peer, insists);
  auto outbox = shm::Outbox::open(sender_, peer);
  if (!outbox) return outbox.error();
  return std::unique_ptr<link::Flow>(std::move(outbox).value());
}

std::vector<pid_t> Port::source_processes() const {
  if (mailbox_ == nullptr) return {};
  return mailbox_->source_processes();
}

Result<std::unique_ptr<link::Membership>> Port::join(const os::SocketAddress& group) {
  return shm::join_group(device_->directory(), group, sender_.address);
}

std::unique_ptr<link::Flow> Port::connect_group(const os::SocketAddress& group) {
  return std::make_unique<shm::GroupOutbox>(sender_, group);
}

}  // namespace weft::device
