// SPDX-License-Identifier: BSD-2-Clause
// How does the data path call the kernel without a place where its thread may be cancelled?
//
// The C library's functions are such places (os/cancellation.h). In a process with more than one
// thread each call pays two locked operations for that, a tenth of what it costs to find a socket
// empty.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <ctime>

namespace weft::os::direct {

static_assert(sizeof(off_t) == sizeof(long), "an offset takes one argument of a system call");

// As the functions of those names.
inline ssize_t read(int fd, void* to, std::size_t length) {
  return ::syscall(SYS_read, fd, to, length);
}
inline ssize_t write(int fd, const void* from, std::size_t length) {
  return ::syscall(SYS_write, fd, from, length);
}
inline ssize_t pread(int fd, void* to, std::size_t length, off_t offset) {
  return ::syscall(SYS_pread64, fd, to, length, offset);
}
inline ssize_t pwrite(int fd, const void* from, std::size_t length, off_t offset) {
  return ::syscall(SYS_pwrite64, fd, from, length, offset);
}
inline int ppoll(pollfd* list, nfds_t count, const timespec* limit) {
  timespec left{};  // the kernel writes what is left of the time there
  if (limit != nullptr) left = *limit;
  return static_cast<int>(::syscall(SYS_ppoll, list, count, limit != nullptr ? &left : nullptr,
                                    nullptr, std::size_t{0}));
}
inline int connect(int fd, const sockaddr* to, socklen_t to_length) {
  return static_cast<int>(::syscall(SYS_connect, fd, to, to_length));
}
inline ssize_t recv(int fd, void* to, std::size_t length, int flags) {
  return ::syscall(SYS_recvfrom, fd, to, length, flags, nullptr, nullptr);
}
inline ssize_t recvmsg(int fd, msghdr* message, int flags) {
  return ::syscall(SYS_recvmsg, fd, message, flags);
}
inline int recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
  return static_cast<int>(::syscall(SYS_recvmmsg, fd, messages, count, flags, nullptr));
}
inline ssize_t sendto(int fd, const void* from, std::size_t length, int flags, const sockaddr* to,
                      socklen_t to_length) {
  return ::syscall(SYS_sendto, fd, from, length, flags, to, to_length);
}
inline ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  return ::syscall(SYS_sendmsg, fd, message, flags);
}
inline int sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
  return static_cast<int>(::syscall(SYS_sendmmsg, fd, messages, count, flags));
}

}  // namespace weft::os::direct
