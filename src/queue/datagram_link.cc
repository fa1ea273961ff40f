// SPDX-License-Identifier: BSD-2-Clause
// How does a queue pair for datagrams send and receive packets?
#include "datagram_link.h"

#include <algorithm>
#include <utility>

#include "grh.h"
#include "near_records.h"
#include "queue/address_handle.h"
#include "roce/route.h"
#include "target.h"
#include "transport/datagram.h"

namespace weft::queue {

using work::CompletionStatus;

namespace {

// A Q_Key with this bit stands for that of the sending queue pair (IBTA 10.2.5).
constexpr std::uint32_t kPrivilegedKey = 0x8000'0000;
// Paths that a train may refer to before it leaves.
constexpr std::size_t kMostPaths = 64;
// Owners of UDP numbers are looked for so often.
constexpr auto kLooks = std::chrono::milliseconds(100);
// A ring without room for so long belongs to a process that is stopped: datagrams are lost.
constexpr auto kPatience = std::chrono::milliseconds(10);

DatagramNote note_of(std::uint32_t queue_key, const os::SocketAddress& from,
                     const os::SocketAddress& to) {
  DatagramNote note{queue_key, from.family() == AF_INET6 ? 1U : 0U, {}, {}};
  std::ranges::copy(from.host_bytes(), note.from.begin());
  std::ranges::copy(to.host_bytes(), note.to.begin());
  return note;
}

// The bytes of a packet with that payload, behind its UDP header.
std::size_t length_of(const wire::Packet& packet, std::size_t payload) {
  return wire::header_bytes(packet) + payload + wire::padding_of(payload) + wire::kIcrcBytes;
}

}  // namespace

void DatagramLink::post(const QpSendRequest& request) {
  const work::Work& work = request.work;
  if (failed_ && posted_.empty()) {
    return parts_.sink.ended({work.cookie, CompletionStatus::kFlushed, 0});
  }
  Posted& posted = posted_.emplace_back();
  posted.work = work;
  posted.sge_count = std::min(work.sges.size(), work::kMaxWorkSges);
  std::copy_n(work.sges.begin(), posted.sge_count, posted.sges.begin());
  posted.work.sges = {};
  const bool own_key = (request.queue_key & kPrivilegedKey) != 0;
  posted.queue_key = own_key ? queue_key_ : request.queue_key;
  posted.destination = request.destination;
  if (request.refusal != CompletionStatus::kSuccess) {
    posted.refusal = request.refusal;
  } else if (work.length > parts_.path_mtu) {
    posted.refusal = CompletionStatus::kLocalLength;
  } else {
    posted.from = request.to->address().local;
    posted.from.set_port(roce::port_of(parts_.qpn));
    posted.to = request.to->address().remote;
    const bool foreign = roce::is_foreign(request.destination);
    posted.to.set_port(foreign ? wire::kUdpPort : roce::port_of(request.destination));
    posted.is_near = parts_.memory != nullptr && !foreign && request.to->is_near();
  }
}

void DatagramLink::end_first(CompletionStatus status) {
  void* const cookie = posted_.front().work.cookie;
  posted_.pop_front();
  parts_.sink.ended({cookie, status, 0});
}

void DatagramLink::flush() {
  failed_ = true;
  while (!posted_.empty()) end_first(CompletionStatus::kFlushed);
}

// Packets of one train have one path: the last one is used again where it fits.
const roce::Path& DatagramLink::path_for(const Posted& posted) {
  if (!paths_.empty()) {
    const roce::Path& last = *paths_.back();
    if (last.to == posted.to && last.from == posted.from) return last;
  }
  paths_.push_back(std::make_unique<roce::Path>(
      roce::Path{posted.from, posted.to, roce::route_between(posted.from, posted.to)}));
  return *paths_.back();
}

// Processes come and go: each that is kept holds files and memory.
void DatagramLink::forget_absent_hosts() {
  if (near_.size() < forgets_at_) return;
  std::erase_if(near_, [](const auto& each) {
    const std::shared_ptr<NearPeer>& peer = each.second.peer;
    return peer == nullptr || !peer->is_there();
  });
  forgets_at_ = std::max(kFewHosts, 2 * near_.size());
}

DatagramLink::NearHost& DatagramLink::near_host(std::uint16_t number, Time now) {
  if (!near_.contains(number)) forget_absent_hosts();
  const auto [found, is_new] = near_.try_emplace(number);
  NearHost& host = found->second;
  if (!is_new && now - host.checked_at < kLooks) return host;
  host.checked_at = now;
  if (host.peer != nullptr && host.peer->is_there()) return host;
  auto peer = parts_.memory->peer(number);
  host.peer = peer ? std::move(peer).value() : nullptr;
  return host;
}

DatagramLink::NearSend DatagramLink::send_near(const Posted& posted, Time now) {
  const NearHost& host = near_host(posted.to.port(), now);
  const auto opened = host.peer != nullptr ? host.peer->datagrams() : Error{};
  if (!opened) return NearSend::kElsewhere;
  NearPeer::Datagrams& there = *opened.value();
  const std::size_t length = sizeof(DatagramNote) + posted.work.length;
  const bool fits = length <= shm::kInlineBytes;
  std::byte* place = nullptr;
  if (there.ring.room_for(1)) place = there.ring.next_cell().bytes;
  if (place != nullptr && !fits) {
    if (!there.slot->memory().back_bulk()) return NearSend::kElsewhere;
    place = there.ring.bulk_room(length);
  }
  if (place == nullptr) {
    there.blocked_since = std::min(there.blocked_since, now);
    if (now - there.blocked_since < kPatience) return NearSend::kNoRoom;
    parts_.stats.add_shared(Stat::kDatagramsNoRoom);
    return NearSend::kYes;
  }
  there.blocked_since = Time::max();
  const DatagramNote note = note_of(posted.queue_key, posted.from, posted.to);
  std::memcpy(place, &note, sizeof note);
  if (!parts_.buffers.gather({posted.sges.data(), posted.sge_count}, 0,
                             {place + sizeof note, posted.work.length})) {
    failed_ = true;
    return NearSend::kYes;
  }
  const auto flags =
      static_cast<std::uint8_t>(kFirstPart | kLastPart | kUnreliable | flags_of(posted.work));
  const MessageHead head{posted.destination, parts_.qpn, posted.work.immediate, flags};
  if (!fits) there.ring.next_cell().bulk = there.ring.take_bulk(length, 0);
  publish(there.ring, head, fits ? shm::CellKind::kInline : shm::CellKind::kBulk,
          fits ? length : 0);
  if (parts_.capture != nullptr) {
    const wire::Route route = roce::route_between(posted.from, posted.to);
    NearRecords(parts_.capture, route, route)
        .sent(head, {posted.sges.data(), posted.sge_count}, posted.work.length);
  }
  return NearSend::kYes;
}

// False while the socket has no room.
bool DatagramLink::send(const Posted& posted) {
  roce::PacketOutput* const output = parts_.output(posted.to.family());
  if (output == nullptr) {  // as a network without a route: the datagram is lost
    end_first(CompletionStatus::kSuccess);
    return true;
  }
  const std::span<std::byte> place = output->place();
  if (place.empty()) return false;
  const transport::UdHeader header{parts_.qpn, posted.destination, posted.queue_key, next_};
  const std::size_t length = transport::write_datagram(
      header, posted.work, parts_.buffers, {posted.sges.data(), posted.sge_count}, place);
  if (length == 0) {
    failed_ = true;
    end_first(CompletionStatus::kLocalProtection);
    return true;
  }
  next_ = next_.after(1);
  output->add(path_for(posted), length);
  parts_.stats.add(Stat::kPacketsSent);
  if (paths_.size() == kMostPaths) output->flush();
  end_first(CompletionStatus::kSuccess);
  return true;
}

void DatagramLink::emit_requests(bool /*polls*/, Time now) {
  // Those of earlier trains have left.
  if (paths_.size() > 1) paths_.erase(paths_.begin(), paths_.end() - 1);
  while (!posted_.empty() && !failed_) {
    const Posted& first = posted_.front();
    if (first.refusal) {
      failed_ = true;
      end_first(*first.refusal);
      break;
    }
    const NearSend sent = first.is_near ? send_near(first, now) : NearSend::kElsewhere;
    if (sent == NearSend::kNoRoom) return;
    if (sent == NearSend::kYes) {
      end_first(failed_ ? CompletionStatus::kLocalProtection : CompletionStatus::kSuccess);
    } else {
      parts_.port.expect_packets(now);
      if (!send(first)) return;
    }
  }
  if (failed_) flush();
}

void DatagramLink::take_request(const roce::PacketArrival& arrival, Time /*now*/) {
  const wire::Packet& packet = arrival.packet;
  if (wire::transport_of(packet.opcode) != wire::Transport::kUnreliableDatagram ||
      packet.queue_key != queue_key_) {
    return parts_.stats.add(Stat::kUnknownFlow);
  }
  const std::size_t bytes = length_of(packet, packet.payload.size());
  work::MessageEnd end;
  end.has_immediate = (wire::layout_of(packet.opcode).headers & wire::kImmediate) != 0;
  end.immediate = packet.immediate;
  end.solicited = packet.solicited;
  if (!parts_.target.datagram(make_grh(arrival.from, arrival.to, bytes), packet.payload, end,
                              packet.source)) {
    parts_.stats.add(Stat::kUnknownFlow);
  }
}

// The routing header is that of the packet which this would have been.
std::uint16_t DatagramLink::take_message(std::uint32_t /*source*/, const MessageHead& head,
                                         std::span<const std::byte> bytes) {
  DatagramNote note;
  if (bytes.size() < sizeof note) return answer_of(AnswerKind::kInvalid);
  std::memcpy(&note, bytes.data(), sizeof note);
  const std::span<const std::byte> payload = bytes.subspan(sizeof note);
  const work::MessageEnd end = end_of(head);
  wire::Packet packet;
  packet.opcode = wire::opcode_of(
      wire::Transport::kUnreliableDatagram,
      end.has_immediate ? wire::Operation::kSendOnlyImmediate : wire::Operation::kSendOnly);
  const std::size_t length = length_of(packet, payload.size());
  const int family = note.is_ipv6 != 0 ? AF_INET6 : AF_INET;
  const auto from = os::SocketAddress::of_host(family, note.from.data(), roce::port_of(head.from));
  const auto to = os::SocketAddress::of_host(family, note.to.data(), roce::port_of(head.to));
  if (parts_.capture != nullptr) {
    const wire::Route route = roce::route_between(from, to);
    const work::Segment bytes_of_it{const_cast<std::byte*>(payload.data()), payload.size()};
    NearRecords(parts_.capture, route, route).arrived(head, {&bytes_of_it, 1}, payload.size());
  }
  if (note.queue_key != queue_key_ ||
      !parts_.target.datagram(make_grh(from, to, length), payload, end, head.from)) {
    parts_.stats.add(Stat::kUnknownFlow);
  }
  return 0;
}

void DatagramLink::take_response(const roce::PacketArrival& /*arrival*/, Time /*now*/) {
  parts_.stats.add(Stat::kUnexpectedResponses);
}

}  // namespace weft::queue
