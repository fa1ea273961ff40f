// SPDX-License-Identifier: BSD-2-Clause
// How sends are timed: ping-pong, a stream of them, and to oneself.
#include <algorithm>

#include "piecewise_timer.h"
#include "verbs.h"
#include "workload.h"

namespace weft::bench {
namespace {

template <class Verbs>
void receive(Context& context, std::uint64_t index) {
  post(context.completions, "receive", [&] { return Verbs::receive(context, index); });
}

// Each side posts its next receive after its send, while the peer is busy with that.
template <class Verbs>
double ping_pong_client(Context& context, Channel& channel, std::uint64_t iterations) {
  auto& completions = context.completions;
  completions.start_phase();
  await_signal(channel, completions, Signal::kReady);
  PiecewiseTimer timer(iterations);
  for (std::uint64_t i = 0; i < iterations; ++i) {
    completions.wait_sent(i);  // the buffer is free again
    send<Verbs>(context, i);
    receive<Verbs>(context, i);
    completions.wait_received(i + 1);
    timer.step(i);
  }
  const double seconds = timer.seconds_at_median();
  completions.wait_sent(iterations);
  await_signal(channel, completions, Signal::kDone);
  return seconds;
}

template <class Verbs>
void ping_pong_server(Context& context, Channel& channel, std::uint64_t iterations) {
  auto& completions = context.completions;
  completions.start_phase();
  receive<Verbs>(context, 0);
  channel.send(Signal::kReady);
  for (std::uint64_t i = 0; i < iterations; ++i) {
    completions.wait_received(i + 1);
    completions.wait_sent(i);
    send<Verbs>(context, i);
    if (i + 1 < iterations) receive<Verbs>(context, i + 1);
  }
  completions.wait_sent(iterations);
  channel.send(Signal::kDone);
}

// Ended when the server has said that it received everything.
template <class Verbs>
double stream_client(Context& context, Channel& channel, std::uint64_t iterations) {
  auto& completions = context.completions;
  const std::uint64_t window = context.endpoint.window();
  completions.start_phase();
  await_signal(channel, completions, Signal::kReady);
  const auto start = Clock::now();
  for (std::uint64_t i = 0; i < iterations; ++i) {
    while (i - completions.sent() >= window) completions.poll();
    send<Verbs>(context, i);
  }
  completions.wait_sent(iterations);
  await_signal(channel, completions, Signal::kDone);
  return seconds_since(start);
}

template <class Verbs>
void stream_server(Context& context, Channel& channel, std::uint64_t iterations) {
  auto& completions = context.completions;
  const std::uint64_t window = context.endpoint.window();
  completions.start_phase();
  std::uint64_t posted = 0;
  const auto fill_window = [&] {
    const auto wanted = std::min(iterations, completions.received() + window);
    while (posted < wanted) receive<Verbs>(context, posted++);
  };
  fill_window();
  channel.send(Signal::kReady);
  while (completions.received() < iterations) {
    completions.poll();
    fill_window();
  }
  channel.send(Signal::kDone);
}

template <class Verbs>
void send_to_self(Context& context, std::uint64_t window, std::uint64_t iterations) {
  auto& completions = context.completions;
  completions.start_phase();
  for (std::uint64_t i = 0; i < iterations; ++i) {
    while (i - std::min(completions.sent(), completions.received()) >= window) completions.poll();
    receive<Verbs>(context, i);
    send<Verbs>(context, i);
  }
  completions.wait_received(iterations);
  completions.wait_sent(iterations);
}

// Calls MAKE with the verbs that do what OPTIONS ask for.
template <class Make>
Workload choose_verbs(const Options& options, Make&& make) {
  if (options.operation == Operation::kTagged) return make(TaggedVerbs{});
  if (options.receive == Receive::kMulti) return make(PooledVerbs{});
  return make(MessageVerbs{});
}

}  // namespace

Workload two_sided_latency(const Options& options) {
  return choose_verbs(options, [](auto verbs) -> Workload {
    using Verbs = decltype(verbs);
    return {ping_pong_client<Verbs>, ping_pong_server<Verbs>, 2};
  });
}

Workload two_sided_stream(const Options& options) {
  return choose_verbs(options, [](auto verbs) -> Workload {
    using Verbs = decltype(verbs);
    return {stream_client<Verbs>, stream_server<Verbs>, 1};
  });
}

void run_self(Context& context, const Options& options, std::uint64_t iterations) {
  const bool one_at_a_time = options.metric == Metric::kLatency;
  const std::uint64_t window = one_at_a_time ? 1 : context.endpoint.window();
  if (options.operation == Operation::kMessage) {
    send_to_self<MessageVerbs>(context, window, iterations);
  } else {
    send_to_self<TaggedVerbs>(context, window, iterations);
  }
}

}  // namespace weft::bench
