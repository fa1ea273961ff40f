// SPDX-License-Identifier: BSD-2-Clause
// How does a process wake another that sleeps in poll(2)?
#include "os/waker.h"

#include <linux/filter.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "direct_calls.h"
#include "os/runtime_dir.h"

namespace weft::os {
namespace {

// A name that the kernel gives is a zero and five digits.
constexpr std::size_t kAddressBytes = 8;
constexpr std::size_t kTokenBytes = sizeof(WakerName) - kAddressBytes;
// More than the kernel keeps (net.unix.max_dgram_qlen, by default 10): rings without end must not
// hold the owner.
constexpr int kMostRings = 64;

// Any process of the network namespace can send to an abstract address. The kernel drops what does
// not begin with the token, before it wakes the owner. Where it takes no filter, every ring wakes.
void drop_rings_without(int socket, const char* token) {
  const auto word = [&](std::size_t at) {  // as the filter loads it: big-endian
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i)
      value = value << 8 | static_cast<std::uint8_t>(token[at + i]);
    return value;
  };
  sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, word(0), 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4),  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, word(4), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, kTokenBytes), BPF_STMT(BPF_RET | BPF_K, 0),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(steps)), steps};
  ::setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

}  // namespace

Result<Waker> Waker::create() {
  Waker waker;
  waker.socket_.reset(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!waker.socket_.valid()) return last_error("cannot open a wake-up socket");
  const std::uint64_t token = random_number();
  static_assert(sizeof token == kTokenBytes);
  std::memcpy(waker.name_.data() + kAddressBytes, &token, sizeof token);
  drop_rings_without(waker.socket_.get(), waker.name_.data() + kAddressBytes);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // Binding with no name makes the kernel choose a free abstract one (unix(7), autobind).
  if (::bind(waker.socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(sa_family_t)) !=
      0) {
    return last_error("cannot bind a wake-up socket");
  }
  socklen_t length = sizeof address;
  ::getsockname(waker.socket_.get(), reinterpret_cast<sockaddr*>(&address), &length);
  const std::size_t used = length - sizeof(sa_family_t);
  std::copy_n(address.sun_path, std::min(used, kAddressBytes), waker.name_.begin());
  return waker;
}

void Waker::silence() {
  char byte = 0;
  int rings = 0;
  while (rings < kMostRings && direct::recv(socket_.get(), &byte, 1, MSG_DONTWAIT) >= 0) ++rings;
}

void Waker::ring(std::span<const char> name) const {
  // Any other first byte would name a file.
  if (name.size() != sizeof(WakerName) || name[0] != '\0') return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::size_t used = kAddressBytes;
  std::copy_n(name.begin(), used, address.sun_path);
  while (used > 1 && address.sun_path[used - 1] == '\0') --used;
  // A full queue means that the owner has been rung and did not look yet: nothing is lost.
  direct::sendto(socket_.get(), name.data() + kAddressBytes, kTokenBytes,
                 MSG_DONTWAIT | MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address),
                 static_cast<socklen_t>(sizeof(sa_family_t) + used));
}

}  // namespace weft::os
