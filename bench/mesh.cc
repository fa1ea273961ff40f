// SPDX-License-Identifier: BSD-2-Clause
// How long do many processes take that connect to each other at once?
#include "mesh.h"

#include <sched.h>

#include <chrono>
#include <thread>

#include "connection_pool.h"
#include "selection.h"

namespace weft::bench {
namespace {

// Between two looks of a process whose connections are made: others need the core.
constexpr std::chrono::milliseconds kRest(1);

void require(Channel& channel, Signal expected) {
  if (channel.receive<Signal>() != expected) die("control connection", "out of step");
}

void tell_all(std::vector<Channel>& members, Signal signal) {
  for (Channel& each : members) each.send(signal);
}

void await_all(std::vector<Channel>& members, Signal signal) {
  for (Channel& each : members) require(each, signal);
}

}  // namespace

double run_mesh(const Options& options, std::vector<Channel>& members) {
  std::vector<std::vector<std::byte>> names;
  for (Channel& each : members) names.push_back(each.receive_block());
  for (std::size_t number = 0; number < members.size(); ++number) {
    for (std::size_t next = 1; next <= options.reach; ++next) {
      members[number].send_block(names[(number + next) % members.size()]);
    }
  }
  await_all(members, Signal::kReady);
  const auto start = Clock::now();
  tell_all(members, Signal::kReady);
  await_all(members, Signal::kOver);
  const double seconds = seconds_since(start);
  // First all stop looking at events, of which the end of a connection is one.
  tell_all(members, Signal::kDone);
  await_all(members, Signal::kDone);
  tell_all(members, Signal::kDone);
  return seconds;
}

void run_member(const Options& options, Channel& channel) {
  start_libfabric();
  ConnectionPool pool(options, 2 * options.reach);
  channel.send_block(pool.endpoint().name());
  std::vector<std::vector<std::byte>> next;
  while (next.size() < options.reach) next.push_back(channel.receive_block());
  channel.send(Signal::kReady);
  require(channel, Signal::kReady);
  pool.make(next, options.under_way);
  while (pool.answered() < options.reach) {
    if (!pool.progress()) sched_yield();
  }
  channel.send(Signal::kOver);
  while (!channel.has_input()) {
    while (pool.progress()) {
    }
    std::this_thread::sleep_for(kRest);
  }
  require(channel, Signal::kDone);
  channel.send(Signal::kDone);
  require(channel, Signal::kDone);
}

}  // namespace weft::bench
