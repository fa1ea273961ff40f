// SPDX-License-Identifier: BSD-2-Clause
// How are packets of foreign peers handed on while no endpoint polls?
#include "relay_engine.h"

#include <utility>

namespace weft::device {

// Where no thread can be had, endpoints have to look.
RelayEngine::RelayEngine(std::shared_ptr<ProgressThread> thread, Stats& stats)
    : thread_(std::move(thread)), relays_(stats, [this] { static_cast<void>(thread_->start()); }) {
  thread_->attach(*this);
}

Result<std::shared_ptr<RelayEngine>> RelayEngine::open(Stats& stats) {
  auto thread = ProgressThread::get();
  if (!thread) return thread.error();
  return std::shared_ptr<RelayEngine>(new RelayEngine(std::move(thread).value(), stats));
}

}  // namespace weft::device
