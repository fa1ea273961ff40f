// SPDX-License-Identifier: BSD-2-Clause
// Which operations of a flow have not ended, and which ends has its user not heard of?
#pragma once

#include <list>
#include <vector>

#include "base/budget.h"
#include "operation.h"

namespace weft::rdm {

struct Shared;

// The operations of one flow. One thread at a time.
class Operations {
 public:
  explicit Operations(Shared& shared);

  // A new one, with one work until WorkQueue::started(). With `reported` its end is reported.
  RdmOperation& begin(WorkQueue& queue, void* cookie, bool reported);
  // It has ended, and does not exist any more.
  void end(RdmOperation& operation);
  // Its end is reported, once, and the program has its buffers back. Packets may still be in
  // flight.
  void report_end(RdmOperation& operation, int error, int detail = 0);
  // It ends and is not reported: nothing of it was posted.
  void drop(RdmOperation& operation);
  // It reads memory of the peer.
  void mark_as_read(RdmOperation& operation);
  bool any_reads() const { return reading_ != 0; }
  // It answers the peer with `bytes`, which the peer has to acknowledge.
  void charge_answer(RdmOperation& operation, std::size_t bytes);
  // False while the peer has so many answers to acknowledge that it may ask for nothing more.
  bool may_answer() const;

  std::size_t count() const { return live_.size(); }
  std::list<RdmOperation>& live() { return live_; }
  // Some use buffers of the program at this time: not messages that are only offered, nor receives.
  bool any_borrows() const;
  // Without its user, reports are dropped.
  void hold() { ++holders_; }
  void release() {
    if (--holders_ == 0) finished_.clear();
  }
  bool held() const { return holders_ != 0; }
  bool busy() const { return reported_ != 0; }
  bool has_reports() const { return !finished_.empty(); }
  void report(link::FlowSink& sink);
  void trim();

 private:
  struct Finished {
    void* cookie = nullptr;
    int error = 0;
    int detail = 0;
  };

  Shared& shared_;
  Budget::Share messages_;  // of Shared::message_memory
  std::list<RdmOperation> live_;
  std::vector<Finished> finished_;
  std::size_t reported_ = 0;  // operations whose end is reported
  std::size_t reading_ = 0;   // of these, those that read memory of the peer
  unsigned holders_ = 0;      // flows of the user
};

}  // namespace weft::rdm
