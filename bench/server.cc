// SPDX-License-Identifier: BSD-2-Clause
// How a server serves.
#include "server.h"

#include "data_check.h"
#include "phase.h"
#include "process.h"
#include "selection.h"
#include "station.h"
#include "workload.h"

namespace weft::bench {
namespace {

// False when there is nothing more to do.
bool serve(Phase phase, Context& context, Channel& channel, const Options& options) {
  switch (phase.kind) {
    case Phase::Kind::kTimed:
      workload_for(options).server(context, channel, phase.number);
      return true;
    case Phase::Kind::kCheck:
      check_as_server(context, channel, options, static_cast<std::uint8_t>(phase.number));
      return true;
    case Phase::Kind::kSleep:
      channel.wait_for_input();
      return true;
    case Phase::Kind::kFinish:
      channel.send(Signal::kDone);
      return false;
    case Phase::Kind::kOpen:
      break;
  }
  die("control connection", "out of step");
}

}  // namespace

void run_server(const Options& options, int core, Channel& channel) {
  start_libfabric();
  channel.send(Signal::kReady);
  const auto first = channel.receive<Phase>();
  if (first.kind != Phase::Kind::kOpen) die("control connection", "out of step");
  pin_to(core);
  Station station(options);
  Context context = station.meet(channel, false);
  while (serve(await<Phase>(channel, context.completions), context, channel, options)) {
  }
}

}  // namespace weft::bench
