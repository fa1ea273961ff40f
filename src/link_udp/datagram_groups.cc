// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint hear multicast groups, and how does it reach them?
#include "datagram_hub.h"
#include "roce/group_socket.h"
#include "roce/route.h"

namespace weft::udp {
namespace {

// A group that an endpoint hears.
class HeardGroup final : public link::Membership {
 public:
  explicit HeardGroup(std::unique_ptr<roce::GroupSocket> socket) : socket_(std::move(socket)) {}

 private:
  std::unique_ptr<roce::GroupSocket> socket_;
};

}  // namespace

Result<std::unique_ptr<link::Membership>> DatagramHub::join(const os::SocketAddress& group) {
  auto socket = roce::GroupSocket::join(*port_, group, link::group_number(group));
  if (!socket) return socket.error();
  return std::unique_ptr<link::Membership>(std::make_unique<HeardGroup>(std::move(socket).value()));
}

Result<std::unique_ptr<link::Flow>> DatagramHub::connect_group(const os::SocketAddress& group) {
  const auto own = port_->send_to_group(group, options_.loops_groups);
  if (!own) return own.error();
  const os::SocketAddress& from = own.value();
  auto target = std::make_shared<Target>(
      Target{{from, group, roce::route_between(from, group)}, wire::kMulticastQpn, {}});
  return std::unique_ptr<link::Flow>(std::make_unique<DatagramFlow>(*this, std::move(target)));
}

}  // namespace weft::udp
