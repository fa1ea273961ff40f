// SPDX-License-Identifier: BSD-2-Clause
// How do the endpoints of a process share UDP port 4791, the only one that foreign peers send to?
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "os/udp_port.h"

namespace weft::udp {

class Doorkeeper;

// The doorkeepers of a process: one for each address that endpoints are bound to, from the first of
// them to the last. It holds port 4791 of that address if no other process does, and hands packets
// on to the endpoints that they name, of whatever process. Any thread.
class Doorkeepers {
 public:
  // The one for endpoints at `address`, whose port does not matter.
  std::shared_ptr<Doorkeeper> at(const os::SocketAddress& address);

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<Doorkeeper>> known_;  // by host
};

}  // namespace weft::udp
