// SPDX-License-Identifier: BSD-2-Clause
// How does one side keep a stream of one kind of operation going toward a peer?
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "action.h"
#include "node.h"

namespace weft::faults {

// The other side, as the initiator of operations sees it.
struct Target {
  fid_ep* endpoint = nullptr;          // of this side, from which it is reached
  fi_addr_t address = FI_ADDR_UNSPEC;  // of the other side; means nothing on a connection
  std::uint64_t id = 0;                // of the session
  std::uint64_t base = 0;              // of its arena within its region kArenaKey
  std::uint64_t churn_key = 0;
};

// Posts operations of one Action toward one Target as long as its window has room; verifies what it
// reads.
class Initiator final : public CompletionTarget {
 public:
  // Hears the positive error of each operation that failed or that the library refused to take
  // (other than for the moment, FI_EAGAIN), with a text that names it.
  using OnError = std::function<void(int error, const std::string& what)>;

  Initiator(Action action, const Target& target, std::uint64_t seed, OnError on_error);

  // Posts until the window is full or the library says FI_EAGAIN; returns how many it took.
  int advance();

  // One more operation past the window, for a peer that is known to be dead: false while FI_EAGAIN.
  bool post_late();

  std::size_t pending() const { return pending_; }
  std::uint64_t completed_count() const { return completed_; }
  std::string describe_pending() const;

  void completed(Operation& operation, const fi_cq_tagged_entry& entry) override;
  void failed(Operation& operation, const fi_cq_err_entry& error) override;

 private:
  bool try_post(Operation& operation);
  void prepare(Operation& operation);
  long post(Operation& operation);
  long post_delivered(Operation& operation);
  long post_cell(Operation& operation);
  long post_atomic(Operation& operation);
  std::size_t choose_size();
  void settle(Operation& operation);

  Action action_;
  Target target_;
  std::mt19937_64 random_;
  OnError on_error_;
  std::unique_ptr<std::uint8_t[]> memory_;
  std::array<std::uint64_t, 32> sums_{};  // that atomic operations bring back
  std::vector<std::unique_ptr<Operation>> operations_;
  std::vector<Operation*> free_;
  Operation* prepared_ = nullptr;
  std::uint64_t next_sequence_ = 0;
  std::uint64_t completed_ = 0;
  std::size_t pending_ = 0;
};

}  // namespace weft::faults
