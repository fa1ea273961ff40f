// SPDX-License-Identifier: BSD-2-Clause
// How a measurement goes: check, calibration, repetitions, check.
#include "session.h"

#include <algorithm>
#include <functional>

#include "alone.h"
#include "neighbours.h"
#include "phase.h"
#include "process.h"
#include "selection.h"
#include "workload.h"

namespace weft::bench {
namespace {

constexpr std::uint8_t kSeed = 0x31;
constexpr double kCalibrationSeconds = 0.01;
constexpr std::uint64_t kFirstIterations = 4;
constexpr unsigned kFewestRepetitions = 3;

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

// All processes start libfabric at once, on whatever cores there are: it takes a while.
void start_together(std::vector<Channel>& channels) {
  start_libfabric();
  for (Channel& each : channels) {
    if (each.receive<Signal>() != Signal::kReady) die("control connection", "out of step");
  }
}

void describe(const Endpoint& endpoint, Measurement& result) {
  result.provider = endpoint.provider();
  result.window = endpoint.window();
}

}  // namespace

Measurement run_client(const Options& options, int core, std::vector<Channel>& channels) {
  start_together(channels);
  pin_to(core);
  Neighbours neighbours(options, channels);
  Measurement result;
  describe(neighbours.endpoint(), result);
  result.seconds_to_first_message = neighbours.seconds_to_first_message();
  result.growth = neighbours.growth();
  const Workload workload = workload_for(options);
  const RunPhase run_phase = [&](std::uint64_t iterations) {
    neighbours.active_channel().send(Phase{Phase::Kind::kTimed, iterations});
    return workload.client(neighbours.active(), neighbours.active_channel(), iterations);
  };
  repeat(options, workload.operations_per_iteration, run_phase, result);
  neighbours.part();
  result.lost = neighbours.active().lost;
  return result;
}

Measurement run_alone(const Options& options, const Cores& cores) {
  LoneThreads threads(options, cores);
  Measurement result;
  describe(threads.endpoint(), result);
  threads.check(kSeed);
  const RunPhase run_phase = [&](std::uint64_t iterations) { return threads.run(iterations); };
  repeat(options, options.threads, run_phase, result);
  threads.check(kSeed + 1);
  return result;
}

}  // namespace weft::bench
