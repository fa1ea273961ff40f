// SPDX-License-Identifier: BSD-2-Clause
// Which parts of a slot have memory, and when do they get it?
#include "link_shm/slot_memory.h"

namespace weft::shm {
namespace {

constexpr std::uint64_t kBlockBytes = kExchangeBlock * sizeof(Rendezvous);
static_assert(kBlockBytes % 4096 == 0 && kExchanges % kExchangeBlock == 0);

}  // namespace

Status back_header(os::SharedFile& file, std::uint32_t slot) {
  if (Status ok = file.reserve(slot_at(slot), 4096); !ok) return ok;
  return file.reserve(slot_at(slot) + kSlotBytes - 4096, 4096);
}

Status back_basics(os::SharedFile& file, std::uint32_t slot) {
  if (Status ok = back_exchanges(file, slot, 0); !ok) return ok;
  return file.reserve(slot_at(slot) + kCellsAt, kCells * sizeof(Cell));
}

Status back_exchanges(os::SharedFile& file, std::uint32_t slot, std::uint32_t exchange) {
  const std::uint64_t block = exchange / kExchangeBlock;
  return file.reserve(slot_at(slot) + kExchangesAt + block * kBlockBytes, kBlockBytes);
}

Status back_bulk(os::SharedFile& file, std::uint32_t slot) {
  return file.reserve(slot_at(slot) + kBulkAt, kBulkBytes);
}

void release_slot(os::SharedFile& file, std::uint32_t slot) {
  // The last page is what makes the file long enough.
  file.release(slot_at(slot) + kExchangesAt, kSlotBytes - kExchangesAt - 4096);
}

}  // namespace weft::shm
