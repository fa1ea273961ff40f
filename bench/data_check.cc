// SPDX-License-Identifier: BSD-2-Clause
// How data are made, moved once and compared.
#include "data_check.h"

#include "phase.h"
#include "workload.h"

namespace weft::bench {
namespace {

// What the server sends back, or lets be read.
std::uint8_t answer_to(std::uint8_t seed) { return static_cast<std::uint8_t>(seed ^ 0xa5); }

// A completed write may still be on its way into the target, depending on the completion level.
bool arrives(Context& context, std::uint8_t seed) {
  const auto start = Clock::now();
  while (!context.buffers.holds(context.arrival(), seed)) {
    if (seconds_since(start) > 1.0) return false;
    context.completions.poll();
  }
  return true;
}

bool answers(Operation operation) {
  return !is_one_sided(operation) || operation == Operation::kRmaRead;
}

}  // namespace

void check_as_client(Context& context, Channel& channel, const Options& options,
                     std::uint8_t seed) {
  context.buffers.fill_source(seed);
  context.buffers.clear_target();
  channel.send(Phase{Phase::Kind::kCheck, seed});
  exchange(options).client(context, channel, 1);
  const bool server_content = await<bool>(channel, context.completions);
  const bool own_content =
      !answers(options.operation) || context.buffers.holds(context.arrival(), answer_to(seed));
  if (!server_content || !own_content) die("data check", "the wrong bytes arrived");
}

void check_as_server(Context& context, Channel& channel, const Options& options,
                     std::uint8_t seed) {
  context.buffers.fill_source(answer_to(seed));
  context.buffers.clear_target();
  exchange(options).server(context, channel, 1);
  channel.send(options.operation == Operation::kRmaRead || arrives(context, seed));
}

void check_alone(Context& context, const Options& options, std::uint8_t seed) {
  context.buffers.fill_source(seed);
  context.buffers.clear_target();
  run_self(context, options, 1);
  if (!context.buffers.holds(context.arrival(), seed)) {
    die("data check", "the wrong bytes arrived");
  }
}

}  // namespace weft::bench
