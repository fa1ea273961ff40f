// SPDX-License-Identifier: BSD-2-Clause
// How are packets of foreign peers handed on while no endpoint polls?
#include "doors.h"

#include <utility>

namespace weft::device {

// Where no thread can be had, endpoints have to look.
Doors::Doors(std::shared_ptr<ProgressThread> thread)
    : thread_(std::move(thread)), keepers_([this] { static_cast<void>(thread_->start()); }) {
  thread_->attach(*this);
}

Result<std::shared_ptr<Doors>> Doors::open() {
  auto thread = ProgressThread::get();
  if (!thread) return thread.error();
  return std::shared_ptr<Doors>(new Doors(std::move(thread).value()));
}

}  // namespace weft::device
