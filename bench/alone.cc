// SPDX-License-Identifier: BSD-2-Clause
// What do threads reach that each send to an endpoint of their own?
#include "alone.h"

#include <algorithm>
#include <barrier>
#include <thread>
#include <vector>

#include "data_check.h"
#include "workload.h"

namespace weft::bench {

LoneThreads::LoneThreads(const Options& options, const Cores& cores)
    : options_(options), cores_(cores) {
  const auto domain = open_domain(options);
  for (unsigned i = 0; i < options.threads; ++i) {
    contexts_.push_back(stations_.emplace_back(options, domain).meet_itself());
  }
}

void LoneThreads::check(std::uint8_t seed) {
  for (Context& each : contexts_) check_alone(each, options_, seed);
}

double LoneThreads::run(std::uint64_t iterations) {
  std::vector<Clock::time_point> begins(contexts_.size());
  std::vector<Clock::time_point> ends(contexts_.size());
  std::barrier all_ready(static_cast<std::ptrdiff_t>(contexts_.size()));
  const auto run_one = [&](std::size_t number) {
    pin_to(number % 2 == 0 ? cores_.client : cores_.server);
    all_ready.arrive_and_wait();
    begins[number] = Clock::now();
    run_self(contexts_[number], options_, iterations);
    ends[number] = Clock::now();
  };
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < contexts_.size(); ++i) others.emplace_back(run_one, i);
  run_one(0);
  others.clear();
  const auto begin = *std::min_element(begins.begin(), begins.end());
  const auto end = *std::max_element(ends.begin(), ends.end());
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace weft::bench
