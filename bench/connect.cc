// SPDX-License-Identifier: BSD-2-Clause
// What does a connection cost, the first one of a process and each of many?
#include "connect.h"

#include <algorithm>
#include <span>

#include "connection_pool.h"
#include "phase.h"
#include "process.h"
#include "selection.h"

namespace weft::bench {
namespace {

// Connections cost what is still in use when nothing has happened for so long.
constexpr double kSettleSeconds = 0.75;
// A look at the control connection is a system call.
constexpr int kPollsPerLook = 64;

void settle(ConnectionPool& pool) {
  const auto start = Clock::now();
  while (seconds_since(start) < kSettleSeconds) pool.progress();
}

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

using Made = ConnectionPool::Made;

// `made`: in the order of their ends, begun at `start`.
void tell_times(std::span<const Made> made, Clock::time_point start, ConnectFigures& figures) {
  const std::size_t count = made.size();
  const auto until = [&](std::size_t number) {
    return number == 0 ? 0 : seconds_between(start, made[number - 1].end);
  };
  figures.seconds_each = until(count) / static_cast<double>(count);
  const std::size_t quarter = count / 4;
  figures.last_to_first_quarter = (until(count) - until(count - quarter)) / until(quarter);
  std::vector<double> each;
  for (const Made& one : made) each.push_back(seconds_between(one.start, one.end));
  std::ranges::sort(each);
  figures.median_seconds = each[count / 2];
  figures.slow_seconds = each[count - 1 - count / 100];
}

void require(bool in_step) {
  if (!in_step) die("control connection", "out of step");
}

}  // namespace

ConnectFigures connect_as_client(const Options& options, int core, Channel& channel) {
  start_libfabric();
  require(channel.receive<Signal>() == Signal::kReady);
  pin_to(core);
  channel.send(Phase{Phase::Kind::kOpen});
  ConnectionPool pool(options, options.connections + 1);
  const std::vector<std::byte> server = channel.receive_block();
  ConnectFigures figures;
  figures.provider = pool.endpoint().provider();
  pool.make({server}, 1);
  figures.first_seconds = seconds_between(pool.made().front().connect, pool.made().front().end);
  settle(pool);
  const ResourceUse before = resources_in_use();
  const auto start = Clock::now();
  pool.make(std::vector(options.connections, server), options.under_way);
  settle(pool);
  figures.growth = growth(before, resources_in_use(), static_cast<double>(options.connections));
  tell_times(std::span(pool.made()).subspan(1), start, figures);
  channel.send(Phase{Phase::Kind::kFinish});
  // The server looks at no event any more: the end of a connection is one.
  require(channel.receive<Signal>() == Signal::kDone);
  return figures;
}

void connect_as_server(const Options& options, int core, Channel& channel) {
  start_libfabric();
  channel.send(Signal::kReady);
  require(channel.receive<Phase>().kind == Phase::Kind::kOpen);
  pin_to(core);
  ConnectionPool pool(options, options.connections + 1);
  channel.send_block(pool.endpoint().name());
  while (!channel.has_input()) {
    for (int i = 0; i < kPollsPerLook; ++i) pool.progress();
  }
  require(channel.receive<Phase>().kind == Phase::Kind::kFinish);
  require(pool.answered() == options.connections + 1);
  channel.send(Signal::kDone);
}

}  // namespace weft::bench
