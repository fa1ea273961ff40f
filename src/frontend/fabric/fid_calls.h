// SPDX-License-Identifier: BSD-2-Clause
// Which calls does every libfabric object have, and which of them are alike for several kinds?
#pragma once

#include <rdma/fi_errno.h>

#include <cstdint>

#include "unsupported.h"

namespace weft::fabric {

// The entries of fi_ops that an object offers.
struct FidCalls {
  int (*close)(fid*) = kUnsupported;
  int (*bind)(fid*, fid*, std::uint64_t) = kUnsupported;
  int (*control)(fid*, int, void*) = kUnsupported;
};

inline fi_ops fid_operations(const FidCalls& offered) {
  fi_ops table = unsupported_operations<fi_ops>();
  table.close = offered.close;
  table.bind = offered.bind;
  table.control = offered.control;
  return table;
}

// fi_close(3): -FI_EBUSY while other objects use it, if they can.
template <class Object>
int close_object(fid* fid) {
  Object& object = Object::from(fid);
  if constexpr (requires { object.in_use(); }) {
    if (object.in_use()) return -FI_EBUSY;
  }
  delete &object;
  return 0;
}

// Binds an event queue to the object.
template <class Object, class Queue>
int bind_event_queue(fid* fid, struct fid* other, std::uint64_t flags) {
  if (other == nullptr || other->fclass != FI_CLASS_EQ) return -FI_EINVAL;
  if (flags != 0) return -FI_EBADFLAGS;
  return Object::from(fid).bind(Queue::from(other));
}

// fi_control(3) of an object that a program can wait for.
template <class Object>
int control_wait(fid* fid, int command, void* argument) {
  return Object::from(fid).wait_point().control(command, argument);
}

}  // namespace weft::fabric
