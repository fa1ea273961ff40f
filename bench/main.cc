// SPDX-License-Identifier: BSD-2-Clause
// What weft_bench does: plays the role that the command line gives it.
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <iostream>
#include <utility>
#include <vector>

#include "connect.h"
#include "failure.h"
#include "mesh.h"
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

// What a forked process runs, with its number and its end of the channel to this one.
using Child = std::function<void(std::size_t number, Channel&)>;

// Before anything of libfabric is touched: providers do not survive a fork. EARLIER are the ends of
// channels that are not for the new process.
Channel start_child(const Options& options, const Child& run, std::vector<Channel>& earlier) {
  auto [near, far] = Channel::make_pair();
  const pid_t parent = getpid();
  if (check_system(fork(), "fork") != 0) return std::move(near);
  set_time_limit(options.time_limit);
  end_with_parent(parent);
  const std::size_t number = earlier.size();
  earlier.clear();
  { Channel unused(std::move(near)); }
  run(number, far);
  std::exit(0);
}

std::vector<Channel> start_children(const Options& options, std::size_t count, const Child& run) {
  watch_children();
  std::vector<Channel> children;
  children.reserve(count);
  while (children.size() < count) children.push_back(start_child(options, run, children));
  set_time_limit(options.time_limit);
  return children;
}

// Moves the calling process to where servers are. Returns the options of a process there.
Options on_server_side(const Options& options) {
  if (!options.server_network.empty()) enter_network(options.server_network);
  Options own = options;
  own.address = options.server_address;
  return own;
}

void serve(const Options& options, const Cores& cores, Channel& channel) {
  const bool connects = options.metric == Metric::kConnect;
  (connects ? connect_as_server : run_server)(options, cores.server, channel);
}

void measure(const Options& options, const Cores& cores, std::vector<Channel>& servers) {
  if (options.metric == Metric::kConnect) {
    std::cout << to_json(options, connect_as_client(options, cores.client, servers.front()))
              << std::endl;
  } else {
    print(options, run_client(options, cores.client, servers), cores);
  }
}

int run_pair(const Options& options, const Cores& cores) {
  auto servers = start_children(options, options.peers, [&](std::size_t, Channel& channel) {
    serve(on_server_side(options), cores, channel);
  });
  measure(options, cores, servers);
  return wait_for_children() ? 0 : 1;
}

// Every other process of the ring is on the side of servers.
int run_ring(const Options& options) {
  const Child member = [&](std::size_t number, Channel& channel) {
    run_member(number % 2 == 0 ? options : on_server_side(options), channel);
  };
  auto members = start_children(options, options.processes, member);
  std::cout << to_json(options, run_mesh(options, members)) << std::endl;
  return wait_for_children() ? 0 : 1;
}

int run_listening(const Options& options, const Cores& cores) {
  set_time_limit(options.time_limit);
  Channel channel = Channel::accept_one(options.port);
  serve(options, cores, channel);
  return 0;
}

int run_connecting(const Options& options, const Cores& cores) {
  set_time_limit(options.time_limit);
  std::vector<Channel> server;
  server.push_back(Channel::connect_to(options.host, options.port));
  measure(options, cores, server);
  return 0;
}

int run_self_role(const Options& options, const Cores& cores) {
  set_time_limit(options.time_limit);
  pin_to(cores.client);
  print(options, run_alone(options, cores), cores);
  return 0;
}

int run(const Options& options) {
  const Cores cores = choose_cores(options.cores);
  if (makes_connections(options.metric)) raise_descriptor_limit();
  switch (options.role) {
    case Role::kPair:
      return options.metric == Metric::kMesh ? run_ring(options) : run_pair(options, cores);
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
