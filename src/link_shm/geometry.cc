// SPDX-License-Identifier: BSD-2-Clause
// How large are the rings of a slot, and where does each part of a slot lie?
#include "link_shm/geometry.h"

#include <bit>

#include "link_shm/layout.h"

namespace weft::shm {
namespace {

constexpr std::uint32_t kMinCells = 4;  // a quarter of the ring goes back to the sender at a time
constexpr std::uint32_t kMinBulkBytes = kSlotPage;

}  // namespace

// The parts cannot overflow the 64 bits of their sum.
std::optional<Geometry> check_geometry(const Geometry& shared) {
  const Geometry geometry{read_once(shared.cells), read_once(shared.rendezvous_records),
                          read_once(shared.bulk_bytes)};
  const bool powers = std::has_single_bit(geometry.cells) &&
                      std::has_single_bit(geometry.rendezvous_records) &&
                      std::has_single_bit(geometry.bulk_bytes);
  if (!powers || geometry.cells < kMinCells || geometry.bulk_bytes < kMinBulkBytes ||
      geometry.rendezvous_records > kMaxRendezvous || geometry.bytes() > kSlotBytes) {
    return std::nullopt;
  }
  return geometry;
}

}  // namespace weft::shm
