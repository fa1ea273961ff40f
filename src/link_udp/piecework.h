// SPDX-License-Identifier: BSD-2-Clause
// How do packets of a flow travel that are larger than the way carries? (transport/pieces.h)
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "os/runtime_dir.h"
#include "trains.h"
#include "transport/pieces.h"

namespace weft::udp {

// What one end of a flow needs for that: nothing, until it is needed. One thread at a time.
class Piecework {
 public:
  // `share` is charged for packets that come in pieces, and outlives this.
  explicit Piecework(Budget::Share& share) : share_(share) {}

  // A packet of that end, which stands in trains.place(), leaves: whole, or where the way of that
  // path MTU does not carry it, in pieces. Those that the socket has no room for are lost, as a
  // network loses packets.
  void send(const transport::Settings& settings, std::span<const std::byte> packet,
            std::size_t path_mtu, Trains& trains, const Way& way) {
    if (transport::goes_whole(packet.size(), path_mtu)) return trains.add(way, packet.size());
    if (!cutter_) {
      const auto first = static_cast<std::uint32_t>(os::random_number());
      cutter_ = std::make_unique<transport::PacketCutter>(settings, first);
    }
    cutter_->cut(packet, path_mtu);
    while (cutter_->has_more()) {
      const std::span<std::byte> place = trains.place();
      if (place.empty()) return;
      trains.add(way, cutter_->next(place));
    }
  }

  // Takes in a piece for that end: PacketAssembler::take().
  std::optional<std::span<const std::byte>> take(std::span<const std::byte> payload) {
    if (!assembler_) assembler_ = std::make_unique<transport::PacketAssembler>(&share_);
    return assembler_->take(payload);
  }

  // Nothing has been going on: memory is given back.
  void rest() {
    if (cutter_) cutter_->rest();
    assembler_.reset();
  }

 private:
  Budget::Share& share_;
  std::unique_ptr<transport::PacketCutter> cutter_;
  std::unique_ptr<transport::PacketAssembler> assembler_;
};

}  // namespace weft::udp
