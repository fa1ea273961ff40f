// SPDX-License-Identifier: BSD-2-Clause
// How does a queue pair for datagrams send and receive packets?
#include "datagram_link.h"

#include <algorithm>
#include <utility>

#include "grh.h"
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
    posted.to.set_port(roce::is_foreign(request.destination) ? wire::kUdpPort
                                                             : roce::port_of(request.destination));
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
      header, posted.work, parts_.memory, {posted.sges.data(), posted.sge_count}, place);
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

void DatagramLink::emit_requests(bool /*polls*/, Time /*now*/) {
  // Those of earlier trains have left.
  if (paths_.size() > 1) paths_.erase(paths_.begin(), paths_.end() - 1);
  while (!posted_.empty() && !failed_) {
    const Posted& first = posted_.front();
    if (first.refusal) {
      failed_ = true;
      end_first(*first.refusal);
    } else if (!send(first)) {
      return;
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
  const std::size_t bytes = wire::header_bytes(packet) + packet.payload.size() +
                            wire::padding_of(packet.payload.size()) + wire::kIcrcBytes;
  const auto grh = make_grh(arrival.from, arrival.to, bytes);
  work::MessageEnd end;
  end.has_immediate = (wire::layout_of(packet.opcode).headers & wire::kImmediate) != 0;
  end.immediate = packet.immediate;
  end.solicited = packet.solicited;
  if (!parts_.target.datagram(grh, packet.payload, end, packet.source)) {
    parts_.stats.add(Stat::kUnknownFlow);
  }
}

void DatagramLink::take_response(const roce::PacketArrival& /*arrival*/, Time /*now*/) {
  parts_.stats.add(Stat::kUnexpectedResponses);
}

}  // namespace weft::queue
