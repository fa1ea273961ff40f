// SPDX-License-Identifier: BSD-2-Clause
// How RMA and atomic operations are timed: one at a time, a stream of them, and writes that the
// target watches for.
#include "piecewise_timer.h"
#include "verbs.h"
#include "workload.h"

namespace weft::bench {
namespace {

template <class Verbs>
void start(Context& context, std::uint64_t index) {
  post(context.completions, "one-sided operation", [&] { return Verbs::start(context, index); });
}

void finish(Context& context, Channel& channel) {
  channel.send(Signal::kOver);
  await_signal(channel, context.completions, Signal::kDone);
}

// Each operation is posted when the one before has completed here.
template <class Verbs>
double one_at_a_time(Context& context, Channel& channel, std::uint64_t iterations) {
  auto& completions = context.completions;
  completions.start_phase();
  await_signal(channel, completions, Signal::kReady);
  PiecewiseTimer timer(iterations);
  for (std::uint64_t i = 0; i < iterations; ++i) {
    start<Verbs>(context, i);
    completions.wait_sent(i + 1);
    timer.step(i);
  }
  const double seconds = timer.seconds_at_median();
  finish(context, channel);
  return seconds;
}

// Ended when the last operation has completed here.
template <class Verbs>
double stream(Context& context, Channel& channel, std::uint64_t iterations) {
  auto& completions = context.completions;
  const std::uint64_t window = context.endpoint.window();
  completions.start_phase();
  await_signal(channel, completions, Signal::kReady);
  const auto begin = Clock::now();
  for (std::uint64_t i = 0; i < iterations; ++i) {
    while (i - completions.sent() >= window) completions.poll();
    start<Verbs>(context, i);
  }
  completions.wait_sent(iterations);
  const double seconds = seconds_since(begin);
  finish(context, channel);
  return seconds;
}

// The target: only lets its provider make progress.
void target(Context& context, Channel& channel, std::uint64_t) {
  channel.send(Signal::kReady);
  await_signal(channel, context.completions, Signal::kOver);
  channel.send(Signal::kDone);
}

// The last byte of a write carries its number, never 0, which the cleared target holds.
std::byte mark(std::uint64_t index) { return static_cast<std::byte>(index % 255 + 1); }

void write_marked(Context& context, std::uint64_t index) {
  auto& completions = context.completions;
  completions.wait_sent(index);  // the buffer is free again
  context.buffers.source(0)[context.buffers.size() - 1] = mark(index);
  if (context.inject) {
    post(completions, "RMA inject", [&] { return WriteVerbs::inject(context, 0); });
    completions.count_injected();
  } else {
    start<WriteVerbs>(context, 0);
  }
}

void await_mark(Context& context, std::uint64_t index) {
  constexpr int kLooksPerPoll = 16;
  const volatile std::byte* last = context.buffers.target(0) + context.buffers.size() - 1;
  for (;;) {
    for (int look = 0; look < kLooksPerPoll; ++look) {
      if (*last == mark(index)) return;
    }
    context.completions.poll();
  }
}

double poll_ping_pong_client(Context& context, Channel& channel, std::uint64_t iterations) {
  context.completions.start_phase();
  context.buffers.clear_target();
  await_signal(channel, context.completions, Signal::kReady);
  channel.send(Signal::kReady);  // both targets are clear now
  PiecewiseTimer timer(iterations);
  for (std::uint64_t i = 0; i < iterations; ++i) {
    write_marked(context, i);
    await_mark(context, i);
    timer.step(i);
  }
  const double seconds = timer.seconds_at_median();
  context.completions.wait_sent(iterations);
  finish(context, channel);
  return seconds;
}

void poll_ping_pong_server(Context& context, Channel& channel, std::uint64_t iterations) {
  auto& completions = context.completions;
  completions.start_phase();
  context.buffers.clear_target();
  channel.send(Signal::kReady);
  await_signal(channel, completions, Signal::kReady);
  for (std::uint64_t i = 0; i < iterations; ++i) {
    await_mark(context, i);
    write_marked(context, i);
  }
  completions.wait_sent(iterations);
  await_signal(channel, completions, Signal::kOver);
  channel.send(Signal::kDone);
}

// Calls MAKE with the verbs that do what OPTIONS ask for.
template <class Make>
Workload choose_verbs(const Options& options, Make&& make) {
  if (options.operation == Operation::kFetchAdd) return make(FetchAddVerbs{});
  if (options.operation == Operation::kCompareSwap) return make(CompareSwapVerbs{});
  if (options.operation == Operation::kRmaRead) return make(ReadVerbs{});
  if (options.completion == Completion::kDelivery) return make(DeliveredWriteVerbs{});
  return make(WriteVerbs{});
}

}  // namespace

Workload one_sided_latency(const Options& options) {
  return choose_verbs(options, [](auto verbs) -> Workload {
    return {one_at_a_time<decltype(verbs)>, target, 1};
  });
}

Workload one_sided_stream(const Options& options) {
  return choose_verbs(options, [](auto verbs) -> Workload {
    return {stream<decltype(verbs)>, target, 1};
  });
}

Workload rma_write_poll_latency() { return {poll_ping_pong_client, poll_ping_pong_server, 2}; }

}  // namespace weft::bench
