// SPDX-License-Identifier: BSD-2-Clause
// Shared receive queues: ibv_create_srq(3), ibv_create_srq_ex(3)
#include "operations.h"

#include <algorithm>
#include <cerrno>

#include "boundary.h"
#include "cq.h"
#include "xrcd.h"

namespace weft::verbs {
namespace {

// Numbers of shared receive queues have 24 bits (annex A14).
std::uint32_t new_srq_number() {
  static std::atomic<std::uint32_t> next{1};
  return next++ & 0xFF'FFFF;
}

ibv_srq* create(ibv_context* context, const ibv_srq_init_attr_ex& wanted, ibv_srq_attr& granted) {
  const ibv_srq_attr& attributes = wanted.attr;
  const bool xrc =
      (wanted.comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0 && wanted.srq_type == IBV_SRQT_XRC;
  if (wanted.pd == nullptr || wanted.pd->context != context || attributes.max_wr == 0 ||
      attributes.max_wr > queue::kMaxWorkRequests || attributes.max_sge > queue::kMaxSges) {
    return null_with(EINVAL);
  }
  if (xrc && (wanted.xrcd == nullptr || wanted.cq == nullptr)) return null_with(EINVAL);
  if (const int error = check_handle(object_of(wanted.pd)); error != 0) return null_with(error);
  auto srq = std::make_unique<VerbsSrq>(context);
  granted = attributes;
  granted.max_sge = std::max(attributes.max_sge, 1u);
  srq->receives = std::make_unique<queue::QpReceiveQueue>(granted.max_wr, granted.max_sge);
  srq->domain = UseOf<VerbsPd>(object_of(wanted.pd));
  srq->memory_domain = srq->domain.get()->domain;
  srq->srq_context = wanted.srq_context;
  srq->pd = wanted.pd;
  pthread_mutex_init(&srq->mutex, nullptr);
  pthread_cond_init(&srq->cond, nullptr);
  if (xrc) {
    srq->srq_number = new_srq_number();
    srq->completions = UseOf<VerbsCq>(object_of(wanted.cq));
    srq->xrc_domain = UseOf<VerbsXrcd>(object_of(wanted.xrcd));
    auto port = VerbsContext::of(context).ports().first();  // of all XRC targets
    if (!port) return null_with(errno_of(port.error()));
    srq->port = std::move(port).value();
    const Status driven = drive(object_of(wanted.cq), *srq->port);
    if (!driven) return null_with(errno_of(driven.error()));
    XrcDomain& shared = *object_of(wanted.xrcd).domain;
    auto entry = queue::SharedEntry::add(VerbsContext::of(context).shared_core(), srq->srq_number,
                                         srq->memory_domain, shared.group());
    if (!entry) return null_with(ENOMEM);
    srq->entry = std::move(entry).value();
    shared.add(*srq);
  }
  return srq.release();
}

int destroy(ibv_srq* srq) {
  if (srq == nullptr) return EINVAL;
  VerbsSrq& queue = object_of(srq);
  if (const int error = check_handle(queue); error != 0) return error;
  if (queue.in_use()) return EBUSY;
  if (queue.xrc_domain && !VerbsContext::of(srq->context).inherited()) {
    queue.entry.reset();
    queue.xrc_domain.get()->domain->remove(queue);
  }
  if (queue.port != nullptr) stop_driving(*queue.completions.get(), *queue.port);
  VerbsContext::of(srq->context).events().forget(queue.limit_reached);
  await_acknowledgements(*srq, queue.events.delivered, srq->events_completed);
  pthread_cond_destroy(&srq->cond);
  pthread_mutex_destroy(&srq->mutex);
  delete &queue;
  return 0;
}

int modify(ibv_srq* srq, const ibv_srq_attr& wanted, int mask) {
  VerbsSrq& queue = object_of(srq);
  if (const int error = check_handle(queue); error != 0) return error;
  if ((mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) != 0) return EINVAL;
  const bool resizes = (mask & IBV_SRQ_MAX_WR) != 0;
  const std::uint32_t size = resizes ? wanted.max_wr : queue.receives->size();
  if ((mask & IBV_SRQ_LIMIT) != 0 && wanted.srq_limit > size) return EINVAL;
  if (resizes) {
    if (wanted.max_wr > queue::kMaxWorkRequests) return EINVAL;
    if (Status ok = queue.receives->resize(wanted.max_wr); !ok) return errno_of(ok.error());
  }
  if ((mask & IBV_SRQ_LIMIT) == 0) return 0;
  const Status armed = queue.receives->arm(wanted.srq_limit, [srq] {
    VerbsContext::of(srq->context).events().raise(object_of(srq).limit_reached, &object_of(srq));
  });
  return armed ? 0 : errno_of(armed.error());
}

int query(ibv_srq* srq, ibv_srq_attr& found) {
  VerbsSrq& queue = object_of(srq);
  if (const int error = check_handle(queue); error != 0) return error;
  found = {queue.receives->size(), queue.receives->sges(), queue.receives->limit()};
  return 0;
}

}  // namespace

ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* wanted) {
  constexpr std::uint32_t kMasks =
      IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  return at_c_border<ibv_srq>([&]() -> ibv_srq* {
    const bool matches_tags =
        (wanted->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0 && wanted->srq_type == IBV_SRQT_TM;
    if ((wanted->comp_mask & ~kMasks) != 0 || matches_tags) return null_with(EOPNOTSUPP);
    ibv_srq_attr granted{};
    ibv_srq* const made = create(context, *wanted, granted);
    if (made != nullptr) wanted->attr = granted;
    return made;
  });
}

int get_srq_num(ibv_srq* srq, std::uint32_t* number) {
  if (object_of(srq).srq_number == 0) return EOPNOTSUPP;
  *number = object_of(srq).srq_number;
  return 0;
}

}  // namespace weft::verbs

extern "C" {

ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* wanted) {
  using namespace weft::verbs;
  return at_c_border<ibv_srq>([&]() -> ibv_srq* {
    if (pd == nullptr || wanted == nullptr) return null_with(EINVAL);
    ibv_srq_init_attr_ex extended{};
    extended.srq_context = wanted->srq_context;
    extended.attr = wanted->attr;
    extended.comp_mask = IBV_SRQ_INIT_ATTR_PD;
    extended.pd = pd;
    ibv_srq_attr granted{};
    ibv_srq* const made = create(pd->context, extended, granted);
    if (made != nullptr) wanted->attr = granted;
    return made;
  });
}
int ibv_destroy_srq(ibv_srq* srq) { return weft::verbs::destroy(srq); }
int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* wanted, int mask) {
  using namespace weft::verbs;
  return status_at_c_border([&] { return modify(srq, *wanted, mask); });
}
int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* found) { return weft::verbs::query(srq, *found); }

}  // extern "C"
