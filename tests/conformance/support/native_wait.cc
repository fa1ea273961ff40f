// SPDX-License-Identifier: BSD-2-Clause
// How does a program of its own sleep on a wait object that libfabric gave it? (fi_poll(3))
#include "native_wait.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/fi_errno.h>

#include <ctime>

namespace weft::conformance {
namespace {

int poll_on(fid_fabric* fabric, fid* object, pollfd entry, int timeout_ms) {
  if (const int refused = fi_trywait(fabric, &object, 1)) return refused;
  return ::poll(&entry, 1, timeout_ms) > 0 ? 0 : -FI_ETIMEDOUT;
}

int block_on_descriptor(fid_fabric* fabric, fid* object, int timeout_ms) {
  int fd = -1;
  if (const int refused = fi_control(object, FI_GETWAIT, &fd)) return refused;
  return poll_on(fabric, object, {fd, POLLIN, 0}, timeout_ms);
}

int block_on_list(fid_fabric* fabric, fid* object, int timeout_ms) {
  pollfd entry{-1, 0, 0};
  fi_wait_pollfd list{0, 0, nullptr};
  EXPECT_EQ(fi_control(object, FI_GETWAIT, &list), -FI_ETOOSMALL) << "asks for the number only";
  EXPECT_EQ(list.nfds, 1u);
  const std::uint64_t index = list.change_index;
  list.fd = &entry;
  if (const int refused = fi_control(object, FI_GETWAIT, &list)) return refused;
  EXPECT_EQ(list.change_index, index);
  return poll_on(fabric, object, entry, timeout_ms);
}

timespec after(int timeout_ms) {
  timespec end{};
  clock_gettime(CLOCK_REALTIME, &end);
  const long nanoseconds = end.tv_nsec + timeout_ms % 1000 * 1000000L;
  return {end.tv_sec + timeout_ms / 1000 + nanoseconds / 1000000000, nanoseconds % 1000000000};
}

// The mutex is held from before the question until the wait, so that no signal falls in between.
int block_on_condition(fid_fabric* fabric, fid* object, int timeout_ms) {
  fi_mutex_cond wait{};
  if (const int refused = fi_control(object, FI_GETWAIT, &wait)) return refused;
  const timespec end = after(timeout_ms);
  pthread_mutex_lock(wait.mutex);
  int result = fi_trywait(fabric, &object, 1);
  if (result == 0 && pthread_cond_timedwait(wait.cond, wait.mutex, &end) != 0) {
    result = -FI_ETIMEDOUT;
  }
  pthread_mutex_unlock(wait.mutex);
  return result;
}

}  // namespace

const char* to_string(fi_wait_obj object) {
  switch (object) {
    case FI_WAIT_NONE:
      return "None";
    case FI_WAIT_UNSPEC:
      return "Unspec";
    case FI_WAIT_SET:
      return "Set";
    case FI_WAIT_FD:
      return "Fd";
    case FI_WAIT_MUTEX_COND:
      return "MutexCond";
    case FI_WAIT_YIELD:
      return "Yield";
    case FI_WAIT_POLLFD:
      return "PollFd";
  }
  return "";
}

int block_on(fid_fabric* fabric, fid* object, fi_wait_obj kind, int timeout_ms) {
  if (kind == FI_WAIT_FD) return block_on_descriptor(fabric, object, timeout_ms);
  if (kind == FI_WAIT_POLLFD) return block_on_list(fabric, object, timeout_ms);
  return block_on_condition(fabric, object, timeout_ms);
}

}  // namespace weft::conformance
