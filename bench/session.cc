// SPDX-License-Identifier: BSD-2-Clause
// How a measurement goes: exchange of addresses, check, calibration, repetitions, check.
#include "session.h"

#include <algorithm>
#include <functional>

#include "workload.h"

namespace weft::bench {
namespace {

constexpr std::uint8_t kClientSeed = 0x31;
constexpr std::uint8_t kServerSeed = 0x92;
constexpr double kCalibrationSeconds = 0.01;
constexpr std::uint64_t kFirstIterations = 4;
constexpr unsigned kFewestRepetitions = 3;

// What the client asks the server for.
struct Phase {
  enum class Kind : std::uint32_t { kTimed, kCheck, kFinish } kind;
  std::uint64_t iterations;
};

// Everything that one process opens.
struct Station {
  explicit Station(const Options& options)
      : endpoint(options),
        buffers(endpoint, options.size, options.buffers),
        completions(endpoint.queue()) {}

  Context context(const Options& options, fi_addr_t peer, RemoteBuffers remote) {
    return {endpoint, buffers, completions, peer, remote, uses_inject(options)};
  }

  bool uses_inject(const Options& options) const {
    const bool latency =
        options.metric == Metric::kLatency || options.metric == Metric::kPollLatency;
    const bool wanted =
        options.inject == Inject::kAlways || (options.inject == Inject::kAuto && latency);
    return wanted && options.size <= endpoint.info().tx_attr->inject_size;
  }

  Endpoint endpoint;
  Buffers buffers;
  Completions completions;
};

Context meet_peer(Station& station, const Options& options, Channel& channel, bool asks) {
  channel.send_block(station.endpoint.name());
  channel.send(station.buffers.remote());
  const auto name = channel.receive_block();
  const auto remote = channel.receive<RemoteBuffers>();
  return station.context(options, station.endpoint.meet(name, asks), remote);
}

// A completed write may still be on its way into the target, depending on the completion level.
bool arrives(Context& context, std::uint8_t seed) {
  const auto start = Clock::now();
  while (!context.buffers.target_holds(seed)) {
    if (seconds_since(start) > 1.0) return false;
    context.completions.poll();
  }
  return true;
}

void check_as_client(Context& context, Channel& channel, Operation operation) {
  context.buffers.fill_source(kClientSeed);
  context.buffers.clear_target();
  channel.send(Phase{Phase::Kind::kCheck, 1});
  workload_for(operation, Metric::kLatency).client(context, channel, 1);
  const bool server_content = await<bool>(channel, context.completions);
  const bool own_content = operation == Operation::kRmaWrite || is_atomic(operation) ||
                           context.buffers.target_holds(kServerSeed);
  if (!server_content || !own_content) die("data check", "the wrong bytes arrived");
}

void check_as_server(Context& context, Channel& channel, Operation operation) {
  context.buffers.fill_source(kServerSeed);
  context.buffers.clear_target();
  workload_for(operation, Metric::kLatency).server(context, channel, 1);
  channel.send(operation == Operation::kRmaRead || arrives(context, kClientSeed));
}

using RunPhase = std::function<double(std::uint64_t iterations)>;

// How many iterations take about OPTIONS.seconds: grows until a phase is long enough to tell. The
// shorter of two runs counts, so that one interruption is not taken for a slow operation.
std::uint64_t calibrate(const Options& options, const RunPhase& run_phase) {
  std::uint64_t iterations = kFirstIterations;
  const auto shorter_of_two = [&] {
    const double first = run_phase(iterations);
    return first > options.seconds ? first : std::min(first, run_phase(iterations));
  };
  double seconds = shorter_of_two();
  while (seconds < kCalibrationSeconds) {
    iterations *= seconds < kCalibrationSeconds / 8 ? 8 : 2;
    seconds = shorter_of_two();
  }
  const double wanted = options.seconds * static_cast<double>(iterations) / seconds;
  return std::max(static_cast<std::uint64_t>(wanted), kFirstIterations);
}

void repeat(const Options& options, double operations_per_iteration, const RunPhase& run_phase,
            Measurement& result) {
  result.iterations = options.iterations > 0 ? options.iterations : calibrate(options, run_phase);
  const double operations = static_cast<double>(result.iterations) * operations_per_iteration;
  const double budget = 2 * options.seconds * options.repetitions;
  const auto start = Clock::now();
  for (unsigned i = 0; i < options.repetitions; ++i) {
    // Where even the fewest iterations take longer than asked for.
    if (i >= kFewestRepetitions && seconds_since(start) > budget) break;
    result.seconds_per_operation.push_back(run_phase(result.iterations) / operations);
  }
}

}  // namespace

Measurement run_client(const Options& options, Channel& channel) {
  Station station(options);
  Context context = meet_peer(station, options, channel, true);
  const Workload workload = workload_for(options.operation, options.metric);
  Measurement result{station.endpoint.provider(), station.endpoint.window(), 0, {}};
  check_as_client(context, channel, options.operation);
  const RunPhase run_phase = [&](std::uint64_t iterations) {
    channel.send(Phase{Phase::Kind::kTimed, iterations});
    return workload.client(context, channel, iterations);
  };
  repeat(options, workload.operations_per_iteration, run_phase, result);
  check_as_client(context, channel, options.operation);
  channel.send(Phase{Phase::Kind::kFinish, 0});
  return result;
}

void run_server(const Options& options, Channel& channel) {
  Station station(options);
  Context context = meet_peer(station, options, channel, false);
  const Workload workload = workload_for(options.operation, options.metric);
  for (;;) {
    const auto phase = await<Phase>(channel, station.completions);
    switch (phase.kind) {
      case Phase::Kind::kTimed:
        workload.server(context, channel, phase.iterations);
        break;
      case Phase::Kind::kCheck:
        check_as_server(context, channel, options.operation);
        break;
      case Phase::Kind::kFinish:
        return;
    }
  }
}

Measurement run_alone(const Options& options) {
  Station station(options);
  const fi_addr_t self = station.endpoint.meet(station.endpoint.name(), true);
  Context context = station.context(options, self, station.buffers.remote());
  Measurement result{station.endpoint.provider(), station.endpoint.window(), 0, {}};
  const RunPhase run_phase = [&](std::uint64_t iterations) {
    return run_self(context, options.operation, iterations);
  };
  station.buffers.fill_source(kClientSeed);
  station.buffers.clear_target();
  run_phase(1);
  if (!station.buffers.target_holds(kClientSeed)) die("data check", "the wrong bytes arrived");
  repeat(options, 1, run_phase, result);
  return result;
}

}  // namespace weft::bench
