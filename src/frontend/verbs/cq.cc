// SPDX-License-Identifier: BSD-2-Clause
// Completion queues: ibv_create_cq(3), ibv_create_cq_ex(3), ibv_resize_cq(3)
#include "cq.h"

#include <cerrno>

#include "boundary.h"
#include "objects.h"
#include "operations.h"
#include "polling.h"

namespace weft::verbs {
namespace {

struct CqSetup {
  int entries = 0;
  void* context = nullptr;
  ibv_comp_channel* channel = nullptr;
  int vector = 0;
  bool single_threaded = false;
  bool ignores_overrun = false;
};

ibv_cq* create(ibv_context* context, const CqSetup& setup, std::uint64_t reads) {
  if (setup.entries <= 0 || setup.entries > static_cast<int>(queue::kMaxCompletions) ||
      setup.vector < 0 || setup.vector >= context->num_comp_vectors) {
    return null_with(EINVAL);
  }
  if (setup.channel != nullptr && setup.channel->context != context) return null_with(EINVAL);
  auto queue = std::make_unique<VerbsCq>();
  auto port = VerbsContext::of(context).ports().in_turn();
  if (!port) return null_with(errno_of(port.error()));
  queue->port = std::move(port).value();
  queue->entries = std::make_unique<device::CompletionQueue>(
      static_cast<std::size_t>(setup.entries), Locking(true), device::WaitKind::kNone,
      setup.ignores_overrun ? device::CompletionQueue::Full::kGrow
                            : device::CompletionQueue::Full::kOverrun);
  if (Status ok = queue->entries->engines().open(); !ok) {
    return null_with(errno_of(ok.error()));
  }
  show_identity(queue->plain(), queue->identity, context);
  queue->channel = setup.channel;
  queue->cq_context = setup.context;
  queue->cqe = setup.entries;
  pthread_mutex_init(&queue->mutex, nullptr);
  pthread_cond_init(&queue->cond, nullptr);
  queue->entries->report_overrun(VerbsContext::of(context).events(), queue.get());
  queue->single_threaded = setup.single_threaded;
  fill_poll_functions(*queue, reads);
  if (Status ok = drive(*queue, *queue->port); !ok) return null_with(errno_of(ok.error()));
  if (setup.channel != nullptr) {
    queue->channel_use = UseOf<VerbsChannel>(object_of(setup.channel));
    ++setup.channel->refcnt;
  }
  return &queue.release()->plain();
}

int destroy(ibv_cq* cq) {
  if (cq == nullptr) return EINVAL;
  auto& queue = object_of(cq);
  if (const int error = check_handle(queue); error != 0) return error;
  if (queue.in_use()) return EBUSY;
  stop_driving(queue, *queue.port);
  queue.entries->forget_events();
  await_acknowledgements(queue, queue.completions.delivered, queue.comp_events_completed);
  await_acknowledgements(queue, queue.errors.delivered, queue.async_events_completed);
  if (queue.channel != nullptr) --queue.channel->refcnt;
  pthread_cond_destroy(&queue.cond);
  pthread_mutex_destroy(&queue.mutex);
  delete &queue;
  return 0;
}

int resize(ibv_cq* cq, int entries) {
  auto& queue = object_of(cq);
  if (const int error = check_handle(queue); error != 0) return error;
  if (entries <= 0 || entries > static_cast<int>(queue::kMaxCompletions)) return EINVAL;
  const Status resized = queue.entries->resize(static_cast<std::size_t>(entries));
  if (!resized) return errno_of(resized.error());
  cq->cqe = entries;
  return 0;
}

}  // namespace

Status drive(VerbsCq& queue, queue::QpPort& port) {
  const auto join = [&](device::EngineGroup& group) {
    return port.uses().add(&group, [&] { return group.attach(port); });
  };
  if (Status ok = join(queue.entries->engines()); !ok) return ok;
  if (queue.channel == nullptr) return {};
  return join(*object_of(queue.channel).engines);
}

void stop_driving(VerbsCq& queue, queue::QpPort& port) {
  const auto leave = [&](device::EngineGroup& group) {
    port.uses().remove(&group, [&] { group.detach(port); });
  };
  leave(queue.entries->engines());
  if (queue.channel != nullptr) leave(*object_of(queue.channel).engines);
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* wanted) {
  constexpr std::uint64_t kReads = std::uint64_t{IBV_WC_STANDARD_FLAGS} |
                                   std::uint64_t{IBV_WC_EX_WITH_COMPLETION_TIMESTAMP} |
                                   std::uint64_t{IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK};
  constexpr std::uint32_t kFlags =
      IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
  constexpr std::uint32_t kMasks = IBV_CQ_INIT_ATTR_MASK_FLAGS;
  return at_c_border<ibv_cq_ex>([&]() -> ibv_cq_ex* {
    const bool has_flags = (wanted->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0;
    const std::uint32_t flags = has_flags ? wanted->flags : 0;
    if ((wanted->comp_mask & ~kMasks) != 0 || (wanted->wc_flags & ~kReads) != 0 ||
        (flags & ~kFlags) != 0) {
      return null_with(EOPNOTSUPP);
    }
    CqSetup setup;
    setup.entries = static_cast<int>(wanted->cqe);
    setup.context = wanted->cq_context;
    setup.channel = wanted->channel;
    setup.vector = static_cast<int>(wanted->comp_vector);
    setup.single_threaded = (flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0;
    setup.ignores_overrun = (flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN) != 0;
    ibv_cq* const made = create(context, setup, wanted->wc_flags);
    return made != nullptr ? &object_of(made) : nullptr;
  });
}

// Events are not moderated: each armed queue raises its event at once. A count and a time are
// accepted as an upper limit.
int modify_cq(ibv_cq* cq, ibv_modify_cq_attr* wanted) {
  if (cq == nullptr || wanted == nullptr) return EINVAL;
  return wanted->attr_mask == IBV_CQ_ATTR_MODERATE ? 0 : EINVAL;
}

int req_notify_cq(ibv_cq* cq, int solicited_only) {
  auto& queue = object_of(cq);
  if (queue.channel == nullptr) return EINVAL;
  queue.entries->arm(solicited_only != 0, *object_of(queue.channel).events, &queue);
  return 0;
}

}  // namespace weft::verbs

extern "C" {

ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* cq_context,
                      ibv_comp_channel* channel, int vector) {
  using namespace weft::verbs;
  return at_c_border<ibv_cq>([&] {
    return create(context, {entries, cq_context, channel, vector, false, false}, 0);
  });
}
int ibv_destroy_cq(ibv_cq* cq) { return weft::verbs::destroy(cq); }
int ibv_resize_cq(ibv_cq* cq, int entries) {
  return weft::verbs::status_at_c_border([&] { return weft::verbs::resize(cq, entries); });
}

}  // extern "C"
