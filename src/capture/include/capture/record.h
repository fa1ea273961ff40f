// SPDX-License-Identifier: BSD-2-Clause
// How is an operation within the host stated in a capture? docs/formats/capture.md
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/types.h"
#include "capture/capture.h"
#include "link/flow.h"

namespace weft::capture {

enum class RecordKind : std::uint8_t {
  kSend = 1,        // this endpoint posted a message
  kArrival = 2,     // a message of a peer arrived
  kWithdrawal = 3,  // the sender of a message withdrew it
  kRead = 4,        // this endpoint read a peer's memory
  kWrite = 5,
  kAtomic = 6,
  kManagement = 7,  // a management datagram of the connection manager
};

// One operation. Members that a kind has no use for stay zero.
struct Record {
  RecordKind kind = RecordKind::kSend;
  std::uint8_t operation = 0;    // link::MessageOperation of a message, AtomicOp of kAtomic
  std::uint8_t type = 0;         // AtomicType
  std::uint8_t form = 0;         // AtomicForm
  bool has_data = false;         // `data` is the program's
  bool until_delivered = false;  // the receiver acknowledges the message
  bool offered = false;          // the bytes of an arrival are still the sender's
  link::Outcome outcome{};       // of an operation of this endpoint
  std::uint64_t tag = 0;
  std::uint64_t data = 0;
  std::uint64_t length = 0;         // of the operation
  std::uint64_t rendezvous_id = 0;  // names a message that has not ended, for its withdrawal
  std::span<const RemoteRange> remote{};
};

// The first bytes of every record. The version of a base header would be 6: no parser takes a
// record for a packet.
inline constexpr std::array<char, 4> kRecordMagic{'W', 'F', 'T', '1'};
inline constexpr std::size_t kRecordHeader = 64;
// Bytes of the operation that may follow the header.
inline constexpr std::size_t kMaxRecordBytes = 8192;

// Writes the kRecordHeader bytes of the header.
void write_header(const Record& record, std::byte* out);

// Writes the records of one endpoint to the capture. One thread at a time.
class RecordWriter {
 public:
  explicit RecordWriter(std::shared_ptr<Capture> capture) : capture_(std::move(capture)) {}

  // Copies the first `length` bytes of the next record's operation, up to kMaxRecordBytes in all
  // and up to the first SGE that is not mapped.
  void add(std::span<const LocalRange> sges, std::uint64_t length);
  void add(const void* bytes, std::uint64_t length);
  // Writes the record and the bytes that were added. An operation that was not taken (kAgain) has
  // no record.
  void write(wire::CaptureDirection direction, const wire::Route& route, const Record& record);

 private:
  const std::shared_ptr<Capture> capture_;
  std::array<std::byte, kRecordHeader + kMaxRecordBytes> place_{};
  std::size_t used_ = kRecordHeader;  // bytes of `place_`
};

}  // namespace weft::capture
