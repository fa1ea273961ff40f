// SPDX-License-Identifier: BSD-2-Clause
// How do verbs objects end with their scope?
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <memory>
#include <ostream>

// How GoogleTest prints them.
inline void PrintTo(ibv_wc_status status, std::ostream* out) {
  *out << ibv_wc_status_str(status) << " (" << static_cast<int>(status) << ')';
}
inline void PrintTo(ibv_event_type type, std::ostream* out) { *out << ibv_event_type_str(type); }

namespace weft::verbs_conformance {

// Destroys an object; a refusal fails the test.
struct Destroyer {
  void operator()(ibv_context* it) const { EXPECT_EQ(ibv_close_device(it), 0); }
  void operator()(ibv_pd* it) const { EXPECT_EQ(ibv_dealloc_pd(it), 0); }
  void operator()(ibv_mr* it) const { EXPECT_EQ(ibv_dereg_mr(it), 0); }
  void operator()(ibv_cq* it) const { EXPECT_EQ(ibv_destroy_cq(it), 0); }
  void operator()(ibv_comp_channel* it) const { EXPECT_EQ(ibv_destroy_comp_channel(it), 0); }
  void operator()(ibv_srq* it) const { EXPECT_EQ(ibv_destroy_srq(it), 0); }
  void operator()(ibv_xrcd* it) const { EXPECT_EQ(ibv_close_xrcd(it), 0); }
  void operator()(ibv_qp* it) const { EXPECT_EQ(ibv_destroy_qp(it), 0); }
  void operator()(ibv_ah* it) const { EXPECT_EQ(ibv_destroy_ah(it), 0); }
};

template <class Object>
using Owned = std::unique_ptr<Object, Destroyer>;

}  // namespace weft::verbs_conformance
