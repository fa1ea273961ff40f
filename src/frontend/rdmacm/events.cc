// SPDX-License-Identifier: BSD-2-Clause
// How does a program learn of events? (rdma_get_cm_event(3), rdma_ack_cm_event(3))
#include "events.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "boundary.h"
#include "cm_space.h"
#include "os/event.h"
#include "os/interfaces.h"
#include "pair_states.h"

namespace weft::rdmacm {
namespace {

// The depths that the device allows.
void limit(ConnectionTerms& terms, const CmDevice& device) {
  terms.initiator_depth = std::min(terms.initiator_depth, device.initiator_depth);
  terms.responder_resources = std::min(terms.responder_resources, device.responder_resources);
}

// Makes the id of a request that is about to be reported; of one that has ended before, too: its
// end is reported next. False when a younger request displaces it now. Errors: ENODEV, EMFILE,
// ENOMEM.
Result<bool> make_id(CmEventRecord& record) {
  CmId& listener = *record.target;
  std::shared_ptr<CmChannel> channel;
  {
    const MutexLock guard(listener.space().lock());
    if (!listener.is_sync) channel = listener.shared_channel();
  }
  auto made = CmId::create(listener.shared_space(), std::move(channel), listener.context,
                           listener.ps, listener.qp_type);
  if (!made) return made.error();
  std::unique_ptr<CmId> id = std::move(made).value();
  auto local = DeviceTable::instance().find(record.own_address);
  if (!local) return local.error();
  id->bind_to(local.value());
  // A program of this host may name any of its GIDs, and no other host.
  ibv_gid& peer = record.terms.peer_gid;
  if (is_loopback(record.peer_address) && !os::is_local_address(address_of(peer).get())) {
    peer = id->local.gid;
  }
  id->set_source(record.own_address);
  id->set_destination(record.peer_address);
  id->set_route(peer);
  id->terms = record.terms;
  limit(id->terms, *id->local.device);
  auto end = id->event_of(RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
  if (record.end_of_request != 0) {
    end->event = RDMA_CM_EVENT_REJECTED;
    end->status = record.end_of_request;
  }
  const MutexLock guard(listener.space().lock());
  id->connection = record.request;
  id->manager = record.manager;
  id->state = IdState::kRequested;
  if (record.request == 0) {
    --listener.ended_requests;
    id->state = IdState::kEnded;
    id->own_channel().add(std::move(end));
  } else if (!id->manager->claim(*id)) {
    return false;
  }
  ++id->manager->users;
  record.id = id.release();
  return true;
}

// A REP has come: the queue pair of the id goes to RTS, and an RTU leaves. False when the attempt
// has ended meanwhile: that is reported next.
bool establish(CmEventRecord& record) {
  CmId& id = CmId::of(record.id);
  {
    const MutexLock guard(id.space().lock());
    if (id.state != IdState::kResponded) return false;
  }
  if (id.qp == nullptr) return true;  // rdma_establish(3)
  Status moved = move_pair(id, *id.qp, IBV_QPS_RTR);
  if (moved) moved = move_pair(id, *id.qp, IBV_QPS_RTS);
  if (!moved) end_pair(id);
  const MutexLock guard(id.space().lock());
  if (id.state != IdState::kResponded) return false;
  if (moved) {
    id.state = IdState::kConnected;
    record.event = RDMA_CM_EVENT_ESTABLISHED;
    static_cast<void>(id.manager->confirm(id));
  } else {
    record.event = RDMA_CM_EVENT_CONNECT_ERROR;
    record.status = -moved.error().code;
    static_cast<void>(id.manager->reject(id, wire::CmReason::kConsumer, {}));
  }
  return true;
}

// Does the library's part of an event. False when the event is not reported.
Result<bool> conclude(CmEventRecord& record) {
  if (record.event == RDMA_CM_EVENT_CONNECT_REQUEST) return make_id(record);
  if (record.event == RDMA_CM_EVENT_CONNECT_RESPONSE) return establish(record);
  const bool has_failed =
      record.event == RDMA_CM_EVENT_REJECTED || record.event == RDMA_CM_EVENT_UNREACHABLE;
  if (has_failed) end_pair(CmId::of(record.id));
  return true;
}

void complete(CmEventRecord& record) {
  CmSpace& space = record.target->space();
  const MutexLock guard(space.lock());
  ++record.target->acknowledged;
  space.acknowledgements().notify_all();
}

// A thread inside of rdma_get_cm_event(3), with the event that it has taken. It may be cancelled.
class EventReader {
 public:
  explicit EventReader(CmChannel& channel) : channel_(channel.shared_from_this()) {
    const MutexLock guard(channel_->space().lock());
    ++channel_->readers;
  }
  ~EventReader() {
    if (record_ != nullptr) complete(*record_);
    const MutexLock guard(channel_->space().lock());
    --channel_->readers;
  }
  EventReader(const EventReader&) = delete;
  EventReader& operator=(const EventReader&) = delete;

  // The first event; null without one.
  CmEventRecord* take() {
    const MutexLock guard(channel_->space().lock());
    record_ = channel_->take();
    if (record_ != nullptr) ++record_->target->delivered;
    return record_.get();
  }
  CmEventRecord* hand_out() { return record_.release(); }
  void drop() {
    complete(*record_);
    record_.reset();
  }
  void put_back() {
    CmId& target = *record_->target;
    const MutexLock guard(target.space().lock());
    ++target.acknowledged;
    target.own_channel().put_back(std::move(record_));
    target.space().acknowledgements().notify_all();
  }

 private:
  const std::shared_ptr<CmChannel> channel_;
  std::unique_ptr<CmEventRecord> record_;
};

int get_event(CmChannel& channel, rdma_cm_event** event) {
  EventReader reader(channel);
  for (;;) {
    if (CmEventRecord* const record = reader.take()) {
      auto reported = conclude(*record);
      if (!reported) {
        reader.put_back();
        return minus_one_with(reported.error().code);
      }
      if (reported.value()) {
        *event = reader.hand_out();
        return 0;
      }
      reader.drop();
      continue;
    }
    if (channel.fd >= 0 && !os::may_wait(channel.fd)) return minus_one_with(EAGAIN);
    if (!os::sleep_or_cancelled(channel.fd, std::chrono::milliseconds(-1)) &&
        !os::handlers_restart_calls()) {
      return minus_one_with(EINTR);
    }
  }
}

}  // namespace

Status await(CmId& id) {
  if (!id.is_sync) return {};
  if (id.event != nullptr) rdma_ack_cm_event(std::exchange(id.event, nullptr));
  if (rdma_get_cm_event(id.channel, &id.event) != 0) return error_of_errno("rdma_get_cm_event");
  if (id.event->status == 0) return {};
  if (id.event->event == RDMA_CM_EVENT_REJECTED) return Error{ECONNREFUSED, "rejected"};
  return Error{std::abs(id.event->status), rdma_event_str(id.event->event)};
}

}  // namespace weft::rdmacm

extern "C" {

int rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) {
  using namespace weft::rdmacm;
  if (channel == nullptr || event == nullptr) return minus_one_with(EINVAL);
  try {
    return get_event(CmChannel::of(channel), event);
  } catch (const std::exception&) {
    return minus_one_with(ENOMEM);
  }
}

int rdma_ack_cm_event(rdma_cm_event* event) {
  using namespace weft::rdmacm;
  if (event == nullptr) return minus_one_with(EINVAL);
  const std::unique_ptr<CmEventRecord> record(static_cast<CmEventRecord*>(event));
  complete(*record);
  return 0;
}

const char* rdma_event_str(rdma_cm_event_type event) {
  unsigned number = 0;
  static_assert(sizeof number == sizeof event);
  std::memcpy(&number, &event, sizeof number);
  static constexpr const char* kNames[] = {
      "RDMA_CM_EVENT_ADDR_RESOLVED",   "RDMA_CM_EVENT_ADDR_ERROR",
      "RDMA_CM_EVENT_ROUTE_RESOLVED",  "RDMA_CM_EVENT_ROUTE_ERROR",
      "RDMA_CM_EVENT_CONNECT_REQUEST", "RDMA_CM_EVENT_CONNECT_RESPONSE",
      "RDMA_CM_EVENT_CONNECT_ERROR",   "RDMA_CM_EVENT_UNREACHABLE",
      "RDMA_CM_EVENT_REJECTED",        "RDMA_CM_EVENT_ESTABLISHED",
      "RDMA_CM_EVENT_DISCONNECTED",    "RDMA_CM_EVENT_DEVICE_REMOVAL",
      "RDMA_CM_EVENT_MULTICAST_JOIN",  "RDMA_CM_EVENT_MULTICAST_ERROR",
      "RDMA_CM_EVENT_ADDR_CHANGE",     "RDMA_CM_EVENT_TIMEWAIT_EXIT"};
  return number < std::size(kNames) ? kNames[number] : "UNKNOWN EVENT";
}

}  // extern "C"
