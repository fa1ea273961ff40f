// SPDX-License-Identifier: BSD-2-Clause
// How does a port hear a multicast group?
#include "roce/group_socket.h"

#include <algorithm>
#include <cerrno>

#include "os/interfaces.h"
#include "os/udp_path.h"

namespace weft::roce {

namespace {

// By which groups are reached.
struct GroupExit {
  unsigned interface = 0;
  os::SocketAddress address;
};

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

Result<GroupExit> exit_from(const os::SocketAddress& own, const os::SocketAddress& group) {
  const auto interfaces = os::usable_interfaces();
  if (!interfaces) return interfaces.error();
  const Error unreachable{ENETUNREACH,
                          "no interface leads from " + own.text() + " to " + group.text()};
  if (group.family() != own.family()) return unreachable;
  const os::Interface* leads = exit_of(interfaces.value(), own, group);
  if (leads == nullptr) return unreachable;
  if (!own.is_any()) return GroupExit{leads->index, own};
  for (const os::InterfaceAddress& each : leads->addresses) {
    if (each.address.family() != group.family()) continue;
    GroupExit exit{leads->index, each.address};
    exit.address.set_port(own.port());
    return exit;
  }
  return unreachable;
}

}  // namespace

Result<std::unique_ptr<GroupSocket>> GroupSocket::join(PacketPort& port,
                                                       const os::SocketAddress& group,
                                                       std::uint64_t number) {
  const auto exit = exit_from(port.address(), group);
  if (!exit) return exit.error();
  auto socket = os::UdpSocket::join(group, exit.value().interface, {});
  if (!socket) return socket.error();
  // The receive set refers to the socket, which must not move from here on.
  std::unique_ptr<GroupSocket> joined(new GroupSocket(port, std::move(socket).value()));
  if (Status ok = port.listen(joined->socket_, number); !ok) return ok.error();
  return joined;
}

Result<os::SocketAddress> PacketPort::send_to_group(const os::SocketAddress& group, bool loops) {
  const auto exit = exit_from(address(), group);
  if (!exit) return exit.error();
  const Status leads = sides_[0]->socket.send_to_group_by(group, exit.value().interface, loops);
  if (!leads) return leads.error();
  return exit.value().address;
}

}  // namespace weft::roce
