// SPDX-License-Identifier: BSD-2-Clause
// How servers are woken, met, put to sleep and let go.
#include "neighbours.h"

#include "data_check.h"
#include "phase.h"

namespace weft::bench {
namespace {

// Idle peers cost what is still in use when nothing has happened for so long.
constexpr double kSettleSeconds = 0.75;

Clock::time_point wake(Channel& channel) {
  channel.send(Phase{Phase::Kind::kOpen});
  return Clock::now();
}

}  // namespace

// The first server opens its endpoint while this process does.
Neighbours::Neighbours(const Options& options, std::vector<Channel>& channels)
    : options_(options), channels_(channels), start_(wake(channels.front())), station_(options) {
  contexts_.reserve(channels.size());
  meet_next();
  seconds_to_first_message_ = seconds_since(start_);
  if (channels_.size() == 1) return;
  settle();
  const ResourceUse before = resources_in_use();
  while (contexts_.size() < channels_.size()) {
    wake(channels_[contexts_.size()]);
    meet_next();
  }
  settle();
  growth_ = bench::growth(before, resources_in_use(), static_cast<double>(channels_.size() - 1));
}

void Neighbours::meet_next() {
  const std::size_t number = contexts_.size();
  contexts_.push_back(station_.meet(channels_[number], true));
  check(number);
  channels_[number].send(Phase{Phase::Kind::kSleep});
}

void Neighbours::settle() {
  const auto start = Clock::now();
  while (seconds_since(start) < kSettleSeconds) active().completions.poll();
}

void Neighbours::check(std::size_t number) {
  check_as_client(contexts_[number], channels_[number], options_, seed_++);
}

void Neighbours::part() {
  for (std::size_t number = 0; number < contexts_.size(); ++number) {
    check(number);
    channels_[number].send(Phase{Phase::Kind::kFinish});
    // Without a look at completions: receives that are posted may end with the connection.
    if (channels_[number].receive<Signal>() != Signal::kDone) {
      die("control connection", "out of step");
    }
  }
}

}  // namespace weft::bench
