// SPDX-License-Identifier: BSD-2-Clause
// Which established connections has each peer that is watched?
#include "peers.h"

#include <tuple>

#include "entries.h"

namespace weft::cm {

WatchedPeer& WatchedPeers::get(const Remote& remote, std::uint64_t guid) {
  for (WatchedPeer* peer : at(remote)) {
    if (peer->guid == guid) return *peer;
  }
  WatchedPeer& peer =
      peers_.emplace(std::piecewise_construct, std::tuple(hash(remote)), std::tuple())->second;
  peer.remote = remote;
  peer.guid = guid;
  peer.number = ++last_;
  return peer;
}

std::vector<WatchedPeer*> WatchedPeers::at(const Remote& remote) {
  std::vector<WatchedPeer*> found;
  const auto [first, last] = peers_.equal_range(hash(remote));
  for (auto each = first; each != last; ++each) {
    if (each->second.remote == remote) found.push_back(&each->second);
  }
  return found;
}

void WatchedPeers::remove(WatchedPeer& peer) {
  const auto [first, last] = peers_.equal_range(hash(peer.remote));
  for (auto each = first; each != last; ++each) {
    if (&each->second != &peer) continue;
    peers_.erase(each);
    return;
  }
}

std::uint64_t WatchedPeers::hash(const Remote& remote) const {
  return mix(hash_of(remote.address, seed_) ^ remote.address.port());
}

}  // namespace weft::cm
