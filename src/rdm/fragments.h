// SPDX-License-Identifier: BSD-2-Clause
// How do packets of a flow travel that are larger than the path carries? (transport/fragments.h)
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "rdm/host.h"
#include "transport/fragments.h"

namespace weft::rdm {

// What one end of a flow needs for that: nothing, until it is needed. One thread at a time.
class Fragments {
 public:
  // `share` is charged for packets that come in fragments, and outlives this.
  explicit Fragments(Budget::Share& share) : share_(share) {}

  // A packet of that end, which stands in Host::place(), leaves: whole, or where a path of that
  // path MTU does not carry it, in fragments. Those that the socket has no room for are lost, as a
  // network loses packets.
  void send(const transport::Settings& settings, std::span<const std::byte> packet,
            std::size_t path_mtu, Host& host, const roce::Path& path) {
    if (transport::goes_whole(packet.size(), path_mtu)) return host.add(path, packet.size());
    if (!fragmenter_) {
      const auto first = static_cast<std::uint32_t>(host.random());
      fragmenter_ = std::make_unique<transport::Fragmenter>(settings, first);
    }
    fragmenter_->cut(packet, path_mtu);
    while (fragmenter_->has_more()) {
      const std::span<std::byte> place = host.place();
      if (place.empty()) return;
      host.add(path, fragmenter_->next(place));
    }
  }

  // Takes in a fragment for that end: Reassembler::take().
  std::optional<std::span<const std::byte>> take(std::span<const std::byte> payload) {
    if (!reassembler_) reassembler_ = std::make_unique<transport::Reassembler>(&share_);
    return reassembler_->take(payload);
  }

  // Nothing has been going on: memory is given back.
  void trim() {
    if (fragmenter_) fragmenter_->trim();
    reassembler_.reset();
  }

 private:
  Budget::Share& share_;
  std::unique_ptr<transport::Fragmenter> fragmenter_;
  std::unique_ptr<transport::Reassembler> reassembler_;
};

}  // namespace weft::rdm
