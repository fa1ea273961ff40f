// SPDX-License-Identifier: BSD-2-Clause
// How does a connected queue pair reach its peer through shared memory?
//
// The initiator carries out one-sided operations (NearAccess). SENDs, and the immediate data of
// WRITEs, go through a ring; the target executes them and says how far it has come, or which one
// failed and why. A one-sided operation begins when all messages before it were executed, so that
// operations take effect, and fail, in their order.
#pragma once

#include <atomic>
#include <boost/circular_buffer.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/stats.h"
#include "link.h"
#include "link_shm/ring_writer.h"
#include "memory/local_access.h"
#include "memory_message.h"
#include "near_access.h"
#include "near_records.h"
#include "near_work.h"
#include "work/work.h"

namespace weft::queue {

class QpTarget;

// The surroundings of a link through shared memory; all outlive it.
struct MemoryParts {
  std::shared_ptr<NearPeer> peer;
  std::uint32_t qpn = 0;
  DomainId domain;
  work::WorkSink& sink;
  memory::LocalAccess& memory;  // with the transmit lock
  memory::AccessGuard& local;   // of this process's table, with the transmit lock
  QpTarget& target;
  Stats& stats;
  const std::shared_ptr<capture::Capture>& capture;  // null: none is written
  const std::atomic<int>& sleepers;                  // threads that sleep on the port
};

// The reliable and the unreliable connection, and either end of an extended reliable one.
class MemoryLink final : public Link {
 public:
  MemoryLink(QpType type, const QpAttributes& attributes, const MemoryParts& parts);

  void begin_sending(const QpAttributes& attributes) override;
  void post(const QpSendRequest& request) override;
  void flush() override;
  void take_request(const roce::PacketArrival& arrival, Time now) override;
  void take_response(const roce::PacketArrival& /*arrival*/, Time /*now*/) override {}
  void take_answers(Time now) override;
  void emit_requests(bool polls, Time now) override;
  Time send_due() const override;
  void tick(Time /*now*/) override {}
  bool receive_failed() const override { return refused_; }
  void change(const QpAttributes& attributes) override { rnr_timer_ = attributes.rnr_timer; }
  bool is_peer(const os::SocketAddress& from) const override;
  std::uint16_t postpones(std::uint32_t source, const MessageHead& head) override;
  std::uint16_t take_message(std::uint32_t source, const MessageHead& head,
                             std::span<const std::byte> bytes) override;
  void forget_source(std::uint32_t source) override;
  bool has_near_work() const override { return !works_.empty(); }
  Glance glance() const override;
  bool wants_packets() const override {
    const bool asked = got_packet_.load(std::memory_order_relaxed) && in_ring_ == 0;
    return !failed_ && (by_packets_ || asked);
  }
  void hand_over(Link& successor) override;

 private:
  // The state of the first request after a try: it is over, or it has to be tried again.
  enum class Advance : std::uint8_t { kOver, kWaits };

  bool failed() const { return failed_ || by_packets_; }
  void heed_sleepers();
  bool open_ring();
  void use(std::unique_ptr<shm::PeerSlot> slot);
  void read_answer(Time now);
  void take_stall(std::uint64_t answer, Time now);
  void ask_again();
  void withdraw(work::CompletionStatus status);
  void check_peer(Time now);
  Advance carry_out(NearWork& request, Time now);
  Advance send(NearWork& request);
  Advance copy_part(NearWork& request, MessageHead head);
  Advance offer_part(NearWork& request, MessageHead head);
  Advance announce_write(NearWork& request);
  MessageHead head_of(const work::Work& work) const;
  Advance access(NearWork& request, Time now);
  bool write_together();
  void refuse(const work::Work& work, const NearOutcome& outcome);
  Advance await_target(Time now);
  void end_first(work::CompletionStatus status, std::uint8_t detail = 0);
  void fail(work::CompletionStatus status, std::uint8_t detail = 0);
  Time::duration patience() const;
  std::uint16_t take_part(const MessageHead& head, std::span<const std::byte> bytes);
  work::RequestVerdict begin_message(const MessageHead& head);
  std::uint16_t pull(std::span<const std::byte> bytes);
  void note_refusal(std::span<const std::byte> bytes);

  const QpType type_;
  const MemoryParts parts_;
  const std::uint32_t destination_;
  const os::SocketAddress address_;
  NearAccess access_;
  // The send half.
  bool sends_ = false;
  bool failed_ = false;
  bool by_packets_ = false;
  bool asleep_ = false;
  bool blocked_ = false;  // until messages in the ring are executed
  Time::duration ack_timeout_{};
  bool timeout_is_endless_ = false;
  std::uint16_t connection_ = 0;  // MessageHead
  unsigned retries_ = 0;
  unsigned rnr_retries_ = 0;
  std::unique_ptr<shm::PeerSlot> slot_;
  std::optional<shm::RingWriter> ring_;
  boost::circular_buffer<NearWork> works_;
  std::size_t in_ring_ = 0;        // so many of them, the oldest
  std::uint64_t budget_ = 0;       // bytes that one-sided operations may still copy in this turn
  std::uint64_t stall_ = 0;        // the answer that the first message waits for
  unsigned rnr_attempts_ = 0;      // of the first request, in vain
  unsigned attempts_ = 0;          // the same, of a target that is not there
  Time resumes_at_ = Time::min();  // when the first request is tried again
  Time checked_at_{};              // when the peer was last found alive
  std::unique_ptr<NearRecords> records_;  // null: no capture is written
  // What a glance compares.
  std::atomic<shm::SlotHeader*> header_{nullptr};  // null: it waits for nothing
  std::atomic<std::uint64_t> seen_consumed_{0};
  std::atomic<std::uint64_t> seen_answer_{0};
  // The receive half.
  const Psn receive_psn_;
  std::uint8_t rnr_timer_ = 0;
  std::optional<std::uint32_t> source_;  // where the peer's messages come from
  bool begun_ = false;                   // a message has a receive, and has not ended
  bool within_ = false;                  // its first part has come
  bool refused_ = false;
  std::atomic<bool> got_packet_{false};
};

}  // namespace weft::queue
