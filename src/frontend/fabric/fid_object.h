// SPDX-License-Identifier: BSD-2-Clause
// What do all objects of libfabric have in common, and which calls are alike for several kinds?
#pragma once

#include <rdma/fi_errno.h>

#include <cstddef>
#include <cstdint>

#include "base/usable.h"
#include "boundary.h"
#include "operations.h"

namespace weft::fabric {

// The entries of fi_ops that an object offers.
struct FidCalls {
  int (*close)(fid*) = kUnsupported;
  int (*bind)(fid*, fid*, std::uint64_t) = kUnsupported;
  int (*control)(fid*, int, void*) = kUnsupported;
  int (*ops_open)(fid*, const char*, std::uint64_t, void**, void*) = kUnsupported;
  int (*ops_set)(fid*, const char*, std::uint64_t, void*, void*) = kUnsupported;
};

template <const FidCalls& kOffered>
OperationTable<fi_ops> fid_table([] {
  fi_ops made = unsupported_operations<fi_ops>();
  made.close = kOffered.close;
  made.bind = kOffered.bind;
  made.control = kOffered.control;
  made.ops_open = kOffered.ops_open;
  made.ops_set = kOffered.ops_set;
  return made;
}());

// The table with those entries.
template <const FidCalls& kOffered>
fi_ops* fid_operations() {
  return fid_table<kOffered>.get();
}

// The object behind a `Fid` (fid_cq, fid_av ...) of the class `kind` (FI_CLASS_CQ ...).
template <class Object, class Fid>
class FidObject : public Fid {
 public:
  static Object& from(Fid* fid) { return *static_cast<Object*>(fid); }
  static Object& from(struct fid* fid) { return from(reinterpret_cast<Fid*>(fid)); }

 protected:
  FidObject(std::size_t kind, void* context, fi_ops* operations) : Fid{} {
    this->fid.fclass = kind;
    this->fid.context = context;
    this->fid.ops = operations;
  }
};

// One that is opened on another object, its parent, which cannot be closed before it.
template <class Object, class Fid, class Parent>
class ChildObject : public FidObject<Object, Fid> {
 public:
  Parent& parent() const { return parent_; }

 protected:
  ChildObject(std::size_t kind, Parent& parent, void* context, fi_ops* operations)
      : FidObject<Object, Fid>(kind, context, operations), parent_(parent), use_(parent) {}

 private:
  Parent& parent_;
  const Use use_;
};

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

// Binds an object of any kind.
template <class Object>
int bind_object(fid* fid, struct fid* other, std::uint64_t flags) {
  if (other == nullptr) return -FI_EINVAL;
  return at_c_border([&] { return Object::from(fid).bind(other, flags); });
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
