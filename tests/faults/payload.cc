// SPDX-License-Identifier: BSD-2-Clause
// Which bytes does a message consist of?
#include "payload.h"

#include <algorithm>
#include <cstring>

namespace weft::faults {

namespace {

std::uint64_t word(std::uint64_t stream, std::size_t offset) {
  const std::uint64_t mixed = (stream + 1) * 0x9e3779b97f4a7c15ULL + offset * 0xd1342543de82ef95ULL;
  return mixed ^ (mixed >> 29);
}

std::uint64_t stream_of(const PayloadHeader& header) {
  return header.sender * 1000003 + header.sequence;
}

}  // namespace

void fill_pattern(Bytes memory, std::uint64_t stream) {
  for (std::size_t at = 0; at < memory.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t value = word(stream, at);
    std::memcpy(memory.data() + at, &value, std::min(sizeof value, memory.size() - at));
  }
}

// `offset`, a multiple of 8, is where `memory` begins within the pattern.
bool is_pattern(ConstBytes memory, std::uint64_t stream, std::size_t offset) {
  for (std::size_t at = 0; at < memory.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t value = word(stream, offset + at);
    if (std::memcmp(memory.data() + at, &value, std::min(sizeof value, memory.size() - at)) != 0)
      return false;
  }
  return true;
}

void write_payload(Bytes memory, std::uint64_t sender, std::uint64_t sequence) {
  const PayloadHeader header{sender, sequence, memory.size()};
  std::memcpy(memory.data(), &header, sizeof header);
  fill_pattern(memory.subspan(sizeof header), stream_of(header));
}

bool read_payload(ConstBytes memory, PayloadHeader& header) {
  if (memory.size() < sizeof header) return false;
  std::memcpy(&header, memory.data(), sizeof header);
  return header.bytes == memory.size() &&
         is_pattern(memory.subspan(sizeof header), stream_of(header));
}

}  // namespace weft::faults
