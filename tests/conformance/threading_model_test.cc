// SPDX-License-Identifier: BSD-2-Clause
// Does each threading model hold for the most parallel program that it allows? (fi_domain(3),
// "Multi-threading Support")
//
// Without serialization by the program may run at the same time:
//
// * FI_THREAD_SAFE: everything. Any number of threads transmit, receive and cancel on one endpoint,
//   read and wait for one completion queue, one counter, one poll set and one wait set.
// * FI_THREAD_FID: the use of different objects: an endpoint, a completion queue, a counter, a wait
//   set and a poll set, though they are bound to each other; and the two data flows of one
//   endpoint: "no serialization is required between the submission of data transmit requests and
//   data receive operations". Each of these has a thread of its own.
// * FI_THREAD_ENDPOINT: the same, but both data flows of an endpoint are used by one thread.
// * FI_THREAD_COMPLETION: the use of objects that no completion structure (completion queue,
//   counter, wait set, poll set) associates with each other. Each thread has an endpoint with such
//   objects of its own; domain, address vector and regions are those of all threads.
// * FI_THREAD_DOMAIN: the use of different domains. Each thread has a domain of its own; their
//   endpoints communicate with each other.
//
// Under each of them more threads make control calls in the same domains all the time: "Control
// interfaces are always considered thread safe".
#include <sched.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <tuple>
#include <vector>

#include "support/control_calls.h"
#include "support/lane.h"

namespace weft::conformance {
namespace {

constexpr std::size_t kSafeThreads = 4;
constexpr int kControlThreads = 2;
// The timeout of calls that block: short, since the last event may have been reported already.
constexpr int kBlockMs = 1;

using Steps = std::vector<std::function<void()>>;
using Parallelism = std::tuple<fi_threading, fi_ep_type, fi_progress>;

const char* name_of(fi_threading threading) {
  switch (threading) {
    case FI_THREAD_SAFE:
      return "Safe";
    case FI_THREAD_FID:
      return "Fid";
    case FI_THREAD_ENDPOINT:
      return "Endpoint";
    case FI_THREAD_COMPLETION:
      return "Completion";
    case FI_THREAD_DOMAIN:
      return "Domain";
    case FI_THREAD_UNSPEC:
      break;
  }
  return "Unspec";
}

const char* name_of(fi_ep_type type) {
  return type == FI_EP_RDM ? "Rdm" : type == FI_EP_MSG ? "Msg" : "Dgram";
}

std::string parallelism_name(const testing::TestParamInfo<Parallelism>& one) {
  const auto& [threading, type, progress] = one.param;
  const char* const progressing = progress == FI_PROGRESS_AUTO ? "_Auto" : "";
  return std::string(name_of(threading)) + "_" + name_of(type) + progressing;
}

class ThreadingModel : public testing::TestWithParam<Parallelism> {
 protected:
  fi_threading threading() const { return std::get<fi_threading>(GetParam()); }
  void open();
  // The steps of each thread that moves data.
  std::vector<Steps> threads();
  void run(const std::vector<Steps>& threads);

 private:
  // Threads that have isolated resources need some lanes more.
  std::size_t lane_count() const {
    return threading() == FI_THREAD_COMPLETION || threading() == FI_THREAD_DOMAIN ? 4 : 2;
  }
  Steps all_parts(int timeout_ms);
  void add_threads_of(Lane& lane, std::vector<Steps>& threads);
  bool is_over() const;
  void move_data(const Steps& steps) const;
  void control(int thread);

  std::deque<Lane> lanes_;
  std::chrono::steady_clock::time_point deadline_;
};

void ThreadingModel::open() {
  const auto type = std::get<fi_ep_type>(GetParam());
  Options options = lane_options(type, threading());
  options.data_progress = std::get<fi_progress>(GetParam());
  std::shared_ptr<Domain> domain;
  for (std::size_t i = 0; i < lane_count(); ++i) {
    const bool own_domain = i == 0 || threading() == FI_THREAD_DOMAIN;
    if (own_domain) domain = std::make_shared<Domain>(options);
    ASSERT_TRUE(domain->ok());
    ASSERT_EQ(domain->info()->domain_attr->threading, threading());
    fid_av* const addresses = own_domain ? nullptr : lanes_.front().endpoint().av();
    lanes_.emplace_back(domain, options, i, i % 2 == 0, addresses);
    ASSERT_TRUE(lanes_.back().ok());
  }
  for (std::size_t i = 0; i < lanes_.size(); i += 2) Lane::join(lanes_[i], lanes_[i + 1]);
}

Steps ThreadingModel::all_parts(int timeout_ms) {
  Steps steps;
  for (Lane& lane : lanes_) {
    for (const LanePart part : lane.parts()) steps.push_back(lane.steps(part, timeout_ms));
  }
  return steps;
}

void ThreadingModel::add_threads_of(Lane& lane, std::vector<Steps>& threads) {
  if (threading() == FI_THREAD_COMPLETION || threading() == FI_THREAD_DOMAIN) {
    Steps& steps = threads.emplace_back();
    for (const LanePart part : lane.parts()) steps.push_back(lane.steps(part, 0));
    return;
  }
  for (const LanePart part : lane.parts()) {
    const bool with_sends = part == LanePart::kReceive && threading() == FI_THREAD_ENDPOINT;
    if (with_sends) {
      threads.back().push_back(lane.steps(part, kBlockMs));
    } else {
      threads.push_back({lane.steps(part, kBlockMs)});
    }
  }
}

std::vector<Steps> ThreadingModel::threads() {
  std::vector<Steps> threads;
  if (threading() == FI_THREAD_SAFE) {
    for (std::size_t i = 0; i < kSafeThreads; ++i) {
      threads.push_back(all_parts(i % 2 == 0 ? 0 : kBlockMs));
    }
  } else {
    for (Lane& lane : lanes_) add_threads_of(lane, threads);
  }
  return threads;
}

bool ThreadingModel::is_over() const {
  const auto done = [](const Lane& lane) { return lane.is_done(); };
  const auto failed = [](const Lane& lane) { return lane.failed(); };
  return std::all_of(lanes_.begin(), lanes_.end(), done) ||
         std::any_of(lanes_.begin(), lanes_.end(), failed) ||
         std::chrono::steady_clock::now() > deadline_;
}

void ThreadingModel::move_data(const Steps& steps) const {
  while (!is_over()) {
    for (const auto& step : steps) step();
    sched_yield();
  }
}

// All kinds of control calls, with the objects of each lane in turn.
void ThreadingModel::control(int thread) {
  std::size_t next = static_cast<std::size_t>(thread);
  do {
    Endpoint& used = lanes_[next++ % lanes_.size()].endpoint();
    ControlCalls calls({used.domain().get(), used.cq(), used.av(), used.ep()}, thread);
    calls.make_each();
  } while (!is_over());
}

void ThreadingModel::run(const std::vector<Steps>& threads) {
  deadline_ = std::chrono::steady_clock::now() + patience();
  std::vector<std::thread> running;
  for (const Steps& steps : threads) {
    running.emplace_back([this, &steps] { move_data(steps); });
  }
  for (int i = 0; i < kControlThreads; ++i) {
    running.emplace_back([this, i] { control(i); });
  }
  for (std::thread& thread : running) thread.join();
  for (Lane& lane : lanes_) lane.verify();
}

TEST_P(ThreadingModel, HoldsForTheMostParallelProgramThatItAllows) {
  ASSERT_NO_FATAL_FAILURE(open());
  run(threads());
}

INSTANTIATE_TEST_SUITE_P(Threaded, ThreadingModel,
                         testing::Combine(testing::Values(FI_THREAD_SAFE, FI_THREAD_FID,
                                                          FI_THREAD_ENDPOINT, FI_THREAD_COMPLETION,
                                                          FI_THREAD_DOMAIN),
                                          testing::Values(FI_EP_RDM, FI_EP_MSG, FI_EP_DGRAM),
                                          testing::Values(FI_PROGRESS_MANUAL)),
                         parallelism_name);
// The provider's thread takes part.
INSTANTIATE_TEST_SUITE_P(
    ThreadedAuto, ThreadingModel,
    testing::Combine(testing::Values(FI_THREAD_SAFE, FI_THREAD_COMPLETION, FI_THREAD_DOMAIN),
                     testing::Values(FI_EP_RDM), testing::Values(FI_PROGRESS_AUTO)),
    parallelism_name);

}  // namespace
}  // namespace weft::conformance
