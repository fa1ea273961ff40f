// SPDX-License-Identifier: BSD-2-Clause
// How does the kernel drop a part of the datagrams of one kind before they reach a socket?
#include <linux/filter.h>
#include <sys/socket.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "os/udp_socket.h"

namespace weft::os {
namespace {

constexpr std::uint32_t kHeader = 8;  // a filter sees the UDP header, too

sock_filter statement(unsigned code, std::uint32_t value) {
  return {static_cast<std::uint16_t>(code), 0, 0, value};
}

// Goes on with the next step if it holds, or else skips `otherwise` steps.
sock_filter check(unsigned comparison, std::uint32_t value, std::size_t otherwise) {
  return {static_cast<std::uint16_t>(BPF_JMP | comparison | BPF_K), 0,
          static_cast<std::uint8_t>(otherwise), value};
}

}  // namespace

// A load from behind the end would drop the datagram: its length is checked first.
Status UdpSocket::thin_out(std::span<const DatagramWord> kind, unsigned halvings) const {
  if (halvings == 0) {
    int unused = 0;
    ::setsockopt(fd(), SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof unused);
    return {};
  }
  constexpr unsigned kMost = 31;
  std::uint32_t end = 0;
  for (const DatagramWord& each : kind) end = std::max(end, kHeader + each.offset + 4);
  // Behind these: the random number, its check, and the two ends.
  std::size_t left = 2 + 3 * kind.size() + 4;
  std::vector<sock_filter> steps;
  const auto step = [&](sock_filter next) {
    steps.push_back(next);
    --left;
  };
  // From the next step to the last but one, which lets the datagram pass.
  const auto to_pass = [&] { return left - 3; };
  step(statement(BPF_LD | BPF_W | BPF_LEN, 0));
  step(check(BPF_JGE, end, to_pass()));
  for (const DatagramWord& each : kind) {
    step(statement(BPF_LD | BPF_W | BPF_ABS, kHeader + each.offset));
    step(statement(BPF_ALU | BPF_AND | BPF_K, each.mask));
    step(check(BPF_JEQ, each.value, to_pass()));
  }
  step(statement(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(SKF_AD_OFF + SKF_AD_RANDOM)));
  const std::uint32_t most = std::numeric_limits<std::uint32_t>::max();
  step({BPF_JMP | BPF_JGT | BPF_K, 1, 0, most >> std::min(halvings, kMost)});
  steps.push_back(statement(BPF_RET | BPF_K, most));
  steps.push_back(statement(BPF_RET | BPF_K, 0));
  const sock_fprog program{static_cast<unsigned short>(steps.size()), steps.data()};
  if (::setsockopt(fd(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0) {
    return last_error("cannot attach a filter to the socket of " + address_.text());
  }
  return {};
}

}  // namespace weft::os
