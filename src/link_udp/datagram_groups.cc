// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint hear multicast groups, and how does it reach them?
#include <algorithm>
#include <cerrno>

#include "datagram_hub.h"
#include "roce/route.h"
#include "wire/packet.h"

namespace weft::udp {

// A socket that hears a group for one endpoint.
class HeardGroup final : public link::Membership {
 public:
  HeardGroup(DatagramHub& hub, os::UdpSocket socket) : hub_(hub), socket_(std::move(socket)) {}
  ~HeardGroup() override {
    hub_.dropped_before_ += socket_.dropped();
    hub_.receive_set_.remove(socket_);
    hub_.wake_.remove(socket_.fd());
  }
  Status listen(const os::SocketAddress& group) {
    if (Status ok = hub_.wake_.add(socket_.fd()); !ok) return ok;
    hub_.receive_set_.add({&socket_, link::group_number(group)});
    return {};
  }

 private:
  DatagramHub& hub_;
  os::UdpSocket socket_;
};

namespace {

// The interface that an address belongs to; of a wildcard the one that leads to the group, or any
// one that has groups, the loopback last.
const os::Interface* exit_of(const std::vector<os::Interface>& interfaces,
                             const os::SocketAddress& own, const os::SocketAddress& group) {
  if (!own.is_any()) return os::owner_of(interfaces, own);
  const auto source = os::source_towards(group);
  const os::Interface* leads = source ? os::owner_of(interfaces, source.value()) : nullptr;
  if (leads != nullptr) return leads;
  const auto any = std::ranges::find_if(interfaces, &os::Interface::multicast);
  return any == interfaces.end() ? nullptr : &*any;
}

}  // namespace

Result<DatagramHub::Exit> DatagramHub::exit_to(const os::SocketAddress& group) const {
  const auto interfaces = os::usable_interfaces();
  if (!interfaces) return interfaces.error();
  const os::SocketAddress& own = socket_.address();
  const Error nowhere{ENETUNREACH, "no interface leads from " + own.text() + " to " + group.text()};
  if (group.family() != own.family()) return nowhere;
  const os::Interface* leads = exit_of(interfaces.value(), own, group);
  if (leads == nullptr) return nowhere;
  if (!own.is_any()) return Exit{leads->index, own};
  for (const os::InterfaceAddress& each : leads->addresses) {
    if (each.address.family() != group.family()) continue;
    Exit exit{leads->index, each.address};
    exit.address.set_port(own.port());
    return exit;
  }
  return nowhere;
}

Result<std::unique_ptr<link::Membership>> DatagramHub::join(const os::SocketAddress& group) {
  const auto exit = exit_to(group);
  if (!exit) return exit.error();
  auto socket = os::UdpSocket::join(group, exit.value().interface, {});
  if (!socket) return socket.error();
  auto heard = std::make_unique<HeardGroup>(*this, std::move(socket).value());
  if (Status ok = heard->listen(group); !ok) return ok.error();
  return std::unique_ptr<link::Membership>(std::move(heard));
}

Result<std::unique_ptr<link::Flow>> DatagramHub::connect_group(const os::SocketAddress& group) {
  const auto exit = exit_to(group);
  if (!exit) return exit.error();
  const Status leads =
      socket_.send_to_group_by(group, exit.value().interface, options_.loops_groups);
  if (!leads) return leads.error();
  const os::SocketAddress& from = exit.value().address;
  auto target = std::make_shared<Target>(
      Target{{from, group, roce::route_between(from, group)}, wire::kMulticastQpn, {}});
  return std::unique_ptr<link::Flow>(std::make_unique<DatagramFlow>(*this, std::move(target)));
}

}  // namespace weft::udp
