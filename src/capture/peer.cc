// SPDX-License-Identifier: BSD-2-Clause
// What is remembered of an endpoint that the recorded one speaks to?
#include "peer.h"

#include "base/slices.h"
#include "os/user_memory.h"

namespace weft::capture {

Dialogue& Recorder::Peer::have(std::unique_ptr<Dialogue>& dialogue, bool asks) {
  if (dialogue == nullptr) dialogue = std::make_unique<Dialogue>(ends_, asks);
  return *dialogue;
}

void Recorder::Peer::part(bool mine) {
  auto& dialogue = mine ? mine_ : theirs_;
  if (dialogue != nullptr) dialogue->part();
  dialogue.reset();
}

void Recorder::Peer::datagram(bool sent, std::span<const LocalRange> pieces, bool has_data,
                              std::uint64_t data) {
  const std::size_t length = total_length(pieces);
  if (length > wire::kMaxPathMtu) return;
  std::byte bytes[wire::kMaxPathMtu];
  if (!os::gather(bytes, pieces, length)) return;
  const auto operation =
      has_data ? wire::Operation::kSendOnlyImmediate : wire::Operation::kSendOnly;
  wire::Packet packet;
  packet.opcode = opcode_of(wire::Transport::kUnreliableDatagram, operation);
  packet.destination = (sent ? ends_.peers : ends_.mine).queue_pair;
  packet.queue_key = (sent ? ends_.peers : ends_.mine).queue_key;
  packet.source = (sent ? ends_.mine : ends_.peers).queue_pair;
  packet.immediate = static_cast<std::uint32_t>(data);
  record_datagram(ends_, sent, packet, {bytes, length});
}

void Recorder::Peer::group_datagram(const os::SocketAddress& group,
                                    std::span<const LocalRange> pieces, bool has_data,
                                    std::uint64_t data) {
  const End me = ends_.mine;
  ends_.mine.address = group;
  ends_.mine.queue_pair = wire::kMulticastQpn;
  datagram(false, pieces, has_data, data);
  ends_.mine = me;
}

}  // namespace weft::capture
