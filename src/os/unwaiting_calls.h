// SPDX-License-Identifier: BSD-2-Clause
// How does a socket receive and send without waiting, and without paying for what only a call that
// waits needs?
//
// The C library's functions are places where a thread may be cancelled. In a process with more than
// one thread each call pays two locked operations for that, a tenth of what it costs to find a
// socket empty.
#pragma once

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

namespace weft::os {

// As recvmsg(2) and sendto(2), with MSG_DONTWAIT.
inline ssize_t receive_unwaiting(int fd, msghdr& message) {
  return ::syscall(SYS_recvmsg, fd, &message, MSG_DONTWAIT);
}
inline ssize_t send_unwaiting(int fd, const void* bytes, std::size_t length, int flags,
                              const sockaddr* to, socklen_t to_length) {
  return ::syscall(SYS_sendto, fd, bytes, length, flags | MSG_DONTWAIT, to, to_length);
}

}  // namespace weft::os
