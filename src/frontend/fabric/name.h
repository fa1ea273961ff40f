// SPDX-License-Identifier: BSD-2-Clause
// How do addresses and connection data go between libfabric's calls and weft's types? fi_cm(3)
#pragma once

#include <rdma/fabric.h>

#include <cstddef>
#include <span>

#include "base/result.h"
#include "boundary.h"
#include "os/udp_port.h"

namespace weft::fabric {

// The address that an endpoint opened with `info` is to have: its source, else any of its family.
// Errors: EINVAL.
Result<os::SocketAddress> wanted_address(const fi_info& info);

// The address in a sockaddr whose length follows from its family. Errors: EINVAL.
Result<os::SocketAddress> address_at(const void* bytes);
// Bytes of such a sockaddr.
std::size_t address_length(const void* bytes);

// By which address peers reach what is bound to `port`: a wildcard host is replaced by a usable
// one.
os::SocketAddress name_of(const os::UdpPort& port);
// By which address a requester that sent a request to the host of `asked` (or empty: not known)
// reaches what is bound to `port`: that host, if the port has each one of its family.
os::SocketAddress name_of(const os::UdpPort& port, os::SocketAddress asked);

// Answers fi_getname(3) and fi_getpeer(3): as much as fits, and the whole length in `*length`.
// Errors: -FI_EINVAL, -FI_ETOOSMALL.
int give_address(const os::SocketAddress& address, void* buffer, std::size_t* length);

// fi_getname(3) of an endpoint, which may have no address any more: -FI_EADDRNOTAVAIL then.
template <class Object>
int get_name(fid* fid, void* buffer, std::size_t* length) {
  return at_c_border([&] {
    const os::SocketAddress name = Object::from(fid).public_name();
    return name.length() == 0 ? -FI_EADDRNOTAVAIL : give_address(name, buffer, length);
  });
}

// fi_setname(3) of an endpoint.
template <class Object>
int set_name(fid* fid, void* bytes, std::size_t length) {
  return at_c_border([&] {
    const auto address = os::SocketAddress::parse(bytes, length);
    return address ? Object::from(fid).rename(address.value()) : -FI_EINVAL;
  });
}

// Puts an address into an fi_info, which owns it. False without memory.
bool write_address(const os::SocketAddress& address, void*& bytes, std::size_t& length);

// A program's connection data.
std::span<const std::byte> private_data(const void* data, std::size_t length);

// Answers fi_getopt(3) with an option of type size_t. Errors: -FI_EINVAL, -FI_ETOOSMALL.
int give_option(std::size_t option, void* value, std::size_t* length);
int give_option(int option, void* value, std::size_t* length);

}  // namespace weft::fabric
