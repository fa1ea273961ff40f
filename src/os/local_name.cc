// SPDX-License-Identifier: BSD-2-Clause
// How does a process learn whether something exists in another process of its network namespace?
#include "os/local_name.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "direct_calls.h"

namespace weft::os {
namespace {

struct Address {
  sockaddr_un raw{};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&raw); }
};

// Empty for a name that cannot be one. The first byte of an abstract address is zero.
Address address_of(std::string_view name) {
  Address address;
  static_assert(1 + LocalName::kLongest <= sizeof address.raw.sun_path);
  if (name.empty() || name.size() > LocalName::kLongest) return address;
  address.raw.sun_family = AF_UNIX;
  std::memcpy(address.raw.sun_path + 1, name.data(), name.size());
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

Fd open_socket() { return Fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

}  // namespace

Result<LocalName> LocalName::claim(std::string_view name) {
  const Address address = address_of(name);
  if (address.length == 0) return Error{EINVAL, "no local name: " + std::string(name)};
  LocalName claimed;
  claimed.socket_ = open_socket();
  const Fd& socket = claimed.socket_;
  if (!socket.valid()) return last_error("cannot open a socket for a local name");
  // Before it has its name, so that nothing ever waits in it unread.
  if (::shutdown(socket.get(), SHUT_RD) != 0 ||
      ::bind(socket.get(), address.get(), address.length) != 0) {
    return last_error("cannot claim the local name " + std::string(name));
  }
  return claimed;
}

// A datagram socket may be connected anew any number of times; its peer hears nothing of it.
bool LocalNames::has(std::string_view name) {
  const Address address = address_of(name);
  if (address.length == 0) return false;
  if (!socket_.valid()) socket_ = open_socket();
  return socket_.valid() && direct::connect(socket_.get(), address.get(), address.length) == 0;
}

}  // namespace weft::os
