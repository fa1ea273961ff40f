// SPDX-License-Identifier: BSD-2-Clause
// How does work become packets that are not acknowledged?
//
// (IBTA 9.8.2.) Each packet is sent once. Work ends as soon as its last packet was written; its
// arrival is not reported. The caller decides when packets leave.
#pragma once

#include <array>
#include <deque>
#include <optional>

#include "transport/settings.h"
#include "work/work.h"

namespace weft::transport {

// The sending half of an unreliable connection. It does not react to congestion, so its packets
// leave as Not-ECT (RFC 3168, section 5). One thread at a time; the caller moves the packets.
class UnreliableSender {
 public:
  // `sink` and `memory` outlive it.
  UnreliableSender(const Settings& settings, work::WorkSink& sink, work::LocalMemory& memory)
      : settings_(settings), sink_(sink), memory_(memory) {
    next_ = settings.first_sent;
  }
  UnreliableSender(const UnreliableSender&) = delete;
  UnreliableSender& operator=(const UnreliableSender&) = delete;

  // Takes work in at most kMaxWorkSges SGEs. Reads, atomic operations and invalidations end, in
  // their turn, with kLocalOperation; work of more than kMaxMessage bytes ends with kLocalLength.
  // Nothing of it is sent, and the work behind it continues: a caller that wants the queue to stop
  // calls fail(). After that, work ends with kFlushed at once.
  void post(const work::Work& work);

  // Writes the next packet, from its base header to its padding, into `out`, which has room for
  // wire::kMaxHeaderBytes and the path MTU. Returns its length, or 0 when there is none. Work with
  // an SGE that may not be read ends with kLocalProtection, and the next one goes on.
  std::size_t next(std::span<std::byte> out);

  // Ends all work with that status, and all that is posted later with kFlushed.
  void fail(work::CompletionStatus status);

  // True while there is work that has not ended: next() has a packet of it.
  bool busy() const { return !queue_.empty(); }
  bool failed() const { return failed_; }

 private:
  // Work that waits or is on its way; the first one is to be sent.
  struct Message {
    work::Work work;  // its list of SGEs lies in `sges`
    std::array<work::Segment, work::kMaxWorkSges> sges{};
    std::size_t sge_count = 0;
    std::uint64_t sent = 0;  // bytes
    std::optional<work::CompletionStatus> refusal;
  };

  wire::Packet packet_of(const Message& message, bool last) const;
  std::size_t write_next(std::span<std::byte> out);
  void end_first(work::CompletionStatus status);
  void end_refused();

  const Settings settings_;
  work::WorkSink& sink_;
  work::LocalMemory& memory_;
  Psn next_;
  std::deque<Message> queue_;
  bool failed_ = false;
};

}  // namespace weft::transport
