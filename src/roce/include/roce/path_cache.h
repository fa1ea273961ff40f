// SPDX-License-Identifier: BSD-2-Clause
// Which paths to peers were found a moment ago?
#pragma once

#include <cstddef>
#include <functional>
#include <unordered_map>

#include "base/result.h"
#include "os/clock.h"
#include "os/socket_address.h"
#include "os/udp_path.h"
#include "roce/address_hash.h"

namespace weft::roce {

// The paths from one endpoint to hosts. A lookup costs a socket and seven system calls, and many
// peers are of one host: a path that was found is valid for kValidity, which is how late a change
// of the routing table is noticed. One thread at a time.
class PathCache {
 public:
  // Finds the path to a peer: path_from(), bound to the address of the endpoint.
  using Lookup = std::function<Result<os::UdpPath>(const os::SocketAddress& peer)>;
  static constexpr std::chrono::milliseconds kValidity{20};
  static constexpr std::size_t kMaxHosts = 64;

  explicit PathCache(Lookup lookup) : lookup_(std::move(lookup)) {}

  // The path to a peer, whose port does not matter, at the time `now`, which never goes back.
  // Errors: those of the lookup; they are not kept.
  Result<os::UdpPath> find(const os::SocketAddress& peer, os::Time now) {
    os::SocketAddress host = peer;
    host.set_port(0);
    trim(now);
    if (const auto found = paths_.find(host); found != paths_.end()) return found->second;
    Result<os::UdpPath> path = lookup_(peer);
    if (path) {
      if (paths_.size() >= kMaxHosts) drop();
      if (paths_.empty()) expiry_ = now + kValidity;
      paths_.emplace(host, path.value());
    }
    return path;
  }

  // Gives the memory of expired paths back.
  void trim(os::Time now) {
    if (now >= expiry_) drop();
  }

 private:
  using Paths = std::unordered_map<os::SocketAddress, os::UdpPath, AddressHash>;

  void drop() {
    Paths().swap(paths_);
    expiry_ = os::Time::max();
  }

  const Lookup lookup_;
  Paths paths_;
  os::Time expiry_ = os::Time::max();  // of all paths
};

}  // namespace weft::roce
