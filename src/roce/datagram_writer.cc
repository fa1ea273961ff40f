// SPDX-License-Identifier: BSD-2-Clause
// How does a message become a packet of an unreliable datagram?
#include "roce/datagram_writer.h"

#include <cstring>

#include "os/user_memory.h"
#include "wire/packet.h"

namespace weft::roce {

std::optional<std::size_t> DatagramWriter::write(const DatagramHeader& header,
                                                 std::span<const LocalRange> sges,
                                                 std::size_t length, std::span<std::byte> out) {
  wire::Packet packet;
  packet.opcode = wire::opcode_of(
      wire::Transport::kUnreliableDatagram,
      header.has_data ? wire::Operation::kSendOnlyImmediate : wire::Operation::kSendOnly);
  packet.destination = header.destination;
  packet.psn = psn_;
  packet.queue_key = header.queue_key;
  packet.source = header.source;
  packet.immediate = static_cast<std::uint32_t>(header.data);
  const std::size_t headers = wire::header_bytes(packet);
  if (!os::gather(out.data() + headers, sges, length)) return std::nullopt;
  psn_ = psn_.after(1);
  wire::write_headers(packet, length, out.data());
  const std::size_t padding = wire::padding_of(length);
  std::memset(out.data() + headers + length, 0, padding);
  return headers + length + padding;
}

}  // namespace weft::roce
