// SPDX-License-Identifier: BSD-2-Clause
// Does an acknowledgement wait for the request that the program posts next, to leave with it?
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/time.h"

namespace weft::queue {

// Watches whether requests follow acknowledgements. After several in succession did, the next
// acknowledgement waits for its request: one packet train in place of two, and the peer, which
// polls for its completion, finds the reply with it. If none follows, the acknowledgement leaves
// after kWait, and acknowledgements leave at once again. One thread at a time, but for
// expects_post().
class ReplyForecast {
 public:
  // As long as a delayed acknowledgement. Far below the least ACK timeout of a requester.
  static constexpr auto kWait = std::chrono::microseconds(200);
  // Replies in succession that make the next one sure.
  static constexpr unsigned kSure = 8;

  // Whether posted() is to be called when requests are posted.
  bool expects_post() const { return stage_.load(std::memory_order_relaxed) != Stage::kNone; }
  // Requests were posted. A waiting acknowledgement leaves behind them.
  void posted(Time now) {
    if (stage() != Stage::kNone) replies_ = in_time(now) ? std::min(replies_ + 1, kSure) : 0;
    set(Stage::kNone);
  }
  // There is an answer to send: true if it waits. `acknowledges`: it is no more than an
  // acknowledgement.
  bool waits(bool acknowledges, Time now) {
    const Stage before = stage();
    if (before == Stage::kAwaited && acknowledges && in_time(now)) return true;
    if (before != Stage::kNone) replies_ = 0;
    if (!acknowledges || before == Stage::kAwaited) {
      set(Stage::kNone);
      return false;
    }
    const bool sure = replies_ == kSure;
    set(sure ? Stage::kAwaited : Stage::kMayFollow);
    since_ = now;
    return sure;
  }
  // When what waits leaves alone; Time::max() if nothing waits.
  Time due() const { return stage() == Stage::kAwaited ? since_ + kWait : Time::max(); }

 private:
  // No acknowledgement; one has left, and a request may follow; one waits for a request.
  enum class Stage : std::uint8_t { kNone, kMayFollow, kAwaited };

  Stage stage() const { return stage_.load(std::memory_order_relaxed); }
  void set(Stage stage) { stage_.store(stage, std::memory_order_relaxed); }
  bool in_time(Time now) const { return now - since_ < kWait; }

  std::atomic<Stage> stage_{Stage::kNone};
  Time since_{};
  unsigned replies_ = 0;  // in succession
};

}  // namespace weft::queue
