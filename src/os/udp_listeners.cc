// SPDX-License-Identifier: BSD-2-Clause
// Is an address of this host bound to a socket?
//
// The kernel looks up the socket that would receive a packet (sock_diag(7)), as it does when one
// arrives: sockets that open or close meanwhile cause no mistake. Else it lists all sockets.
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <sys/socket.h>

#include <array>
#include <fstream>
#include <iomanip>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "udp_listeners.h"

#include "os/cancellation.h"

namespace weft::os {
namespace {

struct Question {
  nlmsghdr header{};
  inet_diag_req_v2 request{};
};

// For a packet from no address: a connected socket does not get it. The kernel calls the packet's
// source `src`.
Question question_about(const SocketAddress& address) {
  Question question;
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  inet_diag_req_v2& request = question.request;
  request.sdiag_family = static_cast<std::uint8_t>(address.family());
  request.sdiag_protocol = IPPROTO_UDP;
  request.idiag_states = ~0U;
  request.id.idiag_dport = htons(address.port());
  request.id.idiag_cookie[0] = request.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  const auto host = address.host_bytes();
  std::memcpy(request.id.idiag_dst, host.data(), host.size());
  request.id.idiag_if = address.scope();
  return question;
}

// How /proc/net/udp and udp6 write it: words as they lie in memory, and the port.
std::string as_listed(const SocketAddress& address) {
  const auto host = address.host_bytes();
  std::array<std::uint32_t, 4> words{};
  const std::size_t count = host.size() / sizeof words[0];
  std::memcpy(words.data(), host.data(), host.size());
  std::ostringstream text;
  text << std::hex << std::uppercase << std::setfill('0');
  for (std::size_t i = 0; i < count; ++i) text << std::setw(8) << words[i];
  text << ':' << std::setw(4) << address.port();
  return text.str();
}

// Columns of that file: number, address, peer's address, state (07: not connected), five more, and
// the number of the socket. Those of all sockets are put into `sockets`.
bool stands_in_list(const SocketAddress& address, std::vector<std::string>& sockets) {
  const CancellationOff off;
  const bool v6 = address.family() == AF_INET6;
  const std::string own = as_listed(address);
  const std::string any = std::string(v6 ? 32 : 8, '0') + own.substr(own.find(':'));
  std::ifstream list(v6 ? "/proc/net/udp6" : "/proc/net/udp");
  sockets.clear();
  for (std::string line; std::getline(list, line);) {
    std::istringstream columns(line);
    std::string number, local, peer, state, skipped;
    columns >> number >> local >> peer >> state;
    if ((local == own || local == any) && state == "07") return true;
    for (int i = 0; i < 5; ++i) columns >> skipped;
    columns >> sockets.emplace_back();
  }
  return false;
}

}  // namespace

// Its answers for an unused address and for a missing support of UDP sockets are the same.
std::optional<bool> found_by_kernel(const SocketAddress& address) {
  const CancellationOff off;
  const Fd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!fd.valid()) return std::nullopt;
  const Question question = question_about(address);
  if (::send(fd.get(), &question, sizeof question, 0) < 0) return std::nullopt;
  alignas(nlmsghdr) std::array<std::byte, 4096> answer;
  const ssize_t length = ::recv(fd.get(), answer.data(), answer.size(), MSG_DONTWAIT);
  nlmsghdr header{};
  if (length < static_cast<ssize_t>(sizeof header)) return std::nullopt;
  std::memcpy(&header, answer.data(), sizeof header);
  return header.nlmsg_type == SOCK_DIAG_BY_FAMILY;
}

namespace {

// Whether it finds a socket that is there.
bool kernel_knows() {
  sockaddr_in raw{};
  raw.sin_family = AF_INET;
  const Fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return false;
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&raw), sizeof raw) != 0) return false;
  auto bound = bound_to(fd);
  return bound && found_by_kernel(bound.value()).value_or(false);
}

}  // namespace

// The list comes in parts. When a socket of one part is closed meanwhile, the next part begins a
// line too late. The closed socket is missing in the next list, so two equal lists are complete.
bool is_listed(const SocketAddress& address) {
  constexpr int kTries = 8;
  std::vector<std::string> before;
  std::vector<std::string> sockets;
  for (int i = 0; i < kTries; ++i, before.swap(sockets)) {
    if (stands_in_list(address, sockets)) return true;
    if (i != 0 && sockets == before) return false;
  }
  return true;  // it may be so
}

bool has_listener(const SocketAddress& address) {
  const std::optional<bool> found = found_by_kernel(address);
  if (found.value_or(false)) return true;
  return !(found && kernel_knows()) && is_listed(address);
}

}  // namespace weft::os
