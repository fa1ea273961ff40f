// SPDX-License-Identifier: BSD-2-Clause
// Completion channels: ibv_create_comp_channel(3), ibv_get_cq_event(3)

#include <cerrno>

#include "boundary.h"
#include "objects.h"
#include "os/event.h"

namespace weft::verbs {
namespace {

ibv_comp_channel* create_channel(ibv_context* context) {
  return at_c_border<ibv_comp_channel>([&]() -> ibv_comp_channel* {
    auto channel = std::make_unique<VerbsChannel>();
    auto events = device::EventChannel::open();
    if (!events) return null_with(errno_of(events.error()));
    channel->events = std::move(events).value();
    channel->engines =
        std::make_unique<device::EngineGroup>(Locking(true), device::WaitKind::kDescriptor);
    if (Status ok = channel->engines->open(); !ok) {
      return null_with(errno_of(ok.error()));
    }
    channel->events->wake(*channel->engines);
    channel->context = context;
    channel->context_use = Use(VerbsContext::of(context).uses());
    channel->fd = channel->events->fd();
    channel->refcnt = 0;
    return channel.release();
  });
}

int destroy_channel(ibv_comp_channel* channel) {
  if (channel == nullptr) return EINVAL;
  auto& object = object_of(channel);
  if (object.in_use()) return EBUSY;
  delete &object;
  return 0;
}

// As read(2) on the descriptor: it waits unless that has O_NONBLOCK.
int get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** context) {
  if (channel == nullptr || cq == nullptr || context == nullptr) {
    return minus_one_with(EINVAL);
  }
  auto& object = object_of(channel);
  for (;;) {
    if (const auto channel_event = object.events->take()) {
      auto& queue = *static_cast<VerbsCq*>(channel_event->object);
      ++queue.completions.delivered;
      *cq = &queue.plain();
      *context = queue.cq_context;
      return 0;
    }
    object.engines->progress();
    if (object.events->has_event()) continue;
    if (!os::may_wait(object.fd)) {
      return minus_one_with(EAGAIN);
    }
    if (!object.engines->wait_as_read([&] { return object.events->has_event(); })) {
      return minus_one_with(EINTR);
    }
  }
}

}  // namespace
}  // namespace weft::verbs

extern "C" {

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  return weft::verbs::create_channel(context);
}
int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  return weft::verbs::destroy_channel(channel);
}
int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** context) {
  return weft::verbs::get_cq_event(channel, cq, context);
}
void ibv_ack_cq_events(ibv_cq* cq, unsigned count) {
  weft::verbs::acknowledge(*cq, cq->comp_events_completed, count);
}

}  // extern "C"
