// SPDX-License-Identifier: BSD-2-Clause
// What does one endpoint of a program with many threads do, cut into parts that may run in
// parallel?
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "endpoint.h"
#include "guarded_buffer.h"
#include "operation.h"

namespace weft::conformance {

// Each is the use of one object, or of one data flow of an endpoint: what FI_THREAD_FID lets
// several threads do at once (fi_domain(3)).
enum class LanePart : std::uint8_t {
  kTransmit,  // posts sends and remote accesses
  kReceive,   // posts receives, and cancels some
  kQueue,     // reads the completion queue, or waits for it
  kSends,     // waits for the counter of sends
  kReceives,  // and for the other counters
  kReads,     //
  kWrites,    //
  kPollSet,   // polls a set of the queue and the counters
  kWaitSet,   // waits for a set of the queue, where there is one
};

// Endpoints of that type in lanes are opened with these.
Options lane_options(fi_ep_type type, fi_threading threading);

// An endpoint with everything that reports its operations, and a peer that does the same at the
// same time: so many operations of every kind in both directions. Each operation has to end once
// at its initiator, and each message has to arrive once, with its bytes.
//
// Any number of threads may take steps of one part. Between them the lane synchronises nothing but
// the reuse of a receive buffer, so that ThreadSanitizer sees what the provider synchronises.
class Lane {
 public:
  // Lanes have different numbers. `av` as in Endpoint. With `has_wait_set` the queue is a member of
  // a wait set; otherwise it has a wait object of its own.
  Lane(std::shared_ptr<Domain> domain, const Options& options, std::uint64_t number,
       bool has_wait_set, fid_av* av = nullptr);
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  bool ok() const { return ok_; }
  Endpoint& endpoint() { return endpoint_; }

  // Both know, or are connected to, each other. Before any step; one thread.
  static void join(Lane& a, Lane& b);

  // The parts that there are.
  std::vector<LanePart> parts() const;
  // One thread's steps of a part; calls that block return after that time.
  std::function<void()> steps(LanePart part, int timeout_ms);
  // Everything has ended and was counted. Steps may go on: the peer may need them, and nothing may
  // come twice.
  bool is_done() const;
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  // After the last step of all threads: counts and the memory that the peer wrote to are right.
  void verify();

 private:
  enum class Role : std::uint8_t { kOperation, kTagged, kUntagged, kCancelled };
  // An operation with its context, from which a completion leads back to it.
  struct Job {
    Job(Role role, std::size_t index, std::size_t bytes)
        : role(role), index(index), buffer(bytes, index % 8) {}
    fi_context2 context{};  // first
    Role role;
    std::size_t index;
    GuardedBuffer buffer;
    std::atomic<unsigned> ends{0};
    std::atomic<bool> is_free{true};  // of a receive for untagged messages
  };

  void open_poll_set();
  void open_window();
  void make_jobs();
  void meet(Lane& peer, fi_addr_t address);

  void transmit(Job*& held);
  ssize_t post(Job& job);
  ssize_t post_atomic(Job& job, Kind kind);
  std::uint64_t peer_base() const;
  bool may_transmit(const Job& job) const;
  void receive(Job*& held);
  Job* next_receive();
  Job* next_untagged();
  ssize_t post_receive(Job& job);
  void cancel(Job& job);

  void read_queue(int timeout_ms);
  void take(const fi_cq_tagged_entry& entry);
  void take_error();
  void end_operation(Job& job);
  void end_receive(Job& job, const fi_cq_tagged_entry& entry);
  void arrived(const Job& job, const fi_cq_tagged_entry& entry);
  void wait_counter(std::uint64_t event, int timeout_ms);
  void poll_set();
  void wait_set(int timeout_ms);
  void verify_place(std::size_t index);

  void check(bool holds, std::string_view rule);
  void check(const std::string& complaint) { check(complaint.empty(), complaint); }
  std::uint64_t expected(std::uint64_t event) const;
  std::uint64_t seed(std::size_t index) const { return number_ * 100'000 + index + 1; }

  const Options options_;
  const std::uint64_t number_;
  const std::size_t reporting_;  // operations that report to the queue
  Endpoint endpoint_;
  Fid<fid_poll> poll_set_;
  std::vector<fid*> members_;              // of it
  const std::vector<std::size_t> places_;  // of one-sided operations in a window
  GuardedBuffer window_;                   // that the peer accesses
  Fid<fid_mr> region_;
  bool ok_ = false;

  Lane* peer_ = nullptr;
  fi_addr_t address_ = FI_ADDR_UNSPEC;

  std::deque<Job> operations_;
  std::deque<Job> tagged_;  // receives of one message each, and those that are cancelled
  std::deque<Job> untagged_;
  std::vector<std::atomic<unsigned>> arrivals_;  // of each message
  std::vector<std::atomic<unsigned>> fetched_;   // each value that operations of the peer replaced
  const std::size_t messages_;                   // of the peer
  std::size_t untagged_messages_ = 0;

  std::atomic<std::size_t> next_operation_{0};
  std::atomic<std::size_t> next_tagged_{0};
  std::atomic<std::size_t> claimed_{0};  // of the receives of untagged messages
  std::atomic<std::size_t> posted_{0};   // of these
  std::atomic<std::size_t> ended_{0};    // operations that report to the queue
  std::atomic<std::size_t> received_{0};
  std::atomic<std::size_t> cancelled_{0};
  std::atomic<std::uint64_t> counted_{0};  // events whose counter has come to its end
  std::atomic<bool> failed_{false};
};

}  // namespace weft::conformance
