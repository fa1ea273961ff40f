// SPDX-License-Identifier: BSD-2-Clause
// Which calls are refused? (docs/user/rdma_cm.md)
#include <rdma/rsocket.h>

#include <cerrno>

#include "abi.h"
#include "boundary.h"

using weft::rdmacm::minus_one_with;

extern "C" {

// Multicast groups.
int rdma_join_multicast(rdma_cm_id*, sockaddr*, void*) { return minus_one_with(ENOSYS); }
int rdma_join_multicast_ex(rdma_cm_id*, rdma_cm_join_mc_attr_ex*, void*) {
  return minus_one_with(ENOSYS);
}
int rdma_leave_multicast(rdma_cm_id*, sockaddr*) { return minus_one_with(ENOSYS); }

// Enhanced connection establishment, which no queue pair here has (ibv_query_ece(3)).
int rdma_set_local_ece(rdma_cm_id*, ibv_ece*) { return minus_one_with(EOPNOTSUPP); }
int rdma_get_remote_ece(rdma_cm_id*, ibv_ece*) { return minus_one_with(EOPNOTSUPP); }

// Sockets over queue pairs.
int rsocket(int, int, int) { return minus_one_with(ENOSYS); }
int rbind(int, const sockaddr*, socklen_t) { return minus_one_with(ENOSYS); }
int rlisten(int, int) { return minus_one_with(ENOSYS); }
int raccept(int, sockaddr*, socklen_t*) { return minus_one_with(ENOSYS); }
int rconnect(int, const sockaddr*, socklen_t) { return minus_one_with(ENOSYS); }
int rshutdown(int, int) { return minus_one_with(ENOSYS); }
int rclose(int) { return minus_one_with(ENOSYS); }
ssize_t rrecv(int, void*, std::size_t, int) { return minus_one_with(ENOSYS); }
ssize_t rrecvfrom(int, void*, std::size_t, int, sockaddr*, socklen_t*) {
  return minus_one_with(ENOSYS);
}
ssize_t rrecvmsg(int, msghdr*, int) { return minus_one_with(ENOSYS); }
ssize_t rsend(int, const void*, std::size_t, int) { return minus_one_with(ENOSYS); }
ssize_t rsendto(int, const void*, std::size_t, int, const sockaddr*, socklen_t) {
  return minus_one_with(ENOSYS);
}
ssize_t rsendmsg(int, const msghdr*, int) { return minus_one_with(ENOSYS); }
ssize_t rread(int, void*, std::size_t) { return minus_one_with(ENOSYS); }
ssize_t rreadv(int, const iovec*, int) { return minus_one_with(ENOSYS); }
ssize_t rwrite(int, const void*, std::size_t) { return minus_one_with(ENOSYS); }
ssize_t rwritev(int, const iovec*, int) { return minus_one_with(ENOSYS); }
int rgetpeername(int, sockaddr*, socklen_t*) { return minus_one_with(ENOSYS); }
int rgetsockname(int, sockaddr*, socklen_t*) { return minus_one_with(ENOSYS); }
int rsetsockopt(int, int, int, const void*, socklen_t) { return minus_one_with(ENOSYS); }
int rgetsockopt(int, int, int, void*, socklen_t*) { return minus_one_with(ENOSYS); }
off_t riomap(int, void*, std::size_t, int, int, off_t) { return minus_one_with(ENOSYS); }
int riounmap(int, void*, std::size_t) { return minus_one_with(ENOSYS); }
std::size_t riowrite(int, const void*, std::size_t, off_t, int) {
  return static_cast<std::size_t>(minus_one_with(ENOSYS));
}

}  // extern "C"
