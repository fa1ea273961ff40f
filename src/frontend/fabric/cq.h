// SPDX-License-Identifier: BSD-2-Clause
// What is a completion queue to a libfabric program? fi_cq(3)
#pragma once

#include <rdma/fi_eq.h>

#include "device/completion_queue.h"
#include "domain.h"
#include "usable.h"

namespace weft::fabric {

// The object behind a fid_cq.
class CompletionQueue : public fid_cq, public Usable {
 public:
  CompletionQueue(Domain& domain, const fi_cq_attr& attributes, device::WaitKind wait,
                  void* context);

  // The object behind `cq`.
  static CompletionQueue& from(fid_cq* cq) { return *static_cast<CompletionQueue*>(cq); }

  Domain& domain() { return domain_; }
  device::CompletionQueue& queue() { return queue_; }
  fi_cq_format format() const { return format_; }
  bool waits_for_threshold() const { return threshold_; }

 private:
  Domain& domain_;
  const Use use_;
  const fi_cq_format format_;
  const bool threshold_;
  device::CompletionQueue queue_;
};

// The wait kind for a libfabric wait object. Errors: -FI_ENOSYS for those not offered.
int wait_kind(fi_wait_obj object, device::WaitKind& kind);

// fi_control(3) with FI_GETWAIT for a group's descriptor.
int get_wait_object(const device::EngineGroup& group, void* argument);

}  // namespace weft::fabric
