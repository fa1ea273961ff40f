// SPDX-License-Identifier: BSD-2-Clause
// How do objects of rdma_cm end with their scope, and how are they printed?
#pragma once

#include <gtest/gtest.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include <cerrno>
#include <memory>
#include <ostream>

// How GoogleTest prints them.
inline void PrintTo(rdma_cm_event_type type, std::ostream* out) { *out << rdma_event_str(type); }
inline void PrintTo(ibv_wc_status status, std::ostream* out) {
  *out << ibv_wc_status_str(status) << " (" << static_cast<int>(status) << ')';
}

namespace weft::rdmacm_conformance {

// 0 for the success of a call, else its errno. A result that is neither 0 nor -1 fails the test.
inline int errno_of(int result) {
  const int code = errno;
  EXPECT_TRUE(result == 0 || result == -1) << result;
  return result == 0 ? 0 : code;
}

// Destroys an object; a refusal fails the test.
struct Destroyer {
  void operator()(rdma_event_channel* it) const { rdma_destroy_event_channel(it); }
  // Its queue pair and its shared receive queue, too.
  void operator()(rdma_cm_id* it) const {
    if (it->qp != nullptr) rdma_destroy_qp(it);
    if (it->srq != nullptr) rdma_destroy_srq(it);
    EXPECT_EQ(errno_of(rdma_destroy_id(it)), 0);
  }
  void operator()(rdma_cm_event* it) const { EXPECT_EQ(rdma_ack_cm_event(it), 0); }
  void operator()(rdma_addrinfo* it) const { rdma_freeaddrinfo(it); }
  void operator()(ibv_context* it) const { EXPECT_EQ(ibv_close_device(it), 0); }
  void operator()(ibv_pd* it) const { EXPECT_EQ(ibv_dealloc_pd(it), 0); }
  void operator()(ibv_cq* it) const { EXPECT_EQ(ibv_destroy_cq(it), 0); }
  void operator()(ibv_qp* it) const { EXPECT_EQ(ibv_destroy_qp(it), 0); }
  void operator()(ibv_ah* it) const { EXPECT_EQ(ibv_destroy_ah(it), 0); }
  void operator()(ibv_mr* it) const { EXPECT_EQ(ibv_dereg_mr(it), 0); }
};

template <class Object>
using Owned = std::unique_ptr<Object, Destroyer>;

}  // namespace weft::rdmacm_conformance
