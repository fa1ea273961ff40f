// SPDX-License-Identifier: BSD-2-Clause
// What is the kernel told beside the bytes of datagrams that it sends?
#pragma once

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "os/socket_address.h"

namespace weft::os {

// Control messages (cmsg(3)), the same for each message of a call: at most one of each kind.
class Ancillary {
 public:
  // Datagrams leave from that address.
  void add_source(const SocketAddress& from) {
    if (from.family() == AF_INET) {
      in_pktinfo info{};
      info.ipi_spec_dst = reinterpret_cast<const sockaddr_in*>(from.get())->sin_addr;
      add(IPPROTO_IP, IP_PKTINFO, info);
    } else {
      const auto* raw = reinterpret_cast<const sockaddr_in6*>(from.get());
      const in6_pktinfo info{.ipi6_addr = raw->sin6_addr, .ipi6_ifindex = raw->sin6_scope_id};
      add(IPPROTO_IPV6, IPV6_PKTINFO, info);
    }
  }
  // The bytes of a message are datagrams of so many bytes each.
  void add_segment(std::size_t segment) {
    add(SOL_UDP, UDP_SEGMENT, static_cast<std::uint16_t>(segment));
  }
  void put_into(msghdr& message) {
    message.msg_control = used_ == 0 ? nullptr : bytes_.data();
    message.msg_controllen = used_;
  }

 private:
  template <class Value>
  void add(int level, int type, const Value& value) {
    cmsghdr header{};
    header.cmsg_len = CMSG_LEN(sizeof value);
    header.cmsg_level = level;
    header.cmsg_type = type;
    std::byte* const place = bytes_.data() + used_;
    std::memset(place, 0, CMSG_SPACE(sizeof value));  // the kernel copies the padding, too
    std::memcpy(place, &header, sizeof header);
    std::memcpy(place + CMSG_LEN(0), &value, sizeof value);
    used_ += CMSG_SPACE(sizeof value);
  }
  // Only used_ bytes are ever read.
  alignas(cmsghdr) std::array<std::byte, 96> bytes_;
  std::size_t used_ = 0;
};

}  // namespace weft::os
