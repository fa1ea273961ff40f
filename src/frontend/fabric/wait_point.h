// SPDX-License-Identifier: BSD-2-Clause
// How does a program wait for an object, whichever wait object it asked for? fi_poll(3)
#pragma once

#include <rdma/fi_eq.h>

#include <functional>
#include <memory>

#include "base/usable.h"
#include "device/cond_signaller.h"
#include "device/engine.h"
#include "device/engine_registry.h"
#include "os/origin.h"

namespace weft::fabric {

class Fabric;
class WaitSet;

// What the attributes of an object ask for.
struct WaitWish {
  fi_wait_obj object = FI_WAIT_NONE;
  WaitSet* set = nullptr;  // with FI_WAIT_SET

  // Reads the members of an attribute structure. Errors: -FI_EINVAL for an unknown wait object, or
  // a wait set that is missing or not of this fabric; -FI_EPERM for a parent's.
  static int read(const fi_wait_obj& object, fid_wait* set, Fabric& fabric, WaitWish& wish);
  // What the engines of the object need for it.
  device::WaitKind kind() const;
};

// The one way to wait for a completion queue, a counter, an event queue or a wait set. All of them
// sleep on the descriptor of their engines; what the program gets to see of that is decided here.
// Declared last in its owner, so that it goes first. Any thread, if the engines are for any.
class WaitPoint {
 public:
  // `has_news` tells whether there is something to read. While the point is open, its engines are
  // in `registry`, if one is given.
  WaitPoint(device::EngineGroup& engines, const WaitWish& wish, std::function<bool()> has_news,
            device::EngineRegistry* registry = nullptr);
  ~WaitPoint();
  WaitPoint(const WaitPoint&) = delete;
  WaitPoint& operator=(const WaitPoint&) = delete;

  // Opens what waiting needs and joins the wait set; before the first use. Errors: those of
  // epoll_create1(2), eventfd(2), pthread_create(3).
  int open();

  device::EngineGroup& engines() { return engines_; }
  bool has_news() const { return has_news_(); }
  // Its object belongs to the parent of this process.
  bool inherited() const { return origin_.inherited(); }
  fi_wait_obj object() const { return wish_.object; }
  // fi_control(3): FI_GETWAIT, FI_GETWAITOBJ. Errors: -FI_ENODATA for a wait object that is not for
  // the program's eyes, -FI_ETOOSMALL, -FI_EINVAL, -FI_ENOSYS for another command.
  int control(int command, void* argument);
  // fi_trywait(3): 0 or -FI_EAGAIN. Errors: -FI_EINVAL where nothing can be blocked on, -FI_EPERM
  // for a parent's object.
  int try_wait();

 private:
  // The part that it plays in a wait set.
  class WaitSetMember;

  device::EngineGroup& engines_;
  const WaitWish wish_;
  const std::function<bool()> has_news_;
  device::EngineRegistry* const registry_;
  std::unique_ptr<device::CondSignaller> signaller_;
  std::unique_ptr<WaitSetMember> member_;
  const os::Origin origin_;
};

// Gives the program an object that it can wait for. Errors: those of WaitPoint::open(), and then
// the object is gone.
template <class Object, class Fid>
int open_waitable(std::unique_ptr<Object> created, Fid** out) {
  if (const int failed = created->wait_point().open()) return failed;
  *out = created.release();
  return 0;
}

}  // namespace weft::fabric
