// SPDX-License-Identifier: BSD-2-Clause
// How is an endpoint's mailbox found, and how does an endpoint present itself?
#pragma once

#include <string>

#include "link_shm/layout.h"
#include "os/socket_address.h"

namespace weft::shm {

// Path of the mailbox of the endpoint at `address`. An endpoint bound to 0.0.0.0 or :: has the
// mailbox of that address, whichever local address its peers use.
// Endpoints of libfabric and queue pairs may have the same address.
std::string mailbox_path(const std::string& directory, const os::SocketAddress& address,
                         link::Service service = link::Service::kReliableDatagram);

// The same port with the address 0.0.0.0 or ::.
os::SocketAddress any_host(const os::SocketAddress& address);

// The probe of this process.
Probe own_probe();

// True when `probe` is found in process `pid`: it is the process that says so, and its memory may
// be read and written. Otherwise errno says why not.
bool reaches(pid_t pid, const Probe& probe);

}  // namespace weft::shm
