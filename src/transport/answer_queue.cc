// SPDX-License-Identifier: BSD-2-Clause
// Which reads and atomic operations is the peer owed answers to, first or again?
#include "transport/answer_queue.h"

#include <algorithm>
#include <cstring>

#include "packets.h"

namespace weft::transport {

using wire::Operation;

namespace {

Operation read_response(bool first, bool last) {
  if (last) return first ? Operation::kReadResponseOnly : Operation::kReadResponseLast;
  return first ? Operation::kReadResponseFirst : Operation::kReadResponseMiddle;
}

}  // namespace

bool AnswerQueue::may_add() const {
  const auto asked = std::count_if(answers_.begin(), answers_.end(),
                                   [](const ExecutedRequest& each) { return !each.repeated; });
  return asked < static_cast<std::ptrdiff_t>(settings_.max_reads_of_peer);
}

void AnswerQueue::add(const ExecutedRequest& request) {
  answers_.push_back(request);
  if (settings_.max_reads_of_peer == 0) return;
  if (remembered_.size() >= settings_.max_reads_of_peer) remembered_.erase(remembered_.begin());
  remembered_.push_back(request);
}

void AnswerQueue::repeat_atomic(Psn psn) {
  const auto found = std::find_if(
      remembered_.begin(), remembered_.end(),
      [&](const ExecutedRequest& each) { return !each.reads && each.range.first == psn; });
  if (found != remembered_.end()) answer_again(*found);
}

void AnswerQueue::repeat_read(const wire::Packet& request) {
  const PsnRange range{request.psn, packets_for(request.reth.length, settings_.path_mtu)};
  const auto is_of = [&](const ExecutedRequest& read) {
    if (!read.reads || !read.range.has(range.first)) return false;
    const auto index = static_cast<std::uint64_t>(range.first.since(read.range.first));
    const std::uint64_t offset = index * settings_.path_mtu;
    return request.reth.key == read.memory.key &&
           request.reth.address == read.memory.address + offset &&
           request.reth.length <=
               read.memory.length - std::min<std::uint64_t>(offset, read.memory.length);
  };
  const auto found = std::find_if(remembered_.begin(), remembered_.end(), is_of);
  if (found == remembered_.end()) return;
  ExecutedRequest again = *found;
  again.range = range;
  again.memory = memory_of(request);
  answer_again(again);
}

// Further repetitions are ignored.
void AnswerQueue::answer_again(ExecutedRequest request) {
  if (answers_.size() >= kMostAnswers) return;
  request.repeated = true;
  answers_.push_back(request);
}

AnswerQueue::Written AnswerQueue::next(std::span<std::byte> out) {
  ExecutedRequest& first = answers_.front();
  const Psn psn = first.range.first;
  if (!first.lost.ok()) return lose(psn, first.lost);
  if (first.reads) return write_read(first, out);
  wire::Packet packet =
      answer_packet(settings_, Operation::kAtomicAcknowledge, psn, first.message_number);
  packet.original = first.original;
  wire::write_headers(packet, 0, out.data());
  answers_.erase(answers_.begin());
  return {wire::header_bytes(packet), psn, {}};
}

AnswerQueue::Written AnswerQueue::lose(Psn psn, const work::RequestVerdict& why) {
  const work::RequestVerdict verdict = why;  // perhaps of the answer that goes
  answers_.erase(answers_.begin());
  return {0, psn, verdict};
}

// Memory that was readable when the request came may have gone, or be refused since.
AnswerQueue::Written AnswerQueue::write_read(ExecutedRequest& read, std::span<std::byte> out) {
  const std::uint32_t index = read.written++;
  const bool last = read.written == read.range.count;
  const wire::Packet packet =
      answer_packet(settings_, read_response(index == 0, last),
                    read.range.first.after(static_cast<std::int32_t>(index)), read.message_number);
  const std::uint64_t begin = std::uint64_t{index} * settings_.path_mtu;
  const std::size_t payload =
      std::min<std::uint64_t>(settings_.path_mtu, read.memory.length - begin);
  const std::size_t headers = wire::header_bytes(packet);
  wire::write_headers(packet, payload, out.data());
  if (payload != 0) {
    const work::RequestVerdict verdict =
        target_.read(read.memory, begin, out.subspan(headers, payload));
    if (!verdict.ok()) return lose(packet.psn, verdict);
  }
  std::memset(out.data() + headers + payload, 0, wire::padding_of(payload));
  if (last) answers_.erase(answers_.begin());
  return {headers + payload + wire::padding_of(payload), packet.psn, {}};
}

}  // namespace weft::transport
