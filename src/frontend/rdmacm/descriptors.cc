// SPDX-License-Identifier: BSD-2-Clause
// How do programs wait for descriptors and rsockets alike? (rsocket(7))
//
// There are no rsockets yet, so that each descriptor is one of the system.
#include <fcntl.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <sys/select.h>

#include <cstdarg>

extern "C" {

int rpoll(pollfd* descriptors, nfds_t count, int timeout_ms) {
  return ::poll(descriptors, count, timeout_ms);
}

int rselect(int count, fd_set* readable, fd_set* writable, fd_set* failed, timeval* timeout) {
  return ::select(count, readable, writable, failed, timeout);
}

int rfcntl(int descriptor, int command, ...) {
  va_list rest;
  va_start(rest, command);
  long argument = 0;
  // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start() was called.
  if (command != F_GETFL && command != F_GETFD) argument = va_arg(rest, long);
  va_end(rest);
  return ::fcntl(descriptor, command, argument);
}

}  // extern "C"
