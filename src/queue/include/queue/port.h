// SPDX-License-Identifier: BSD-2-Clause
// How do queue pairs share sockets, a lock and a sleep?
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "base/options.h"
#include "base/result.h"
#include "base/stats.h"
#include "device/device.h"
#include "device/engine.h"
#include "device/engine_uses.h"
#include "device/progress_thread.h"
#include "memory/access_guard.h"
#include "os/origin.h"
#include "os/wake_set.h"
#include "queue/recent_clock.h"
#include "roce/packet_port.h"

namespace weft::queue {

class MemoryInbox;
struct MessageHead;

// The finding of a look at a client that may wait for answers of its peer in shared memory.
enum class Glance : std::uint8_t { kNothing, kNews, kIdle };

// A queue pair as its port drives it. Functions are called with the lock of the port held.
class PortClient : public roce::PacketHandler {
 public:
  // Sends what it has to send, and draws the conclusions from what has arrived. Returns due().
  virtual Time settle(Time now) = 0;
  // Goes on where the peer has not answered for too long.
  virtual void tick(Time now) = 0;
  // The process exits: sends the answers that wait for others. Waits for no lock.
  virtual void finish() = 0;
  // Messages through shared memory, as Link::postpones() and Link::take_message().
  virtual std::uint16_t postpones(std::uint32_t /*source*/, const MessageHead& /*head*/) {
    return 0;
  }
  virtual std::uint16_t take_message(std::uint32_t /*source*/, const MessageHead& /*head*/,
                                     std::span<const std::byte> /*bytes*/) {
    return 0;
  }
  // A source of such messages has left.
  virtual void forget_source(std::uint32_t /*source*/) {}
  // A look at a client that is watched: kNews has it settled. Waits for no lock.
  virtual Glance glance() { return Glance::kIdle; }
  // It was idle for many polls: true when it is not watched any more.
  virtual bool ends_watch() { return true; }
  // When one of these has something to do; Time::max(): when something arrives or is posted. The
  // port looks at the client then.
  virtual Time due() = 0;

 protected:
  ~PortClient() = default;

 private:
  friend class QpPort;
  bool touched_ = false;
  bool active_ = false;
  unsigned idle_looks_ = 0;
};

// UDP sockets of queue pairs, each number bound to the wildcard address of IPv4 and IPv6, or those
// of connection managers, and the engine that drives them. Locks, outermost first: that of the
// port, the send lock of a queue pair, a receive queue's, the transmit lock, a completion queue's,
// an event channel's.
class QpPort final : public device::Engine {
 public:
  // A port with one UDP number. Errors: EADDRINUSE when none is free, EMFILE and others of
  // os::UdpSocket::bind(), os::WakeSet::create() and memory::AccessGuard::attach().
  // `shares`: through shared memory, too, where that can be.
  static Result<std::shared_ptr<QpPort>> open(std::shared_ptr<device::Device> device,
                                              bool shares = false);
  // A port of connection managers alone, without a UDP number. Errors: those of
  // os::WakeSet::create() and device::ProgressThread::get().
  static Result<std::shared_ptr<QpPort>> open_for_managers(std::shared_ptr<device::Device> device);
  ~QpPort() override;

  // A queue pair's number, and where its packets leave.
  struct Attachment {
    std::uint32_t qpn = 0;
    roce::PacketPort* packets = nullptr;
    MemoryInbox* memory = nullptr;  // null: not through shared memory
  };
  // Gives a queue pair a number; opens another UDP number where all are used. Control calls, with
  // lock() held. Errors: those of open() and device::ProgressThread::start().
  Result<Attachment> attach(PortClient& client) WEFT_REQUIRES(lock_);
  // On return no function of the client is running, and none will be called.
  void detach(PortClient& client, const Attachment& attachment) WEFT_REQUIRES(lock_);

  // Opens a UDP number for a manager of connections: that of the address, or any free one. With
  // `both_families` the unspecified address is that of IPv4 and IPv6. Control call. Errors:
  // EADDRINUSE, EADDRNOTAVAIL and others of os::UdpSocket::bind(), those of
  // device::ProgressThread::start().
  Result<Attachment> open_manager(PortClient& manager, const os::SocketAddress& address,
                                  bool both_families) WEFT_REQUIRES(lock_);
  // Closes that number. Not from within a function of the manager but tick().
  void close_manager(PortClient& manager, const Attachment& attachment) WEFT_REQUIRES(lock_);

  // One thread at a time in everything that the port drives.
  Mutex& lock() WEFT_RETURNS_LOCK(lock_) { return lock_; }
  // The same of packets on their way out. A thread that holds it may not wait for another lock.
  Mutex& transmit_lock() WEFT_RETURNS_LOCK(transmit_lock_) { return transmit_lock_; }
  // Local buffers are read through this, with the transmit lock held.
  memory::AccessGuard& reader() { return *reader_; }
  // Memory is accessed through this with lock() held.
  memory::AccessGuard& writer() { return *writer_; }
  Stats& stats() { return *stats_; }
  // Which groups drive it for its queue pairs and completion queues. Any thread.
  device::EngineUses& uses() { return uses_; }
  std::size_t receive_buffer() const WEFT_REQUIRES(lock_);
  // A queue pair that is connected by packets, or not any more. While there is none the sockets are
  // looked at now and then only: that costs more than all the rest of a poll.
  void count_packet_users(int change) WEFT_REQUIRES(lock_) { packet_users_ += change; }
  // Answers may come soon from a network that was quiet. Any thread.
  void expect_packets(Time now) {
    looks_often_until_.store(now + kOftenAfterNews, std::memory_order_relaxed);
  }

  // With lock() held: this poll settles that client, or looks at it at that time.
  void touch(PortClient& client) WEFT_REQUIRES(lock_);
  void look_at(PortClient& client, Time due) WEFT_REQUIRES(lock_);
  // As look_at(), by a thread outside of a poll: threads that sleep on the port learn of it.
  void plan(PortClient& client, Time due) WEFT_REQUIRES(lock_);
  // The next poll looks at that client, whose earliest time is `due` now: threads that sleep on the
  // port learn of it. Any thread that holds none of the locks.
  void announce(PortClient& client, Time due) WEFT_EXCLUDES(lock_);
  // Polls watch that client from now on (PortClient::glance()), until its ends_watch(). Any thread,
  // with any of the locks: a client looks at sleepers() behind this, or is settled by threads that
  // fall asleep.
  void watch(PortClient& client);
  const std::atomic<int>& sleepers() const { return sleepers_; }
  // The time of this poll.
  Time now() const WEFT_REQUIRES(lock_) { return now_; }
  // The time of a poll or a post, as cheaply as it is to be had.
  RecentClock& clock() { return clock_; }

  void progress() override;
  // Sends the answers that wait for others, as the process exits. Any thread.
  void finish();
  bool fall_asleep() override;
  void wake_up() override;
  int wake_fd() const override { return wake_.fd(); }
  // A poll before `now` was so recent that there will be another one soon. Any thread.
  bool is_polled_often(Time now) const {
    return now - polled_at_.load(std::memory_order_relaxed) < kOften;
  }
  // The program polls, though what it found needed no progress(). Any thread.
  void was_polled(Time now) { polled_at_.store(now, std::memory_order_relaxed); }
  unsigned polls() override { return polls_.load(std::memory_order_relaxed); }
  Arrivals arrivals() override {
    return {taken_.load(std::memory_order_relaxed), late_.load(std::memory_order_relaxed),
            unpolled_.load(std::memory_order_relaxed)};
  }

 private:
  // Interval between polls of a program that polls again and again.
  static constexpr auto kOften = std::chrono::microseconds(20);
  // After packets the sockets are looked at by each poll so long, and then at such intervals.
  static constexpr auto kOftenAfterNews = std::chrono::milliseconds(1);
  static constexpr auto kSeldom = std::chrono::microseconds(50);
  static constexpr auto kCheck = std::chrono::milliseconds(100);
  static constexpr auto kCheckSources = std::chrono::milliseconds(500);

  QpPort(std::shared_ptr<device::Device> device, os::WakeSet wake);
  static Result<std::shared_ptr<QpPort>> create(std::shared_ptr<device::Device> device,
                                                const char* stats);
  void begin();
  Status open_number() WEFT_REQUIRES(lock_);
  Status add_number(std::vector<os::UdpSocket> sockets) WEFT_REQUIRES(lock_);
  bool time_to_look() const WEFT_REQUIRES(lock_);
  unsigned take_packets(Time before) WEFT_REQUIRES(lock_);
  unsigned take_messages() WEFT_REQUIRES(lock_);
  bool can_share() const;
  std::unique_ptr<MemoryInbox> open_inbox(std::uint16_t port);
  void touch_watched(bool all) WEFT_REQUIRES(lock_);
  bool take_arrivals() WEFT_REQUIRES(lock_);
  void check_peers() WEFT_REQUIRES(lock_);
  void take_news() WEFT_REQUIRES(lock_);
  void settle_touched() WEFT_REQUIRES(lock_);
  void look_at_active() WEFT_REQUIRES(lock_);
  void wake_sleepers_at(Time due) WEFT_REQUIRES(lock_);

  const std::shared_ptr<device::Device> device_;
  bool shares_ = false;
  const os::Origin origin_;
  std::shared_ptr<Stats> stats_;
  os::WakeSet wake_;
  std::unique_ptr<memory::AccessGuard> reader_;
  std::unique_ptr<memory::AccessGuard> writer_;
  std::shared_ptr<device::ProgressThread> thread_;
  device::EngineUses uses_;

  Mutex lock_;
  Mutex transmit_lock_;
  std::vector<std::unique_ptr<roce::PacketPort>> numbers_ WEFT_GUARDED_BY(lock_);
  // One for each number; null where it has none.
  std::vector<std::unique_ptr<MemoryInbox>> inboxes_ WEFT_GUARDED_BY(lock_);
  std::vector<PortClient*> touched_ WEFT_GUARDED_BY(lock_);
  std::vector<PortClient*> active_ WEFT_GUARDED_BY(lock_);
  std::vector<PortClient*> watched_ WEFT_GUARDED_BY(lock_);
  unsigned postponed_ WEFT_GUARDED_BY(lock_) = 0;            // looks at them
  std::vector<PortClient*> visited_ WEFT_GUARDED_BY(lock_);  // by this poll; null: detached since
  RecentClock clock_;
  Time now_ WEFT_GUARDED_BY(lock_){};
  Time due_ WEFT_GUARDED_BY(lock_) = Time::max();  // of the active clients
  std::atomic<int> sleepers_{0};                   // written with the lock held
  // When the sockets are looked at (time_to_look()).
  int packet_users_ WEFT_GUARDED_BY(lock_) = 0;
  std::atomic<Time> looks_often_until_{Time{}};
  Time looks_at_ WEFT_GUARDED_BY(lock_){};
  Time checks_at_ WEFT_GUARDED_BY(lock_){};          // peers of this host, whether they live
  Time checks_sources_at_ WEFT_GUARDED_BY(lock_){};  // and those that send
  // When the sleepers are woken; Time::min() while there are none, so that no thread wakes them.
  std::atomic<Time> wakes_at_{Time::min()};
  std::atomic<unsigned> polls_{0};
  std::atomic<Time> polled_at_{Time{}};
  // arrivals()
  std::atomic<unsigned> taken_{0};
  std::atomic<unsigned> late_{0};
  std::atomic<unsigned> unpolled_{0};

  struct News {
    PortClient* client;
    Time due;
    bool watch;
  };
  Mutex news_lock_;  // innermost
  std::vector<News> news_ WEFT_GUARDED_BY(news_lock_);
  std::atomic<bool> has_news_{false};
};

}  // namespace weft::queue
