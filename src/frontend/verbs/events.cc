// SPDX-License-Identifier: BSD-2-Clause
// Asynchronous events: ibv_get_async_event(3)

#include <cerrno>
#include <chrono>

#include "boundary.h"
#include "objects.h"
#include "os/event.h"

namespace weft::verbs {
namespace {

void fill(ibv_async_event& event, const device::ChannelEvent& channel_event) {
  const auto of_pair = [&](ibv_event_type type) {
    auto& pair = *static_cast<VerbsQp*>(channel_event.object);
    ++pair.events.delivered;
    event.element.qp = &pair.plain();
    event.event_type = type;
  };
  switch (channel_event.cause) {
    case device::Cause::kCompletion:
    case device::Cause::kOverrun: {
      auto& queue = *static_cast<VerbsCq*>(channel_event.object);
      ++queue.errors.delivered;
      event.element.cq = &queue.plain();
      event.event_type = IBV_EVENT_CQ_ERR;
      return;
    }
    case device::Cause::kReceiveLimit: {
      auto& queue = *static_cast<VerbsSrq*>(channel_event.object);
      ++queue.events.delivered;
      event.element.srq = &queue;
      event.event_type = IBV_EVENT_SRQ_LIMIT_REACHED;
      return;
    }
    case device::Cause::kCommunicationEstablished:
      return of_pair(IBV_EVENT_COMM_EST);
    case device::Cause::kAccessError:
      return of_pair(IBV_EVENT_QP_ACCESS_ERR);
    case device::Cause::kRequestError:
      return of_pair(IBV_EVENT_QP_REQ_ERR);
    case device::Cause::kFatal:
      return of_pair(IBV_EVENT_QP_FATAL);
    case device::Cause::kLastReceive:
      return of_pair(IBV_EVENT_QP_LAST_WQE_REACHED);
  }
}

// As read(2) on the descriptor: it waits unless that has O_NONBLOCK.
int get_async_event(ibv_context* context, ibv_async_event& event) {
  device::EventChannel& events = VerbsContext::of(context).events();
  for (;;) {
    if (const auto channel_event = events.take()) {
      fill(event, *channel_event);
      return 0;
    }
    if (!os::may_wait(events.fd())) {
      return minus_one_with(EAGAIN);
    }
    if (!os::sleep_or_cancelled(events.fd(), std::chrono::milliseconds(-1)) &&
        !os::handlers_restart_calls()) {
      return minus_one_with(EINTR);
    }
  }
}

void ack_async_event(const ibv_async_event& event) {
  switch (event.event_type) {
    case IBV_EVENT_CQ_ERR:
      return acknowledge(*event.element.cq, event.element.cq->async_events_completed, 1);
    case IBV_EVENT_SRQ_LIMIT_REACHED:
    case IBV_EVENT_SRQ_ERR:
      return acknowledge(*event.element.srq, event.element.srq->events_completed, 1);
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
      return acknowledge(*event.element.qp, event.element.qp->events_completed, 1);
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE:
    case IBV_EVENT_WQ_FATAL:
      return;
  }
}

}  // namespace
}  // namespace weft::verbs

extern "C" {

int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  return weft::verbs::get_async_event(context, *event);
}
void ibv_ack_async_event(ibv_async_event* event) { weft::verbs::ack_async_event(*event); }

}  // extern "C"
