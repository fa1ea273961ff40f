// SPDX-License-Identifier: BSD-2-Clause
// How are queue pairs within the host stated in a capture?
#include "near_records.h"

#include <algorithm>
#include <cerrno>

#include "base/atomic_op.h"

namespace weft::queue {
namespace {

using capture::Record;
using capture::RecordKind;
using work::WorkKind;

void add(capture::RecordWriter& records, std::span<const work::Segment> buffers,
         std::uint64_t length) {
  for (const work::Segment& each : buffers) {
    const std::uint64_t part = std::min<std::uint64_t>(each.length, length);
    records.add(each.base, part);
    length -= part;
  }
}

Record message(RecordKind kind, const MessageHead& head, std::uint64_t length) {
  Record record{.kind = kind};
  record.operation = static_cast<std::uint8_t>(link::MessageOperation::kQueuePair);
  record.has_data = head.has(kWithImmediate);
  record.until_delivered = !head.has(kUnreliable);
  record.tag = std::uint64_t{head.to} << 32 | head.from;
  record.data = head.immediate;
  record.length = length;
  return record;
}

}  // namespace

void NearRecords::sent(const MessageHead& head, std::span<const work::Segment> buffers,
                       std::uint64_t length) {
  Record record = message(RecordKind::kSend, head, length);
  record.outcome = head.has(kUnreliable) ? link::Outcome::done() : link::Outcome::pending();
  add(own_, buffers, length);
  own_.write(wire::CaptureDirection::kSent, to_peer_, record);
}

void NearRecords::accessed(const NearWork& request, const NearOutcome& outcome) {
  const work::Work& work = request.work;
  const bool atomic = work.kind > WorkKind::kRead;
  const RecordKind one = work.kind == WorkKind::kWrite ? RecordKind::kWrite : RecordKind::kRead;
  Record record{.kind = atomic ? RecordKind::kAtomic : one};
  record.has_data = work.has_immediate;
  record.data = work.immediate;
  record.length = work.length;
  if (!outcome.done()) {
    record.outcome = link::Outcome::failed(
        outcome.how == NearOutcome::How::kRefused && outcome.reason != memory::AccessError::kNone
            ? EACCES
            : EIO,
        static_cast<int>(outcome.reason));
  }
  const RemoteRange range{work.address, work.length, RegionKey{work.key}};
  record.remote = {&range, 1};
  if (atomic) {
    const bool compares = work.kind == WorkKind::kCompareSwap;
    record.operation =
        static_cast<std::uint8_t>(compares ? AtomicOp::kSwapIfEqual : AtomicOp::kSum);
    record.type = static_cast<std::uint8_t>(AtomicType::kUint64);
    record.form = static_cast<std::uint8_t>(compares ? AtomicForm::kCompare : AtomicForm::kFetch);
    own_.add(&work.swap_or_add, sizeof work.swap_or_add);
    if (compares) own_.add(&work.compare, sizeof work.compare);
    if (outcome.done()) own_.add(work.original, sizeof *work.original);
  } else if (work.kind == WorkKind::kWrite || outcome.done()) {
    add(own_, request.list(), work.length);
  }
  own_.write(wire::CaptureDirection::kSent, to_peer_, record);
}

void NearRecords::arrived(const MessageHead& head, std::span<const work::Segment> buffers,
                          std::uint64_t length) {
  add(of_peer_, buffers, length);
  of_peer_.write(wire::CaptureDirection::kReceived, from_peer_,
                 message(RecordKind::kArrival, head, length));
}

}  // namespace weft::queue
