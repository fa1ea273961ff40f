// SPDX-License-Identifier: BSD-2-Clause
// How does a process wake another that sleeps in poll(2)?
#include "os/bell.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>

namespace weft::os {

Result<Bell> Bell::create() {
  Bell bell;
  bell.socket_.reset(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!bell.socket_.valid()) return last_error("cannot open a wake-up socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // Binding with no name makes the kernel choose a free abstract one (unix(7), autobind).
  if (::bind(bell.socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(sa_family_t)) != 0) {
    return last_error("cannot bind a wake-up socket");
  }
  socklen_t length = sizeof address;
  ::getsockname(bell.socket_.get(), reinterpret_cast<sockaddr*>(&address), &length);
  const std::size_t used = length - sizeof(sa_family_t);
  std::copy_n(address.sun_path, std::min(used, bell.name_.size()), bell.name_.begin());
  return bell;
}

void Bell::silence() {
  char byte = 0;
  while (::recv(socket_.get(), &byte, 1, MSG_DONTWAIT) >= 0) {
  }
}

void Bell::ring(std::span<const char> name) const {
  // Any other first byte would name a file.
  if (name.empty() || name[0] != '\0') return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::size_t used = std::min(name.size(), sizeof address.sun_path);
  std::copy_n(name.begin(), used, address.sun_path);
  while (used > 1 && address.sun_path[used - 1] == '\0') --used;
  // A full queue means that the owner has been rung and did not look yet: nothing is lost.
  ::sendto(socket_.get(), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL,
           reinterpret_cast<const sockaddr*>(&address),
           static_cast<socklen_t>(sizeof(sa_family_t) + used));
}

}  // namespace weft::os
