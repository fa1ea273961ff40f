// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint read the management datagrams that lie in its mailbox?
#include "link_shm/mad_reader.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

namespace weft::shm {

unsigned MadReader::take(std::uint64_t cells) {
  if (cells == 0 || !sink_) return 0;
  std::array<std::pair<std::uint64_t, MadCell*>, kMads> found;
  std::size_t count = 0;
  auto* const all = memory_.at<MadCell>(kMadsAt);
  for (; cells != 0; cells &= cells - 1) {
    MadCell& cell = all[std::countr_zero(cells)];
    if (cell.turn.load(std::memory_order_acquire) % 2 == 0) continue;
    found.at(count++) = {read_once(cell.order), &cell};
  }
  std::sort(found.begin(), found.begin() + count);
  for (std::size_t i = 0; i < count; ++i) take_one(*found.at(i).second);
  return static_cast<unsigned>(count);
}

// The sender may write on: what is handed over is a copy. The cell is free before: a datagram that
// the sink sends in answer may need it.
void MadReader::take_one(MadCell& cell) {
  const std::uint64_t turn = cell.turn.load(std::memory_order_acquire);
  std::array<std::byte, kLongestMad> bytes;
  unsigned char address[sizeof cell.address];
  const std::size_t length = std::min(read_once(cell.length), kLongestMad);
  std::memcpy(bytes.data(), cell.bytes, length);
  std::memcpy(address, cell.address, sizeof address);
  const auto from = os::SocketAddress::parse(address, sizeof address);
  cell.turn.store(turn + 1, std::memory_order_release);
  sink_(from ? from.value() : os::SocketAddress(), {bytes.data(), length});
}

}  // namespace weft::shm
