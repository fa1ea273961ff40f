// SPDX-License-Identifier: BSD-2-Clause
// Which errors did the network report about datagrams, and to which peers were these sent?
#include <sys/socket.h>
#include <time.h>

// Needs <time.h>, and does not include it.
#include <linux/errqueue.h>

#include <array>
#include <cstring>

#include "os/udp_socket.h"

#include "direct_calls.h"

namespace weft::os {
namespace {

// The kernel has translated types and codes of ICMP and ICMPv6 into errno values of one meaning.
UdpError::What meaning_of(int code) {
  switch (code) {
    case ECONNREFUSED:
      return UdpError::What::kPortUnreachable;
    case EHOSTUNREACH:
    case EHOSTDOWN:
      return UdpError::What::kHostUnreachable;
    case ENETUNREACH:
    case ENONET:
      return UdpError::What::kNetUnreachable;
    case EMSGSIZE:
      return UdpError::What::kTooBig;
    default:
      return UdpError::What::kOther;
  }
}

bool find_report(msghdr& message, sock_extended_err& report) {
  for (const cmsghdr* control = CMSG_FIRSTHDR(&message); control != nullptr;
       control = CMSG_NXTHDR(&message, const_cast<cmsghdr*>(control))) {
    const bool v4 = control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_RECVERR;
    const bool v6 = control->cmsg_level == IPPROTO_IPV6 && control->cmsg_type == IPV6_RECVERR;
    if ((!v4 && !v6) || control->cmsg_len < CMSG_LEN(sizeof report)) continue;
    std::memcpy(&report, CMSG_DATA(control), sizeof report);
    // What this host refused at once, send() has told already.
    return report.ee_origin == SO_EE_ORIGIN_ICMP || report.ee_origin == SO_EE_ORIGIN_ICMP6;
  }
  return false;
}

}  // namespace

std::optional<UdpError> UdpSocket::next_error() const {
  if (inherited()) return std::nullopt;
  for (;;) {
    sockaddr_in6 peer{};
    alignas(cmsghdr) std::array<std::byte, 512> control;
    UdpError error;
    msghdr message{};
    message.msg_name = &peer;
    message.msg_namelen = sizeof peer;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    if (direct::recvmsg(fd(), &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return std::nullopt;
    sock_extended_err report{};
    const auto to = SocketAddress::parse(&peer, message.msg_namelen);
    if (!find_report(message, report) || !to) continue;
    error.peer = to.value();
    error.code = static_cast<int>(report.ee_errno);
    error.what = meaning_of(error.code);
    if (error.what == UdpError::What::kTooBig) error.path_mtu = report.ee_info;
    return error;
  }
}

}  // namespace weft::os
