// SPDX-License-Identifier: BSD-2-Clause
// How is an operation within the host stated in a capture? docs/formats/capture.md
#include "capture/record.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "os/user_memory.h"
#include "wire/endian.h"

namespace weft::capture {
namespace {

using link::Outcome;
using wire::store;

constexpr std::uint8_t kHasData = 1;
constexpr std::uint8_t kUntilDelivered = 2;
constexpr std::uint8_t kOffered = 4;

enum class RecordOutcome : std::uint8_t { kDone = 0, kPending = 1, kRefused = 2, kFailed = 3 };

RecordOutcome outcome_of(const Outcome& outcome) {
  if (outcome.state == Outcome::State::kPending) return RecordOutcome::kPending;
  if (outcome.error == 0) return RecordOutcome::kDone;
  return outcome.error == EACCES ? RecordOutcome::kRefused : RecordOutcome::kFailed;
}

}  // namespace

void write_header(const Record& record, std::byte* out) {
  const RecordOutcome outcome = outcome_of(record.outcome);
  const bool refused = outcome == RecordOutcome::kRefused;
  const int reason = refused ? record.outcome.detail : record.outcome.error;
  const RemoteRange first = record.remote.empty() ? RemoteRange{} : record.remote.front();
  std::memcpy(out, kRecordMagic.data(), kRecordMagic.size());
  store<std::uint8_t>(out + 4, static_cast<std::uint8_t>(record.kind));
  store<std::uint8_t>(out + 5, record.operation);
  store<std::uint8_t>(out + 6, record.type);
  store<std::uint8_t>(out + 7, record.form);
  store<std::uint8_t>(out + 8, (record.has_data ? kHasData : 0) |
                                   (record.until_delivered ? kUntilDelivered : 0) |
                                   (record.offered ? kOffered : 0));
  store<std::uint8_t>(out + 9, static_cast<std::uint8_t>(outcome));
  store<std::uint16_t>(out + 10, static_cast<std::uint16_t>(reason));
  store<std::uint32_t>(out + 12, static_cast<std::uint32_t>(record.remote.size()));
  store<std::uint64_t>(out + 16, record.tag);
  store<std::uint64_t>(out + 24, record.has_data ? record.data : 0);
  store<std::uint64_t>(out + 32, record.length);
  store<std::uint64_t>(out + 40, record.rendezvous_id);
  store<std::uint64_t>(out + 48, first.key.v);
  store<std::uint64_t>(out + 56, first.address);
}

void RecordWriter::add(std::span<const LocalRange> sges, std::uint64_t length) {
  if (!capture_->host().takes()) return;
  for (const LocalRange& sge : sges) {
    const auto part = std::min<std::uint64_t>({sge.length, length, place_.size() - used_});
    if (!os::copy_from_user(place_.data() + used_, sge.base, part)) return;
    used_ += part;
    length -= part;
  }
}

void RecordWriter::add(const void* bytes, std::uint64_t length) {
  const LocalRange sge{const_cast<void*>(bytes), length};
  add({&sge, 1}, length);
}

void RecordWriter::write(wire::CaptureDirection direction, const wire::Route& route,
                         const Record& record) {
  const std::size_t length = std::exchange(used_, kRecordHeader);
  if (record.outcome.state == Outcome::State::kAgain || !capture_->host().takes()) return;
  write_header(record, place_.data());
  capture_->host().packet(direction, route, {}, std::span(place_).first(length), {});
}

}  // namespace weft::capture
