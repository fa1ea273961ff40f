// SPDX-License-Identifier: BSD-2-Clause
// How unreliable datagrams are timed: what is lost is noticed, written off and not counted.
#include <algorithm>
#include <cstring>
#include <utility>

#include "piecewise_timer.h"
#include "verbs.h"
#include "workload.h"

namespace weft::bench {
namespace {

// What was not seen after so long was lost: both processes spin, so it would have come.
constexpr double kPatienceSeconds = 0.01;
constexpr double kSilenceSeconds = kPatienceSeconds / 4;
constexpr unsigned kPollsPerLook = 256;  // a look is a system call
constexpr unsigned kMostAttempts = 100;  // at one datagram

// Tells how long nothing has happened, without reading a clock while something does.
class Silence {
 public:
  void broken() { idle_ = 0; }
  // To be called after a poll that brought nothing: whether it is time for a look elsewhere.
  bool look() {
    if (++idle_ == kPollsPerLook) since_ = Clock::now();
    return idle_ % kPollsPerLook == 0;
  }
  // At a look: the seconds since the first one.
  double seconds() const { return seconds_since(since_); }

 private:
  unsigned idle_ = 0;
  Clock::time_point since_;
};

// How many datagrams of a stream have arrived, told by the server now and then.
struct Acknowledgement {
  std::uint64_t phase;  // one of an earlier phase may come late
  std::uint64_t arrived;
};

// The receives of one phase, all into the first target buffer: a datagram that finds none
// is lost, or kept for a later one.
class Receives {
 public:
  Receives(Context& context, std::uint64_t depth)
      : context_(context), depth_(depth), posted_(context.spare_receives) {
    context.completions.start_phase();
    context.phase += 1;
    refill();
  }
  ~Receives() { context_.spare_receives = posted_ - context_.completions.received(); }
  Receives(const Receives&) = delete;
  Receives& operator=(const Receives&) = delete;

  // As many are posted again as were used.
  void refill() {
    for (; posted_ < context_.completions.received() + depth_; ++posted_) {
      post(context_.completions, "receive", [&] { return receive(); });
    }
  }

 private:
  ssize_t receive() {
    const std::size_t room = std::max(context_.buffers.size(), sizeof(Acknowledgement));
    return fi_recv(context_.peer.ep, context_.buffers.target(0), room,
                   context_.buffers.descriptor(), FI_ADDR_UNSPEC,
                   context_.completions.received_context());
  }

  Context& context_;
  std::uint64_t depth_;
  std::uint64_t posted_;
};

// Polls until WORK, called after each poll, has found nothing to do for a while.
template <class Work>
void drain(Context& context, Work&& work) {
  for (Silence silence; !silence.look() || silence.seconds() < kSilenceSeconds;) {
    context.completions.poll();
    if (work()) silence.broken();
  }
}

constexpr std::uint64_t kPingPongDepth = 4;

// Whether COUNT answers have come. If one stays out, the two sides wait until nothing is under way
// between them, so that no answer is ever taken for another.
bool answered(Context& context, Channel& channel, std::uint64_t count) {
  auto& completions = context.completions;
  Silence silence;
  while (completions.received() < count) {
    completions.poll(Completions::Interest::kReceived);
    if (!silence.look() || silence.seconds() < kPatienceSeconds) continue;
    channel.send(Signal::kLost);
    await_signal(channel, completions, Signal::kReady);
    drain(context, [] { return false; });
    break;
  }
  return completions.received() >= count;
}

double ping_pong_client(Context& context, Channel& channel, std::uint64_t iterations) {
  auto& completions = context.completions;
  Receives receives(context, kPingPongDepth);
  await_signal(channel, completions, Signal::kReady);
  PiecewiseTimer timer(iterations);
  std::uint64_t lost = 0;
  for (std::uint64_t i = 0; i < iterations; ++i) {
    for (unsigned attempt = 0;; ++attempt, ++lost) {
      if (attempt == kMostAttempts) die("datagrams", "none is answered");
      completions.wait_sent(i + lost);  // the buffer is free again
      send<MessageVerbs>(context, i);
      receives.refill();
      if (answered(context, channel, i + 1)) break;
    }
    timer.step(i);
  }
  const double seconds = timer.seconds_at_median();
  context.lost += lost;
  completions.wait_sent(iterations + lost);
  channel.send(Signal::kOver);
  await_signal(channel, completions, Signal::kDone);
  return seconds;
}

// Answers whatever comes until the client says that it is over.
void ping_pong_server(Context& context, Channel& channel, std::uint64_t) {
  auto& completions = context.completions;
  Receives receives(context, kPingPongDepth);
  channel.send(Signal::kReady);
  std::uint64_t done = 0;
  const auto answer = [&] {
    if (completions.received() == done) return false;
    completions.wait_sent(done);
    send<MessageVerbs>(context, done++);
    receives.refill();
    return true;
  };
  for (Silence silence;;) {
    completions.poll(Completions::Interest::kReceived);
    if (answer()) {
      silence.broken();
    } else if (silence.look() && channel.has_input()) {
      if (channel.receive<Signal>() == Signal::kOver) break;
      drain(context, answer);
      channel.send(Signal::kReady);
    }
  }
  completions.wait_sent(done);
  channel.send(Signal::kDone);
}

constexpr std::uint64_t kAcknowledgementsPerWindow = 4;
constexpr std::uint64_t kAcknowledgementDepth = 4 * kAcknowledgementsPerWindow;

// What the sender of a stream knows of its
class Flight {
 public:
  explicit Flight(Context& context) : context_(context) { context.buffers.clear_target(); }

  // Waits until fewer than LIMIT of the SENT ones are under way: neither acknowledged nor lost.
  void wait_below(std::uint64_t limit, std::uint64_t sent) {
    for (Silence silence; sent - std::min(sent, arrived_ + written_off_) >= limit;) {
      context_.completions.poll();
      if (read_acknowledgement()) {
        silence.broken();
      } else if (silence.look() && silence.seconds() > kPatienceSeconds) {
        written_off_ = sent - arrived_;
      }
    }
  }

 private:
  // Whether there is news.
  bool read_acknowledgement() {
    Acknowledgement last;
    std::memcpy(&last, context_.buffers.target(0), sizeof last);
    if (last.phase != context_.phase || last.arrived <= arrived_) return false;
    arrived_ = last.arrived;
    return true;
  }

  Context& context_;
  std::uint64_t arrived_ = 0;
  std::uint64_t written_off_ = 0;
};

// Ended when the server has said how many arrived. Only those count: the time that is returned is
// longer by as much as ITERATIONS is more.
double stream_client(Context& context, Channel& channel, std::uint64_t iterations) {
  auto& completions = context.completions;
  const std::uint64_t window = context.endpoint.window();
  Receives receives(context, kAcknowledgementDepth);
  Flight flight(context);
  await_signal(channel, completions, Signal::kReady);
  const auto start = Clock::now();
  for (std::uint64_t i = 0; i < iterations; ++i) {
    while (i - completions.sent() >= window) completions.poll();
    flight.wait_below(window, i);
    receives.refill();
    send<MessageVerbs>(context, i);
  }
  completions.wait_sent(iterations);
  channel.send(Signal::kOver);
  const auto arrived = await<std::uint64_t>(channel, completions);
  const double seconds = seconds_since(start);
  if (arrived == 0) die("datagrams", "none has arrived");
  // Acknowledgements that came while no receive was free may be kept: the next phase would take
  // them for answers.
  drain(context, [&, seen = completions.received()]() mutable {
    receives.refill();
    return std::exchange(seen, completions.received()) != completions.received();
  });
  context.lost += iterations - arrived;
  return seconds * static_cast<double>(iterations) / static_cast<double>(arrived);
}

void acknowledge(Context& context) {
  const Acknowledgement now{context.phase, context.completions.received()};
  post(context.completions, "inject",
       [&] { return fi_inject(context.peer.ep, &now, sizeof now, context.peer.address); });
}

void stream_server(Context& context, Channel& channel, std::uint64_t iterations) {
  auto& completions = context.completions;
  const std::uint64_t window = context.endpoint.window();
  const std::uint64_t step = std::max<std::uint64_t>(window / kAcknowledgementsPerWindow, 1);
  Receives receives(context, window);
  channel.send(Signal::kReady);
  std::uint64_t seen = 0;
  std::uint64_t told = 0;
  bool over = false;  // whether the client has sent all
  for (Silence silence; completions.received() < iterations;) {
    completions.poll(Completions::Interest::kReceived);
    if (completions.received() != seen) {
      seen = completions.received();
      silence.broken();
      receives.refill();
      if (seen - told < step) continue;
      acknowledge(context);
      told = seen;
    } else if (silence.look()) {
      if (over && silence.seconds() > kSilenceSeconds) break;
      if (!over && channel.has_input()) over = channel.receive<Signal>() == Signal::kOver;
    }
  }
  if (!over) await_signal(channel, completions, Signal::kOver);
  channel.send(completions.received());
}

}  // namespace

Workload datagram_latency() { return {ping_pong_client, ping_pong_server, 2}; }

Workload datagram_stream() { return {stream_client, stream_server, 1}; }

}  // namespace weft::bench
