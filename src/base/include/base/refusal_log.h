// SPDX-License-Identifier: BSD-2-Clause
// Which sentences does a user get about refused accesses?
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <utility>

#include "base/options.h"
#include "base/time.h"

namespace weft {

// The sentences of a process, at most one a second about requests of its own, and one about those
// of its peers: a peer can repeat a forbidden access as fast as packets come. Any thread.
class RefusalLog {
 public:
  // `sink` may be called with locks held; null: no sentences.
  explicit RefusalLog(WarningSink sink) : sink_(std::move(sink)) {}

  // About a request of this process, and about one of a peer. `text()` makes the sentence.
  template <class Text>
  void own(const Text& text) {
    write(own_, text);
  }
  template <class Text>
  void of_peer(const Text& text) {
    write(of_peers_, text);
  }

 private:
  using SentenceLimit = std::atomic<Time::rep>;  // no sentence before that time

  template <class Text>
  void write(SentenceLimit& limit, const Text& text) {
    if (!sink_) return;
    const Time now = Time::clock::now();
    Time::rep next = limit.load(std::memory_order_relaxed);
    const Time::rep later = (now + std::chrono::seconds(1)).time_since_epoch().count();
    if (now.time_since_epoch().count() < next || !limit.compare_exchange_strong(next, later))
      return;
    sink_(text());
  }

  const WarningSink sink_;
  SentenceLimit own_{0};
  SentenceLimit of_peers_{0};
};

}  // namespace weft
