// SPDX-License-Identifier: BSD-2-Clause
// How are queue pairs within the host stated in a capture? (docs/formats/capture.md)
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "capture/record.h"
#include "memory_message.h"
#include "near_access.h"
#include "near_work.h"
#include "wire/tap.h"

namespace weft::queue {

// The records of one queue pair towards a peer. The first two functions with the transmit lock, the
// third with the lock of its port.
class NearRecords {
 public:
  // `route`: from this end to the peer.
  NearRecords(const std::shared_ptr<capture::Capture>& capture, const wire::Route& to_peer,
              const wire::Route& from_peer)
      : own_(capture), of_peer_(capture), to_peer_(to_peer), from_peer_(from_peer) {}

  // A SEND has left.
  void sent(const MessageHead& head, std::span<const work::Segment> buffers, std::uint64_t length);
  // A one-sided operation was carried out, or refused.
  void accessed(const NearWork& work, const NearOutcome& outcome);
  // A message has arrived: so many bytes in these buffers.
  void arrived(const MessageHead& head, std::span<const work::Segment> buffers,
               std::uint64_t length);

 private:
  capture::RecordWriter own_;
  capture::RecordWriter of_peer_;
  const wire::Route to_peer_;
  const wire::Route from_peer_;
};

}  // namespace weft::queue
