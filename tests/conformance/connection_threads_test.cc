// SPDX-License-Identifier: BSD-2-Clause
// May any thread read an event queue? fi_domain(3): control interfaces are always thread safe.
#include <rdma/fi_eq.h>

#include <atomic>
#include <thread>

#include "support/place.h"

namespace weft::conformance {
namespace {

constexpr int kMessages = 3000;

// A thread that waits for events, and counts those that end connections.
class EventThread {
 public:
  explicit EventThread(Place& place) : place_(place) {}
  ~EventThread() {
    done_ = true;
    thread_.join();
  }
  int shutdowns() const { return shutdowns_; }

 private:
  void run() {
    while (!done_) {
      std::uint32_t event = 0;
      fi_eq_cm_entry entry{};
      const ssize_t got = fi_eq_sread(place_.eq(), &event, &entry, sizeof entry, 5, 0);
      if (got > 0 && event == FI_SHUTDOWN) ++shutdowns_;
    }
  }

  Place& place_;
  std::atomic<bool> done_{false};
  std::atomic<int> shutdowns_{0};
  std::thread thread_{[this] { run(); }};
};

void exchange(Place& place, Pair& pair) {
  std::uint64_t got = 0;
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    ASSERT_EQ(fi_recv(pair.passive.get(), &got, sizeof got, nullptr, 0, nullptr), 0);
    ASSERT_EQ(fi_send(pair.active.get(), &i, sizeof i, nullptr, 0, nullptr), 0);
    for (int ends = 0; ends < 2; ++ends) ASSERT_EQ(place.completion().err, 0);
    ASSERT_EQ(got, i);
  }
}

// The program has promised to let one thread at a time into the domain; the queue belongs to none.
TEST(ThreadsOfConnections, OneWaitsForEventsWhileAnotherMovesData) {
  for (const fi_threading threading : {FI_THREAD_SAFE, FI_THREAD_DOMAIN, FI_THREAD_COMPLETION}) {
    SCOPED_TRACE(threading);
    Place place(FI_WAIT_UNSPEC, threading);
    ASSERT_TRUE(place.ok());
    Pair pair(place);
    EventThread events(place);
    exchange(place, pair);
    if (HasFatalFailure()) return;
    pair.active.reset();
    const auto deadline = std::chrono::steady_clock::now() + patience();
    while (events.shutdowns() == 0 && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
    EXPECT_EQ(events.shutdowns(), 1);
    pair.passive.reset();
  }
}

}  // namespace
}  // namespace weft::conformance
