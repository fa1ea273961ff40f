// SPDX-License-Identifier: BSD-2-Clause
// How are packets of foreign peers handed on while no endpoint polls?
#pragma once

#include <memory>

#include "device/engine.h"
#include "device/progress_thread.h"
#include "link_udp/doorkeepers.h"

namespace weft::device {

// The doorkeepers of this process, as an engine of the background thread: that one begins when a
// port was got, which other processes wait for then, too. While endpoints look it only watches
// whether they go on.
class Doors final : Engine {
 public:
  // Errors: those of ProgressThread::get().
  static Result<std::shared_ptr<Doors>> open();
  ~Doors() override { thread_->detach(*this); }
  Doors(const Doors&) = delete;
  Doors& operator=(const Doors&) = delete;

  // As udp::Doorkeepers::at(). The doors outlive it.
  std::shared_ptr<udp::Doorkeeper> at(const os::SocketAddress& address) {
    return keepers_.at(address);
  }

 private:
  explicit Doors(std::shared_ptr<ProgressThread> thread);

  void progress() override { more_ = keepers_.hand_on(); }
  bool fall_asleep() override { return !more_; }
  void wake_up() override {}
  int wake_fd() const override { return keepers_.wake_fd(); }
  unsigned polls() override { return keepers_.looks(); }
  std::chrono::nanoseconds patience() const override { return std::chrono::milliseconds(100); }

  const std::shared_ptr<ProgressThread> thread_;
  udp::Doorkeepers keepers_;
  bool more_ = false;  // the thread's
};

}  // namespace weft::device
