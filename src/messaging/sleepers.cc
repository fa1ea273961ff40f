// SPDX-License-Identifier: BSD-2-Clause
// What wakes the threads that sleep on an endpoint?
#include "messaging/sleepers.h"

#include <cerrno>
#include <chrono>
#include <utility>

#include "os/event.h"

namespace weft::messaging {

// This process needs no wake-up when it ends.
bool Sleepers::watch(int process) {
  if (process <= 0 || os::is_this_process(process) || watched_.contains(process)) return true;
  os::Fd fd = os::watch_process(process);
  if (!fd.valid()) return errno != ESRCH;
  if (set_.add(fd.get()).ok()) watched_.emplace(process, std::move(fd));
  return true;
}

bool Sleepers::forget_ended() {
  const std::size_t ended = std::erase_if(watched_, [&](const auto& entry) {
    const int fd = entry.second.get();
    if (!os::wait_readable(fd, std::chrono::milliseconds(0))) return false;
    set_.remove(fd);
    return true;
  });
  return ended != 0;
}

}  // namespace weft::messaging
