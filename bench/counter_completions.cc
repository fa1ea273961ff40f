// SPDX-License-Identifier: BSD-2-Clause
// How counters are polled.
#include "counter_completions.h"

#include "failure.h"
#include "queue_completions.h"

namespace weft::bench {
namespace {

// A counter reports a failure only when its error value is read.
constexpr unsigned kPollsPerErrorCheck = 4096;

}  // namespace

CounterCompletions::CounterCompletions(const Endpoint& endpoint)
    : errors_(endpoint.queue()),
      sent_counter_(endpoint.sent_counter()),
      received_counter_(endpoint.received_counter()) {}

// Injected operations are counted when they are posted (count_injected()), and again by the
// counter, sooner or later: the greater number is the right one.
void CounterCompletions::read(fid_cntr* counter, std::uint64_t base, std::uint64_t& count) {
  const std::uint64_t value = fi_cntr_read(counter) - base;
  if (value > count) {
    count = value;
  } else if (++idle_polls_ % kPollsPerErrorCheck == 0) {
    look_for_errors();
  }
}

void CounterCompletions::poll(Interest interest) {
  if (interest != Interest::kReceived) read(sent_counter_, sent_base_, sent_);
  if (interest != Interest::kSent) read(received_counter_, received_base_, received_);
}

void CounterCompletions::start_phase() {
  Completions::start_phase();
  sent_base_ = fi_cntr_read(sent_counter_);
  received_base_ = fi_cntr_read(received_counter_);
}

void CounterCompletions::look_for_errors() {
  check_queue(errors_);
  if (fi_cntr_readerr(sent_counter_) != 0 || fi_cntr_readerr(received_counter_) != 0) {
    die("counter", "an operation failed");
  }
}

}  // namespace weft::bench
