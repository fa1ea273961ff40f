// SPDX-License-Identifier: BSD-2-Clause
// How do tests get a network namespace in which port 4791 is free?
#pragma once

#include <functional>

#include "os/socket_address.h"

namespace weft::roce::testing {

// A host as its endpoints see it, in one family of addresses: two addresses and a wildcard.
struct OwnHost {
  os::SocketAddress address;
  os::SocketAddress another;
  os::SocketAddress wildcard;
};

// Runs `body` for IPv4 and for IPv6 in a process of its own, on a host of its own; skips where it
// may have none.
void on_own_host(const std::function<void(const OwnHost&)>& body);

// Another process on that host, for as long as this lives: it is killed then.
class OtherProcess {
 public:
  // Runs `body` there, which calls its argument when it is ready and never returns. Waits for that.
  explicit OtherProcess(const std::function<void(const std::function<void()>& ready)>& body);
  ~OtherProcess();
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;

 private:
  int number_ = -1;
};

}  // namespace weft::roce::testing
