// SPDX-License-Identifier: BSD-2-Clause
// How do many datagrams arrive by one system call, each with what its IP header said?
#include <linux/sock_diag.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "direct_calls.h"
#include "os/udp_batch.h"
#include "os/udp_socket.h"

namespace weft::os {
namespace {

// No UDP datagram is larger, and no joined ones are.
constexpr std::size_t kBuffer = 65'536;
// Buffers do not start at the same set of the processor's caches.
constexpr std::size_t kStride = kBuffer + 320;
// An error that came back for some datagram fails the next call, once; more may follow it.
constexpr int kReceiveTries = 4;
constexpr unsigned kFewInARow = 2;

// True for errors of the call itself: they came from no peer.
bool is_of_call(int error) {
  return error == EBADF || error == ENOTSOCK || error == EFAULT || error == EINVAL ||
         error == ENOMEM;
}

template <class Value>
Value value_of(const cmsghdr* header) {
  Value value{};
  std::memcpy(&value, CMSG_DATA(header),
              std::min<std::size_t>(sizeof value, header->cmsg_len - CMSG_LEN(0)));
  return value;
}

SocketAddress address_v6(const in6_pktinfo& info, std::uint16_t port) {
  const bool scoped = IN6_IS_ADDR_LINKLOCAL(&info.ipi6_addr);
  return SocketAddress::of_host(AF_INET6, &info.ipi6_addr, port, scoped ? info.ipi6_ifindex : 0);
}

void read_control(const cmsghdr* header, std::uint16_t port, ReceivedDatagrams& arrival) {
  if (header->cmsg_level == IPPROTO_IP && header->cmsg_type == IP_PKTINFO) {
    const auto info = value_of<in_pktinfo>(header);
    arrival.to = SocketAddress::of_host(AF_INET, &info.ipi_addr, port);
  } else if (header->cmsg_level == IPPROTO_IP && header->cmsg_type == IP_TOS) {
    arrival.traffic_class = value_of<std::uint8_t>(header);
  } else if (header->cmsg_level == IPPROTO_IPV6 && header->cmsg_type == IPV6_PKTINFO) {
    arrival.to = address_v6(value_of<in6_pktinfo>(header), port);
  } else if (header->cmsg_level == IPPROTO_IPV6 && header->cmsg_type == IPV6_TCLASS) {
    arrival.traffic_class = static_cast<std::uint8_t>(value_of<int>(header));
  } else if (header->cmsg_level == SOL_UDP && header->cmsg_type == UDP_GRO) {
    const int segment = value_of<int>(header);
    if (segment > 0) arrival.segment = std::min<std::size_t>(segment, arrival.bytes.size());
  }
}

}  // namespace

UdpBatch::UdpBatch(std::size_t arrivals)
    : slots_(std::max<std::size_t>(arrivals, 1)),
      messages_(slots_.size()),
      arrivals_(slots_.size()),
      filled_(slots_.size()) {
  // Not initialised, so that pages exist only where something arrived.
  bytes_ = std::make_unique_for_overwrite<std::byte[]>(slots_.size() * kStride);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    slot.sge = {bytes_.get() + i * kStride, kBuffer};
    msghdr& header = messages_[i].msg_hdr;
    header.msg_name = &slot.sender;
    header.msg_iov = &slot.sge;
    header.msg_iovlen = 1;
    header.msg_control = slot.control.data();
  }
}

void UdpBatch::clear() {
  for (std::size_t i = 0; i < filled_; ++i) {
    messages_[i].msg_hdr.msg_namelen = sizeof slots_[i].sender;
    messages_[i].msg_hdr.msg_controllen = slots_[i].control.size();
  }
  filled_ = 0;
  count_ = 0;
  errors_waiting_ = false;
}

void UdpBatch::take(std::size_t filled, const SocketAddress& bound) {
  filled_ = filled;
  for (std::size_t i = 0; i < filled; ++i) {
    msghdr& header = messages_[i].msg_hdr;
    const auto from = SocketAddress::parse(&slots_[i].sender, header.msg_namelen);
    if ((header.msg_flags & MSG_TRUNC) != 0 || !from) {
      ++truncated_;
      continue;
    }
    ReceivedDatagrams& arrival = arrivals_[count_++];
    arrival.from = from.value();
    arrival.to = bound;
    arrival.traffic_class = 0;
    arrival.bytes = {bytes_.get() + i * kStride, messages_[i].msg_len};
    arrival.segment = arrival.bytes.size();
    for (const cmsghdr* control = CMSG_FIRSTHDR(&header); control != nullptr;
         control = CMSG_NXTHDR(&header, const_cast<cmsghdr*>(control))) {
      read_control(control, bound.port(), arrival);
    }
  }
}

// Where one message comes now and then, asking for many costs a fifth more than asking for one; so
// many are asked for where the calls before have found something, too.
int UdpBatch::fill(int fd) {
  const ssize_t first = direct::recvmsg(fd, &messages_[0].msg_hdr, MSG_DONTWAIT);
  if (first < 0) {
    in_a_row_ = 0;
    return -1;
  }
  messages_[0].msg_len = static_cast<unsigned>(first);
  if (++in_a_row_ <= kFewInARow || messages_.size() == 1) return 1;
  const int more = direct::recvmmsg(fd, &messages_[1], static_cast<unsigned>(messages_.size() - 1),
                                    MSG_DONTWAIT);
  if (more < 0 && errno != EAGAIN) errors_waiting_ = true;
  if (more <= 0) in_a_row_ = 0;
  return 1 + std::max(more, 0);
}

int UdpBatch::receive(int fd, const SocketAddress& bound) {
  clear();
  for (int i = 0; i < kReceiveTries; ++i) {
    const int filled = fill(fd);
    if (filled >= 0) {
      take(static_cast<std::size_t>(filled), bound);
      return 0;
    }
    if (errno == EAGAIN) return 0;
    if (is_of_call(errno)) return errno;
    errors_waiting_ = true;
  }
  return 0;
}

std::uint64_t UdpSocket::dropped() const {
  std::array<std::uint32_t, SK_MEMINFO_VARS> counts{};
  socklen_t length = sizeof counts;
  const int failed = ::getsockopt(fd(), SOL_SOCKET, SO_MEMINFO, counts.data(), &length);
  const bool known = failed == 0 && length > SK_MEMINFO_DROPS * sizeof counts[0];
  return known ? counts[SK_MEMINFO_DROPS] : 0;
}

int UdpSocket::receive(UdpBatch& batch) const {
  if (inherited()) [[unlikely]] {
    batch.clear();
    return 0;
  }
  return batch.receive(fd(), address_);
}

}  // namespace weft::os
