// SPDX-License-Identifier: BSD-2-Clause
// When may a program block on the wait objects of its queues? fi_trywait(3)
#include "boundary.h"
#include "counter.h"
#include "cq.h"
#include "eq.h"
#include "internal.h"
#include "wait_set.h"

namespace weft::fabric {
namespace {

// Null for an object without a wait.
WaitPoint* wait_point_of(fid* object) {
  if (object == nullptr) return nullptr;
  switch (object->fclass) {
    case FI_CLASS_CQ:
      return &Cq::from(object).wait_point();
    case FI_CLASS_EQ:
      return &EventQueue::from(object).wait_point();
    case FI_CLASS_CNTR:
      return &Cntr::from(object).wait_point();
    case FI_CLASS_WAIT:
      return &WaitSet::from(object).wait_point();
    default:
      return nullptr;
  }
}

}  // namespace

int try_wait(Fabric&, fid** fids, int count) {
  return at_c_border([&] {
    for (int i = 0; i < count; ++i) {
      WaitPoint* const point = wait_point_of(fids[i]);
      if (point == nullptr) return -FI_EINVAL;
      if (const int status = point->try_wait()) return status;
    }
    return 0;
  });
}

}  // namespace weft::fabric
