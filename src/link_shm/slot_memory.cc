// SPDX-License-Identifier: BSD-2-Clause
// Which parts of a slot have memory, and when do they get it?
#include "link_shm/slot_memory.h"

namespace weft::shm {

Status back_header(os::SharedFile& file, std::uint32_t slot) {
  if (Status ok = file.reserve(slot_at(slot), 4096); !ok) return ok;
  return file.reserve(slot_at(slot) + kSlotBytes - 4096, 4096);
}

Status back_basics(os::SharedFile& file, std::uint32_t slot, const Geometry& geometry) {
  if (Status ok = back_exchanges(file, slot, geometry, 0); !ok) return ok;
  return file.reserve(slot_at(slot) + geometry.cells_at(), geometry.cells * sizeof(Cell));
}

Status back_exchanges(os::SharedFile& file, std::uint32_t slot, const Geometry& geometry,
                      std::uint32_t exchange) {
  const std::uint64_t bytes = geometry.exchange_block() * sizeof(Rendezvous);
  const std::uint64_t block = exchange / geometry.exchange_block();
  return file.reserve(slot_at(slot) + kExchangesAt + block * bytes, bytes);
}

Status back_bulk(os::SharedFile& file, std::uint32_t slot, const Geometry& geometry) {
  return file.reserve(slot_at(slot) + geometry.bulk_at(), geometry.bulk_bytes);
}

void release_slot(os::SharedFile& file, std::uint32_t slot) {
  // The last page is what makes the file long enough.
  file.release(slot_at(slot) + kExchangesAt, kSlotBytes - kExchangesAt - 4096);
}

}  // namespace weft::shm
