// SPDX-License-Identifier: BSD-2-Clause
// How does a queue pair reach its peer through shared memory?
//
// The initiator carries out one-sided operations: it checks the queue pair of the target and the
// remote key in the region table of the target's process, and copies from memory to memory. SENDs,
// and the immediate data of WRITEs, go through a ring; the target executes them and says how far it
// has come, or which one failed and why. A one-sided operation begins when all SENDs before it were
// executed, so that operations take effect, and fail, in their order.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>

#include "link.h"
#include "link_shm/ring_writer.h"
#include "memory/local_access.h"
#include "memory_message.h"
#include "near_peer.h"
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
};

// The reliable connection.
class MemoryLink final : public Link {
 public:
  MemoryLink(const QpAttributes& attributes, const MemoryParts& parts);

  void begin_sending(const QpAttributes& attributes) override;
  void post(const QpSendRequest& request) override;
  void flush() override;
  void take_request(const roce::PacketArrival& /*arrival*/, Time /*now*/) override {}
  void take_response(const roce::PacketArrival& /*arrival*/, Time /*now*/) override {}
  void emit_requests(bool polls, Time now) override;
  Time send_due() const override;
  void tick(Time /*now*/) override {}
  bool receive_failed() const override { return refused_; }
  void change(const QpAttributes& attributes) override { rnr_timer_ = attributes.rnr_timer; }
  bool is_peer(const os::SocketAddress& /*from*/) const override { return false; }
  std::uint16_t postpones(std::uint32_t source, const MessageHead& head) override;
  std::uint16_t take_message(std::uint32_t source, const MessageHead& head,
                             std::span<const std::byte> bytes) override;
  bool watches() const override {
    return sends_ && !failed_ && stall_ == 0 && (waits_ || !sent_.empty());
  }
  void set_asleep(bool asleep) override;

 private:
  // A request that is not complete, whose list of SGEs is kept.
  struct PendingWork {
    PendingWork(const work::Work& wanted, work::CompletionStatus its_refusal)
        : work(wanted), refusal(its_refusal), sges(wanted.sges.begin(), wanted.sges.end()) {}
    std::span<const work::Segment> list() const { return {sges.data(), sges.size()}; }

    work::Work work;
    work::CompletionStatus refusal;
    boost::container::small_vector<work::Segment, 2> sges;
    std::uint64_t done = 0;  // bytes that are copied, or in the ring
  };
  // A message in the ring.
  struct MessageInRing {
    void* cookie;
    std::uint64_t end;  // the position behind its last cell
  };
  // The state of the first request after a try: it is over, it waits for the peer, or for a time.
  enum class Advance : std::uint8_t { kOver, kWaits };

  bool open_ring();
  void take_answers(Time now);
  void take_stall(std::uint64_t answer, Time now);
  void ask_again();
  void withdraw(work::CompletionStatus status);
  void check_peer(Time now);
  Advance carry_out(PendingWork& request, Time now);
  Advance send(PendingWork& request);
  Advance announce_write(const PendingWork& request);
  void publish(const MessageHead& head, shm::CellKind kind, std::size_t inline_length);
  static std::uint8_t flags_of(const work::Work& work);
  Advance access(PendingWork& request, Time now);
  Advance copy(PendingWork& request, DomainId domain, Access need);
  Advance change(PendingWork& request, DomainId domain);
  std::optional<DomainId> pin_pair(const work::Work& work, Access need, Time now);
  void refuse(const work::Work& work, Access need, work::CompletionStatus status,
              memory::AccessError reason);
  Advance copy_failed(int error, const PendingWork& request, Access need);
  void release();
  void end_first(work::CompletionStatus status);
  void fail(work::CompletionStatus status, std::uint8_t detail = 0);
  Time::duration patience() const;
  void note_refusal(std::span<const std::byte> bytes);

  const MemoryParts parts_;
  const std::uint32_t destination_;
  // The send half.
  bool sends_ = false;
  bool failed_ = false;
  bool asleep_ = false;
  bool waits_ = false;  // for the peer
  Time::duration ack_timeout_{};
  bool timeout_is_endless_ = false;
  unsigned retries_ = 0;
  unsigned rnr_retries_ = 0;
  std::unique_ptr<shm::PeerSlot> slot_;
  std::optional<shm::RingWriter> ring_;
  std::deque<PendingWork> pending_;
  std::deque<MessageInRing> sent_;
  std::uint64_t copied_ = 0;       // bytes, since requests were last emitted
  std::uint64_t stall_ = 0;        // the answer that the first message waits for
  unsigned attempts_ = 0;          // of the first request, in vain
  Time resumes_at_ = Time::min();  // when the first request is tried again
  Time checked_at_{};              // when the peer was last found alive
  memory::AccessError local_error_ = memory::AccessError::kNone;
  // The receive half.
  std::uint8_t rnr_timer_ = 0;
  std::optional<std::uint32_t> source_;  // where the peer's messages come from
  bool begun_ = false;                   // a message has a receive, and has not ended
  bool within_ = false;                  // its first part has come
  bool refused_ = false;
};

}  // namespace weft::queue
