// SPDX-License-Identifier: BSD-2-Clause
// Which ports do the queue pairs of an open device share?
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "queue/port.h"

namespace weft::queue {

// At most kMostPorts ports: one a completion queue would cost six descriptors each. Any thread.
class PortPool {
 public:
  static constexpr std::size_t kMostPorts = 8;

  // `shares`: queue pairs reach those of this host through shared memory, where that can be.
  PortPool(std::shared_ptr<device::Device> device, bool shares)
      : device_(std::move(device)), shares_(shares) {}

  // A port for a new completion queue, in turn, so that threads with queues of their own seldom
  // meet. Errors: those of QpPort::open() for the first one; later queues share what there is.
  Result<std::shared_ptr<QpPort>> in_turn() {
    const std::lock_guard guard(mutex_);
    return at(turn_++ % kMostPorts);
  }
  // The port of XRC targets, which have no completion queue.
  Result<std::shared_ptr<QpPort>> first() {
    const std::lock_guard guard(mutex_);
    return at(0);
  }

 private:
  Result<std::shared_ptr<QpPort>> at(std::size_t number) {
    while (ports_.size() <= number) {
      auto opened = QpPort::open(device_, shares_);
      if (opened) {
        ports_.push_back(std::move(opened).value());
      } else if (ports_.empty()) {
        return opened.error();
      } else {
        return ports_.front();
      }
    }
    return ports_[number];
  }

  const std::shared_ptr<device::Device> device_;
  const bool shares_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<QpPort>> ports_;
  std::size_t turn_ = 0;
};

}  // namespace weft::queue
