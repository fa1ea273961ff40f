// SPDX-License-Identifier: BSD-2-Clause
// What is a wait set? fi_poll(3)
#include "wait_set.h"

#include <algorithm>

#include "boundary.h"
#include "fid_object.h"
#include "internal.h"

namespace weft::fabric {
namespace {

int wait(fid_wait* set, int timeout) {
  return at_c_border([&] { return WaitSet::from(set).wait(timeout); });
}

constexpr FidCalls kWaitSetCalls{.close = close_object<WaitSet>, .control = control_wait<WaitSet>};

OperationTable<fi_ops_wait> wait_table({sizeof(fi_ops_wait), wait});

}  // namespace

WaitSet::WaitSet(Fabric& fabric, const WaitWish& wish)
    : ChildObject(FI_CLASS_WAIT, fabric, nullptr, fid_operations<kWaitSetCalls>()),
      engines_(true, wish.kind()),
      wait_point_(engines_, wish, [this] { return has_news(); }) {
  ops = wait_table.get();
}

bool WaitSet::has_news() const {
  if (signalled_.load()) return true;
  const std::lock_guard guard(mutex_);
  return std::any_of(members_.begin(), members_.end(),
                     [](const WaitPoint* member) { return member->has_news(); });
}

int WaitSet::wait(int timeout_ms) {
  const bool news =
      engines_.wait(std::chrono::milliseconds(timeout_ms), [this] { return has_news(); });
  signalled_.store(false);
  return news ? 0 : -FI_ETIMEDOUT;
}

Status WaitSet::join(WaitPoint& member, device::Engine& engine) {
  {
    const std::lock_guard guard(mutex_);
    members_.push_back(&member);
  }
  return engines_.attach(engine);
}

void WaitSet::leave(WaitPoint& member, device::Engine& engine) {
  engines_.detach(engine);
  const std::lock_guard guard(mutex_);
  std::erase(members_, &member);
}

int open_wait_set(Fabric& fabric, fi_wait_attr* attributes, fid_wait** set) {
  const fi_wait_attr wanted = attributes != nullptr ? *attributes : fi_wait_attr{FI_WAIT_UNSPEC, 0};
  if (wanted.flags != 0) return -FI_EBADFLAGS;
  WaitWish wish;
  if (const int wrong = WaitWish::read(wanted.wait_obj, nullptr, fabric, wish)) return wrong;
  if (wish.object == FI_WAIT_NONE) return -FI_EINVAL;
  return at_c_border([&] { return open_waitable(std::make_unique<WaitSet>(fabric, wish), set); });
}

}  // namespace weft::fabric
