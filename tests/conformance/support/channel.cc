// SPDX-License-Identifier: BSD-2-Clause
// How are control records moved without ever blocking for good?
#include "channel.h"

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

namespace weft::conformance {

std::chrono::milliseconds patience() {
  const char* seconds = std::getenv("WEFT_TEST_PATIENCE_S");
  return std::chrono::seconds(seconds != nullptr ? std::atoi(seconds) : 60);
}

Channel::~Channel() {
  if (fd_ >= 0) close(fd_);
}

bool Channel::send_bytes(const void* record, std::size_t size) {
  return ::send(fd_, record, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size);
}

bool Channel::ready() const {
  pollfd waiting{fd_, POLLIN, 0};
  return poll(&waiting, 1, 0) > 0;
}

long Channel::receive_bytes(void* record, std::size_t size, const Idle& idle,
                            std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!ready()) {
    if (std::chrono::steady_clock::now() > deadline) return -1;
    if (idle) {
      idle();
    } else {
      pollfd waiting{fd_, POLLIN, 0};
      poll(&waiting, 1, 100);
    }
  }
  const ssize_t got = recv(fd_, record, size, 0);
  return got < 0 ? 0 : got;
}

}  // namespace weft::conformance
