// SPDX-License-Identifier: BSD-2-Clause
// What weft_bench does: plays the role that the command line gives it.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "failure.h"
#include "options.h"
#include "process.h"
#include "report.h"
#include "selection.h"
#include "session.h"

namespace weft::bench {
namespace {

void print(const Options& options, const Measurement& measurement, const Cores& cores) {
  std::cout << to_json(options, measurement, cores.server != cores.client) << std::endl;
}

// Forks before anything of libfabric is touched: providers do not survive a fork.
int run_pair(const Options& options, const Cores& cores) {
  auto [client_end, server_end] = Channel::make_pair();
  const pid_t parent = getpid();
  const auto child = static_cast<pid_t>(check_system(fork(), "fork"));
  if (child == 0) {
    end_with_parent(parent);
    set_time_limit(options.time_limit);
    pin_to(cores.server);
    { Channel unused(std::move(client_end)); }
    run_server(options, server_end);
    return 0;
  }
  watch_child(child);
  set_time_limit(options.time_limit);
  pin_to(cores.client);
  { Channel unused(std::move(server_end)); }
  print(options, run_client(options, client_end), cores);
  return wait_for(child) ? 0 : 1;
}

int run_listening(const Options& options, const Cores& cores) {
  set_time_limit(options.time_limit);
  pin_to(cores.server);
  Channel channel = Channel::accept_one(options.port);
  run_server(options, channel);
  return 0;
}

int run_connecting(const Options& options, const Cores& cores) {
  set_time_limit(options.time_limit);
  pin_to(cores.client);
  Channel channel = Channel::connect_to(options.host, options.port);
  print(options, run_client(options, channel), cores);
  return 0;
}

int run_self_role(const Options& options, const Cores& cores) {
  set_time_limit(options.time_limit);
  pin_to(cores.client);
  print(options, run_alone(options), cores);
  return 0;
}

int run(const Options& options) {
  const Cores cores = choose_cores(options.cores);
  switch (options.role) {
    case Role::kPair:
      return run_pair(options, cores);
    case Role::kServer:
      return run_listening(options, cores);
    case Role::kClient:
      return run_connecting(options, cores);
    case Role::kSelf:
      return run_self_role(options, cores);
    case Role::kListProviders:
      for (const auto& name : usable_providers()) std::cout << name << '\n';
      return 0;
  }
  return 1;
}

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) { return weft::bench::run(weft::bench::parse_options(argc, argv)); }
