// SPDX-License-Identifier: BSD-2-Clause
// When may a program block on the descriptors of its queues? fi_trywait(3)
#include "boundary.h"
#include "counter.h"
#include "cq.h"
#include "eq.h"
#include "internal.h"

namespace weft::fabric {
namespace {

int blockable(device::EngineGroup& group, const std::function<bool()>& ready) {
  if (group.prepare_wait(ready)) return 0;
  group.take_signal();  // this answer is what a signal asks for
  return -FI_EAGAIN;
}

int try_one(fid* object) {
  switch (object->fclass) {
    case FI_CLASS_CQ: {
      auto& queue = CompletionQueue::from(reinterpret_cast<fid_cq*>(object)).queue();
      if (queue.engines().descriptor() < 0) return -FI_EINVAL;
      return blockable(queue.engines(), [&] { return !queue.empty(); });
    }
    case FI_CLASS_EQ: {
      EventQueue& eq = EventQueue::from(reinterpret_cast<fid_eq*>(object));
      if (eq.waiting().descriptor() < 0) return -FI_EINVAL;
      return blockable(eq.waiting(), [&] { return eq.ready(); });
    }
    case FI_CLASS_CNTR: {
      Counter& cntr = Counter::from(reinterpret_cast<fid_cntr*>(object));
      if (cntr.counter().engines().descriptor() < 0) return -FI_EINVAL;
      return blockable(cntr.counter().engines(), [&] { return cntr.has_news(); });
    }
    default:
      return -FI_EINVAL;
  }
}

}  // namespace

int try_wait(Fabric&, fid** fids, int count) {
  return at_c_border([&] {
    for (int i = 0; i < count; ++i) {
      if (fids[i] == nullptr) return -FI_EINVAL;
      if (const int status = try_one(fids[i])) return status;
    }
    return 0;
  });
}

}  // namespace weft::fabric
