// SPDX-License-Identifier: BSD-2-Clause
// What is a queue pair? (ibv_create_qp(3), ibv_modify_qp(3), ibv_post_send(3))
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/mutex.h"
#include "base/refusal_log.h"
#include "base/result.h"
#include "device/completion_queue.h"
#include "device/device.h"
#include "memory/local_access.h"
#include "memory/region_table.h"
#include "queue/attributes.h"
#include "queue/port.h"
#include "queue/received.h"
#include "queue/send_queue.h"

namespace weft::queue {

class Link;
class QpTarget;

// An event of a queue pair that has no completion (ibv_get_async_event(3)).
enum class QpEvent : std::uint8_t {
  kCommunicationEstablished,  // the first packet arrived in RTR
  kAccessError,               // the peer was refused an access
  kRequestError,              // the peer sent an invalid request
  kFatal,                     // a completion queue has overrun
  kLastReceiveReached,        // in ERR, and takes no more receives of its shared queue
};

// Gets the events of a queue pair. Called with locks held: it may only take a note.
class QpEventSink {
 public:
  virtual void happened(QpEvent event) = 0;

 protected:
  ~QpEventSink() = default;
};

// The parts of a queue pair; all pointers outlive it.
struct QpSetup {
  std::shared_ptr<device::Device> device;
  std::shared_ptr<QpPort> port;
  QpType type = QpType::kRc;
  DomainId domain;
  device::CompletionQueue* sends = nullptr;     // null of an XRC target
  device::CompletionQueue* receives = nullptr;  // null of an XRC initiator
  QpReceiveQueue* shared = nullptr;             // in place of receives of its own
  SharedReceives* shared_by_number = nullptr;   // of an XRC target
  QpCapacities capacities;                      // what was asked for
  bool all_signaled = false;
  bool selective = true;  // towards Weft's hosts: selective repeat, else go-back-N
  QpEventSink* events = nullptr;
  RefusalLog* refusals = nullptr;  // not null: sentences about refused accesses
};

// A queue pair. Posts, modify() and query() may be called by any thread; the end of its life by
// one.
class QueuePair final : PortClient, work::WorkSink, ReceiveSink {
 public:
  // Errors: EINVAL for capacities beyond the limits; those of QpPort::attach().
  static Result<std::unique_ptr<QueuePair>> create(const QpSetup& setup);
  // A barrier: nothing of it runs when this returns. Its completions leave their queues.
  ~QueuePair() override;
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  std::uint32_t qpn() const { return attachment_.qpn; }
  QpType type() const { return setup_.type; }
  QpState state() const { return state_.load(std::memory_order_acquire); }
  // As granted.
  const QpCapacities& capacities() const { return capacities_; }

  // Changes the attributes of `mask`, all or none. `most_mtu`: the largest path MTU of the
  // interface. Errors: EINVAL for a transition, a set of attributes or a value that is not allowed,
  // and for a parent's queue pair after fork(2); EOPNOTSUPP for SQD and alternate paths.
  Status modify(const QpAttributes& attributes, std::uint32_t mask, std::size_t most_mtu);
  QpAttributes query();

  // Posts of one thread that leave together when it ends.
  class Posting {
   public:
    // The analysis of locks knows no lock that is taken sometimes.
    explicit Posting(QueuePair& pair) WEFT_UNCHECKED : pair_(pair), locked_(!pair.inherited()) {
      if (locked_) pair.send_lock_.lock();
    }
    ~Posting() WEFT_UNCHECKED {
      const Time news = posted_ ? pair_.posted() : Time::max();
      if (locked_) pair_.send_lock_.unlock();
      if (news != Time::max()) pair_.setup_.port->announce(pair_, news);
    }
    Posting(const Posting&) = delete;
    Posting& operator=(const Posting&) = delete;
    // Errors: EINVAL for a request that this queue pair cannot take in its state, and for a
    // parent's queue pair; ENOMEM when the send queue is full; EFAULT when inline bytes may not be
    // read.
    int post(const QpSendRequest& request) WEFT_UNCHECKED {
      const int error = locked_ ? pair_.post(request) : EINVAL;
      posted_ = posted_ || error == 0;
      return error;
    }
    // EINVAL where post() would return that, else 0.
    int check(QpSendRequest request) const WEFT_UNCHECKED {
      return locked_ ? pair_.accept(request) : EINVAL;
    }
    // How many more it takes.
    std::uint32_t room() const WEFT_UNCHECKED { return pair_.send_queue_.room(); }

   private:
    QueuePair& pair_;
    const bool locked_;  // not of a parent's queue pair
    bool posted_ = false;
  };
  // Errors: EINVAL in RESET, with a shared queue and for too many segments; ENOMEM when it is full.
  int post_receive(std::uint64_t id, std::span<const work::Segment> segments);

  // A completion was polled: gives slots of the send queue of its queue pair back.
  static void polled(const device::Completion& completion) WEFT_UNCHECKED;

 private:
  explicit QueuePair(const QpSetup& setup, const QpCapacities& granted);

  // PortClient, with the port's lock.
  void take(const roce::PacketArrival& arrival) override;
  void take_cnp(const roce::PacketArrival& arrival) override;
  void unreachable(const os::UdpError& error) override;
  Time settle(Time now) override;
  void tick(Time now) override;
  void finish() override;
  std::uint16_t postpones(std::uint32_t source, const MessageHead& head) override;
  std::uint16_t take_message(std::uint32_t source, const MessageHead& head,
                             std::span<const std::byte> bytes) override;
  void forget_source(std::uint32_t source) override;
  Glance glance() override;
  bool ends_watch() override;
  Time due() override;
  // With the send lock.
  void ended(const work::Ended& work) override;
  // With the port's lock.
  void received(const ReceiveEnding& receive, device::CompletionQueue* completions) override;

  int post(const QpSendRequest& wanted) WEFT_REQUIRES(send_lock_);
  int accept(QpSendRequest& request) const WEFT_REQUIRES(send_lock_);
  Time posted() WEFT_REQUIRES(send_lock_);
  // Answers are sent with the port's lock held.
  enum class Answers : std::uint8_t { kNo, kOfPoll, kOfReply };
  void emit(Answers answers, bool polls, Time now) WEFT_REQUIRES(send_lock_);
  void emit_waiting() WEFT_REQUIRES(setup_.port->lock(), send_lock_);
  void emit_last_answers() WEFT_REQUIRES(setup_.port->transmit_lock());
  void flush_output() WEFT_REQUIRES(setup_.port->transmit_lock());
  Time send_due() WEFT_REQUIRES(send_lock_);
  Time next_due() WEFT_REQUIRES(send_lock_);
  void complete_send(const SendSlot& slot, work::CompletionStatus status, std::uint8_t detail,
                     std::uint32_t frees) WEFT_REQUIRES(send_lock_);
  void explain(const SendSlot& slot, work::CompletionStatus status, std::uint8_t reason)
      WEFT_REQUIRES(send_lock_);
  void explain_refusal() WEFT_REQUIRES(setup_.port->lock());
  std::string name_of_peer() const;
  Status check(const QpAttributes& attributes, std::uint32_t mask, std::size_t most_mtu) const;
  void apply(const QpAttributes& attributes, std::uint32_t mask);
  Status begin_receiving(std::size_t most_mtu) WEFT_REQUIRES(setup_.port->lock(), send_lock_);
  Status begin_packets() WEFT_REQUIRES(setup_.port->lock(), send_lock_);
  Result<bool> begin_sharing() WEFT_REQUIRES(setup_.port->lock(), send_lock_);
  void turn_to_packets() WEFT_REQUIRES(setup_.port->lock(), send_lock_);
  void begin_watch() WEFT_REQUIRES(send_lock_);
  std::uint16_t refuse_sender(const MessageHead& head) const;
  memory::RegionAttributes entry(bool shares) const;
  void leave_table() WEFT_REQUIRES(setup_.port->lock());
  bool listens() const {
    return state() >= QpState::kReadyToReceive && state() < QpState::kError && link_ != nullptr;
  }
  bool inherited() const { return attachment_.packets->inherited(); }
  void reset() WEFT_REQUIRES(setup_.port->lock(), send_lock_);
  void conclude() WEFT_REQUIRES(setup_.port->lock());
  void report_refusal() WEFT_REQUIRES(setup_.port->lock());
  void fail_sends() WEFT_REQUIRES(setup_.port->lock());
  void fail() WEFT_REQUIRES(setup_.port->lock());
  void flush_receive(std::uint64_t id) WEFT_REQUIRES(setup_.port->lock());
  void flush_receives() WEFT_REQUIRES(setup_.port->lock());
  void raise(QpEvent event);

  const QpSetup setup_;
  const QpCapacities capacities_;
  QpPort::Attachment attachment_;
  std::atomic<QpState> state_{QpState::kReset};
  // Work of the send queue, or a receive, has ended with an error: conclude() ends the rest.
  std::atomic<bool> send_failed_{false};
  std::atomic<bool> receive_failed_{false};
  std::atomic<bool> overran_{false};     // a completion queue of it has
  std::atomic<bool> was_polled_{false};  // completions were, since the last post
  std::atomic<bool> replied_{false};     // requests have left while the port's lock was taken
  Mutex send_lock_;
  QpSendQueue send_queue_ WEFT_GUARDED_BY(send_lock_);
  Time announced_ WEFT_GUARDED_BY(send_lock_) =
      Time::max();  // the port looks at this queue pair at that time, or earlier
  Time emits_at_ WEFT_GUARDED_BY(send_lock_){};       // when requests were last emitted
  bool watched_ WEFT_GUARDED_BY(send_lock_) = false;  // by the polls of the port
  // With the port's lock and the send lock.
  QpAttributes attributes_;
  std::unique_ptr<Link> link_;
  // With the port's lock.
  QpReceiveQueue own_receives_;
  QpReceiveQueue& receives_;
  std::optional<memory::LocalAccess> memory_;
  std::unique_ptr<QpTarget> target_ WEFT_GUARDED_BY(setup_.port->lock());
  // In the region table, while peers may access memory through this queue pair themselves.
  std::optional<memory::Registration> entry_ WEFT_GUARDED_BY(setup_.port->lock());
  bool uses_packets_ WEFT_GUARDED_BY(setup_.port->lock()) = false;  // of its peer
  bool communicates_ WEFT_GUARDED_BY(setup_.port->lock()) =
      false;  // a packet has arrived in RTR or RTS
};

}  // namespace weft::queue
