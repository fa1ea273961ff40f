// SPDX-License-Identifier: BSD-2-Clause
// Which reads and atomic operations is the peer owed answers to, first or again?
#pragma once

#include <vector>

#include "transport/psn_ranges.h"
#include "transport/settings.h"
#include "wire/packet.h"
#include "work/target.h"

namespace weft::transport {

// An executed read or atomic operation: what is answered, and remembered in case that the request
// comes again.
struct ExecutedRequest {
  bool reads = false;
  work::RequestVerdict lost;  // not kYes: its memory was gone when the request arrived
  bool repeated = false;      // answered before
  PsnRange range;
  work::RemoteMemory memory;   // of a read
  std::uint64_t original = 0;  // of an atomic operation
  std::uint32_t message_number = 0;
  std::uint32_t written = 0;  // packets of the answer
};

// The answers in the order in which they leave, and the requests that may come again: as many as
// both ends agreed on, and up to kMostAnswers with repeated ones. The bytes of a read are fetched
// when its answer is written. One thread at a time.
class AnswerQueue {
 public:
  // Both outlive it; `settings.path_mtu` may change before forget_reads().
  AnswerQueue(const Settings& settings, work::Target& target)
      : settings_(settings), target_(target) {}

  bool empty() const { return answers_.empty(); }
  // The answer that leaves last is that of the request with this number.
  bool ends_with(Psn psn) const { return !answers_.empty() && answers_.back().range.first == psn; }
  // The peer may have one more request with a value in flight.
  bool may_add() const;
  // A request was executed; its answer is owed.
  void add(const ExecutedRequest& request);
  // The request comes again, a read as a whole or in part. One that is not remembered is ignored.
  void repeat_read(const wire::Packet& request);
  void repeat_atomic(Psn psn);

  // The next packet of the first answer.
  struct Written {
    std::size_t length = 0;  // bytes; 0: the memory cannot be read any more, the answer is dropped
    Psn psn;
    work::RequestVerdict verdict;  // why
  };
  // Writes it into `out`. Not when empty().
  Written next(std::span<std::byte> out);
  // Drops all answers.
  void clear() { answers_.clear(); }
  // Drops all answers, and ignores repetitions of the reads so far.
  void forget_reads() {
    clear();
    std::erase_if(remembered_, [](const ExecutedRequest& each) { return each.reads; });
  }

 private:
  static constexpr std::size_t kMostAnswers = 64;

  void answer_again(ExecutedRequest request);
  Written write_read(ExecutedRequest& read, std::span<std::byte> out);
  Written lose(Psn psn, const work::RequestVerdict& why);

  const Settings& settings_;
  work::Target& target_;
  std::vector<ExecutedRequest> answers_;  // few, and no memory where there are none
  std::vector<ExecutedRequest> remembered_;
};

}  // namespace weft::transport
