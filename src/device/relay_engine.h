// SPDX-License-Identifier: BSD-2-Clause
// How are packets of foreign peers handed on while no endpoint polls?
#pragma once

#include <memory>

#include "base/stats.h"
#include "device/engine.h"
#include "device/progress_thread.h"
#include "roce/relay_set.h"

namespace weft::device {

// The relays of this process, as an engine of the background thread: that one begins when a
// port was got, which other processes wait for then, too. While endpoints look it only watches
// whether they go on.
class RelayEngine final : Engine {
 public:
  // Packets are counted in `stats`, which outlives it. Errors: those of ProgressThread::get().
  static Result<std::shared_ptr<RelayEngine>> open(Stats& stats);
  ~RelayEngine() override { thread_->detach(*this); }
  RelayEngine(const RelayEngine&) = delete;
  RelayEngine& operator=(const RelayEngine&) = delete;

  // As roce::RelaySet::at(). The engine outlives it.
  std::shared_ptr<roce::Port4791Relay> at(const os::SocketAddress& address) {
    return relays_.at(address);
  }

 private:
  RelayEngine(std::shared_ptr<ProgressThread> thread, Stats& stats);

  void progress() override { more_ = relays_.hand_on(); }
  bool fall_asleep() override { return !more_; }
  void wake_up() override {}
  int wake_fd() const override { return relays_.wake_fd(); }
  unsigned polls() override { return relays_.looks(); }
  std::chrono::nanoseconds check_interval() const override {
    return std::chrono::milliseconds(100);
  }

  const std::shared_ptr<ProgressThread> thread_;
  roce::RelaySet relays_;
  bool more_ = false;  // the thread's
};

}  // namespace weft::device
