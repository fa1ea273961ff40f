// SPDX-License-Identifier: BSD-2-Clause
// Which packets would requests of one endpoint to another have been, and the answers?
#include "dialogue.h"

#include <algorithm>
#include <chrono>

#include "base/slices.h"
#include "os/runtime_dir.h"
#include "os/user_memory.h"
#include "rdm/user_buffers.h"

namespace weft::capture {

using work::Segment;
using work::Work;
using work::WorkKind;

namespace {

Segment segment_of(const LocalRange& buffer) { return {buffer.base, buffer.length}; }

std::uint32_t draw_nonzero() { return static_cast<std::uint32_t>(os::random_number()) | 1; }

transport::Settings settings_to(const End& from, const End& to, std::uint32_t context,
                                std::size_t path_mtu) {
  transport::Settings settings;
  settings.kind = wire::Transport::kReliableDatagram;
  settings.destination = to.queue_pair;
  settings.source = from.queue_pair;
  settings.context = context;
  settings.queue_key = to.queue_key;
  settings.path_mtu = path_mtu;
  settings.selective = true;
  return settings;
}

}  // namespace

Dialogue::Dialogue(Ends& ends, bool asks)
    : ends_(ends),
      asks_(asks),
      asker_(asks ? ends.mine : ends.peers),
      answerer_(asks ? ends.peers : ends.mine),
      connection_ids_{draw_nonzero(), draw_nonzero()},
      contexts_{draw_nonzero() & Psn::kMask, draw_nonzero() & Psn::kMask},
      scratch_(transport::kReadPart * ends.path_mtu) {
  introduce();
}

// The ends agree upon a flow as those of link_udp do.
void Dialogue::introduce() {
  rdm::Introduction introductions[2];
  const End* const ends[] = {&asker_, &answerer_};
  for (std::size_t i = 0; i < 2; ++i) {
    introductions[i].connection_id = connection_ids_[i];
    introductions[i].context = contexts_[i];
    introductions[i].station = ends[i]->station;
    introductions[i].queue_pair = ends[i]->queue_pair;
    introductions[i].queue_key = ends[i]->queue_key;
    introductions[i].path_mtu = ends_.path_mtu;
  }
  const Psn first(draw_nonzero());
  greet(rdm::ConnReq{introductions[0], asker_.address, ends_.service}, true);
  greet(rdm::ConnRep{connection_ids_[0], introductions[1], first}, false);
  auto asking = settings_to(asker_, answerer_, contexts_[1], ends_.path_mtu);
  asking.first_sent = first;
  auto answering = settings_to(answerer_, asker_, contexts_[0], ends_.path_mtu);
  answering.first_expected = first;
  requester_.emplace(asking, static_cast<work::WorkSink&>(*this), rdm::user_buffers());
  responder_.emplace(answering, static_cast<work::Target&>(*this));
}

void Dialogue::greet(const rdm::ConnMessage& message, bool by_asker) {
  wire::Packet packet;
  packet.opcode = opcode_of(wire::Transport::kUnreliableDatagram, wire::Operation::kSendOnly);
  packet.destination = packet.source = wire::kCmQpn;
  packet.queue_key = wire::kCmQueueKey;
  record_datagram(ends_, by_asker == asks_, packet, rdm::write_conn_message(message));
}

void Dialogue::part() {
  greet(rdm::Disconnect{false, connection_ids_[0], connection_ids_[1]}, true);
  greet(rdm::Disconnect{true, connection_ids_[1], connection_ids_[0]}, false);
}

void Dialogue::message(const rdm::MessageHeader& header, std::span<const LocalRange> pieces) {
  std::byte head[rdm::kMessageHeader];
  rdm::write_header(header, head);
  Segment all[work::kMaxPieces] = {{head, sizeof head}};
  const auto some = pieces.first(std::min(pieces.size(), work::kMaxPieces - 1));
  std::transform(some.begin(), some.end(), all + 1, segment_of);
  Work work;
  work.pieces = {all, 1 + some.size()};
  work.length = sizeof head + total_length(some);
  post(work);
}

std::uint32_t Dialogue::wire_key(RegionKey key) {
  return aliases_.wire_key(key, [this](const rdm::MessageHeader& header) { message(header); });
}

void Dialogue::announce(bool write, std::span<const RemoteRange> remote) {
  if (!rdm::is_announced(write, remote)) return;
  std::byte list[link::kMaxPieces * rdm::kRange];
  const LocalRange piece{list, rdm::write_ranges(remote, list)};
  message(rdm::announcement_of(write, remote), {&piece, 1});
}

void Dialogue::announced(bool write, std::span<const RemoteRange> remote) {
  if (!rdm::is_announced(write, remote)) return;
  rdm::MessageHeader header;
  header.kind = rdm::MessageKind::kRangeEnd;
  message(header);
}

void Dialogue::write(std::span<const RemoteRange> remote, std::span<const LocalRange> pieces,
                     const std::optional<std::uint64_t>& data, const RequestVerdict& verdict) {
  announce(true, remote);
  if (data) {
    rdm::MessageHeader notice;
    notice.kind = rdm::MessageKind::kWriteImmInfo;
    notice.data = *data;
    notice.length = total_length(pieces);
    message(notice);
  }
  std::uint64_t offset = 0;
  for (const RemoteRange& range : remote) {
    Work work;
    work.kind = WorkKind::kWrite;
    work.key = wire_key(range.key);
    work.address = range.address;
    work.length = range.length;
    work.has_immediate = data && &range == &remote.back();
    verdict_ = verdict;
    write_parts(work, pieces, offset);
    verdict_ = {};
    if (!verdict.ok()) break;
    offset += range.length;
  }
  announced(true, remote);
}

void Dialogue::read(std::span<const RemoteRange> remote, std::span<const LocalRange> pieces,
                    const RequestVerdict& verdict) {
  announce(false, remote);
  std::uint64_t offset = 0;
  for (const RemoteRange& range : remote) {
    const std::uint32_t key = wire_key(range.key);
    verdict_ = verdict;
    read_parts(range.address, key, pieces, offset, range.length);
    verdict_ = {};
    if (!verdict.ok()) break;
    offset += range.length;
  }
  announced(false, remote);
}

// The receive has the same number as the offer: either end counts its own.
void Dialogue::want(std::uint32_t exchange, std::uint64_t length) {
  rdm::MessageHeader take;
  take.kind = rdm::MessageKind::kCts;
  take.exchange = exchange;
  take.tag = exchange;
  take.length = length;
  message(take);
}

void Dialogue::deliver(std::uint32_t exchange, std::span<const LocalRange> pieces,
                       std::uint64_t length) {
  Work work;
  work.kind = WorkKind::kWrite;
  work.key = rdm::receive_key(exchange);
  work.length = length;
  write_parts(work, pieces, 0);
}

void Dialogue::write_parts(const Work& work, std::span<const LocalRange> pieces,
                           std::uint64_t offset) {
  Segment segments[link::kMaxPieces];
  std::transform(pieces.begin(), pieces.end(), segments, segment_of);
  work::post_in_parts(work, {segments, pieces.size()}, offset,
                      [this](const Work& part) { return post(part), verdict_.ok(); });
}

void Dialogue::read_parts(std::uint64_t address, std::uint32_t key,
                          std::span<const LocalRange> pieces, std::uint64_t offset,
                          std::uint64_t length) {
  std::uint64_t done = 0;
  do {
    Segment into{scratch_.data(), 0};
    Work work;
    work.kind = WorkKind::kRead;
    work.key = key;
    work.address = address + done;
    into.length = work.length = std::min<std::uint64_t>(length - done, scratch_.size());
    work.pieces = {&into, 1};
    pieces_ = pieces;
    address_ = work.address;
    offset_ = offset + done;
    post(work);
    done += work.length;
  } while (done < length && verdict_.ok());
  pieces_ = {};
}

void Dialogue::atomic(const RemoteRange& range, bool compares, std::uint64_t swap_or_add,
                      std::uint64_t compare, std::uint64_t original,
                      const RequestVerdict& verdict) {
  Work work;
  work.kind = compares ? WorkKind::kCompareSwap : WorkKind::kFetchAdd;
  work.key = wire_key(range.key);
  work.address = range.address;
  work.length = 8;
  work.swap_or_add = swap_or_add;
  work.compare = compare;
  std::uint64_t found = 0;
  work.original = &found;
  verdict_ = verdict;
  original_ = original;
  post(work);
  verdict_ = {};
}

// Nothing of the work outlives this: were anything still under way, the ends would part and meet
// anew.
void Dialogue::post(const Work& work) {
  if (!ends_.tap.takes()) return;
  requester_->post(work);
  speak();
  if (!requester_->busy() && !requester_->failed()) return;
  part();
  introduce();
}

// Lets one say what it has, then the other one, until both are silent.
void Dialogue::speak() {
  const auto now = std::chrono::steady_clock::now();
  for (bool anything = true; anything;) {
    anything = false;
    wire::Packet packet;
    while (const std::size_t length = requester_->next(now, packet_)) {
      said(true, length, packet);
      responder_->take(packet, now);
      anything = true;
    }
    while (const std::size_t length = responder_->next(packet_)) {
      said(false, length, packet);
      requester_->take(packet, now);
      anything = true;
    }
  }
}

void Dialogue::said(bool by_asker, std::size_t length, wire::Packet& packet) {
  record(ends_, by_asker == asks_, packet_, length);
  wire::parse(std::span(packet_).first(length + wire::kIcrcBytes), packet);
}

RequestVerdict Dialogue::read(const work::RemoteMemory& memory, std::uint64_t offset,
                              std::span<std::byte> out) {
  const std::uint64_t begin = offset_ + (memory.address - address_) + offset;
  if (os::gather(out.data(), pieces_, out.size(), begin)) return {};
  return {RequestVerdict::Kind::kOperational, 0};
}

RequestVerdict Dialogue::atomic(bool, const work::AtomicOperands&, std::uint64_t& original) {
  original = original_;
  return verdict_;
}

bool has_opcode(const AtomicAction& action, std::span<const RemoteRange> remote) {
  const bool word = action.type == AtomicType::kUint64 || action.type == AtomicType::kInt64;
  if (!word || remote.size() != 1 || remote[0].length != 8 || remote[0].address % 8 != 0) {
    return false;
  }
  return (action.form == AtomicForm::kFetch && action.op == AtomicOp::kSum) ||
         (action.form == AtomicForm::kCompare && action.op == AtomicOp::kSwapIfEqual);
}

}  // namespace weft::capture
