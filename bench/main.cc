// SPDX-License-Identifier: BSD-2-Clause
// What weft_bench does: plays the role that the command line gives it.
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <utility>
#include <vector>

#include "failure.h"
#include "options.h"
#include "process.h"
#include "report.h"
#include "selection.h"
#include "server.h"
#include "session.h"

namespace weft::bench {
namespace {

void print(const Options& options, const Measurement& measurement, const Cores& cores) {
  std::cout << to_json(options, measurement, cores.server != cores.client) << std::endl;
}

// Before anything of libfabric is touched: providers do not survive a fork. EARLIER are the ends of
// channels that are not for the new process.
Channel start_server(const Options& options, const Cores& cores, std::vector<Channel>& earlier) {
  auto [near, far] = Channel::make_pair();
  const pid_t parent = getpid();
  if (check_system(fork(), "fork") != 0) return std::move(near);
  set_time_limit(options.time_limit);
  end_with_parent(parent);
  earlier.clear();
  { Channel unused(std::move(near)); }
  if (!options.server_network.empty()) enter_network(options.server_network);
  Options own = options;
  own.address = options.server_address;
  run_server(own, cores.server, far);
  std::exit(0);
}

int run_pair(const Options& options, const Cores& cores) {
  watch_children();
  std::vector<Channel> servers;
  servers.reserve(options.peers);
  while (servers.size() < options.peers) {
    servers.push_back(start_server(options, cores, servers));
  }
  set_time_limit(options.time_limit);
  print(options, run_client(options, cores.client, servers), cores);
  return wait_for_children() ? 0 : 1;
}

int run_listening(const Options& options, const Cores& cores) {
  set_time_limit(options.time_limit);
  Channel channel = Channel::accept_one(options.port);
  run_server(options, cores.server, channel);
  return 0;
}

int run_connecting(const Options& options, const Cores& cores) {
  set_time_limit(options.time_limit);
  std::vector<Channel> server;
  server.push_back(Channel::connect_to(options.host, options.port));
  print(options, run_client(options, cores.client, server), cores);
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
      for (const auto& name : usable_providers(options)) std::cout << name << '\n';
      return 0;
  }
  return 1;
}

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) { return weft::bench::run(weft::bench::parse_options(argc, argv)); }
