// SPDX-License-Identifier: BSD-2-Clause
// How does a program learn of events? (rdma_get_cm_event(3), rdma_ack_cm_event(3))
#include "events.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "boundary.h"
#include "cm_space.h"
#include "os/event.h"
#include "os/interfaces.h"
#include "pair_states.h"

namespace weft::rdmacm {
namespace {

// The program has done with an event of the id. With the lock held.
void acknowledge(CmId& id) {
  ++id.acknowledged;
  id.space().acknowledgements().notify_all();
}

// A request that is the first event of its channel, while its id is being made. The listener stays
// as long: rdma_destroy_id(3) waits.
class FirstRequest {
 public:
  // With the lock held.
  explicit FirstRequest(CmEventRecord& record)
      : record_(&record),
        number_(record.request),
        listener_(*record.target),
        channel_(listener_.is_sync ? nullptr : listener_.shared_channel()),
        own_address_(record.own_address) {
    ++listener_.delivered;
  }
  ~FirstRequest() {
    if (is_reported_) return;
    const MutexLock guard(listener_.space().lock());
    acknowledge(listener_);
  }
  FirstRequest(const FirstRequest&) = delete;
  FirstRequest& operator=(const FirstRequest&) = delete;

  // Errors: ENODEV, EMFILE, ENOMEM.
  Status make_id() {
    auto made = CmId::create(listener_.shared_space(), channel_, listener_.context, listener_.ps,
                             listener_.qp_type);
    if (!made) return made.error();
    id_ = std::move(made).value();
    auto local = DeviceTable::instance().find(own_address_);
    has_device_ = local.ok();
    if (!has_device_) local = DeviceTable::instance().first();
    if (!local) return local.error();
    id_->bind_to(local.value());
    end_ = id_->event_of(RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
    return {};
  }
  // Takes the event, if it is still the first; else null. The end of a request that has ended
  // before, or came to an address without a device, is reported next.
  std::unique_ptr<CmEventRecord> take() {
    CmChannel& channel = listener_.own_channel();
    const MutexLock guard(listener_.space().lock());
    if (channel.first() != record_ || record_->request != number_) return nullptr;
    std::unique_ptr<CmEventRecord> record = channel.take();
    fill(*record);
    record->id = id_.release();
    is_reported_ = true;
    return record;
  }

 private:
  void fill(CmEventRecord& record) {
    // A program of this host may name any of its GIDs, and no other host.
    ibv_gid& peer = record.terms.peer_gid;
    if (is_loopback(record.peer_address) && !os::is_local_address(address_of(peer).get())) {
      peer = id_->local.gid;
    }
    id_->set_source(record.own_address);
    id_->set_destination(record.peer_address);
    id_->set_route(peer);
    id_->terms = record.terms;
    id_->limit_depths();
    id_->connection = record.request;
    id_->manager = record.manager;
    ++id_->manager->users;
    id_->state = IdState::kRequested;
    if (record.end_of_request != 0) {
      end_->event = RDMA_CM_EVENT_REJECTED;
      end_->status = record.end_of_request;
    }
    if (record.request == 0) --listener_.ended_requests;
    const bool lives = record.request != 0 && id_->manager->claim(*id_).ok();
    if (lives && has_device_) return;
    if (lives) static_cast<void>(id_->manager->reject(*id_, wire::CmReason::kNoResources, {}));
    id_->connection = 0;
    id_->state = IdState::kEnded;
    id_->own_channel().add(std::move(end_));
  }

  CmEventRecord* const record_;  // only compared until it is taken
  const cm::ConnectionId number_;
  CmId& listener_;
  const std::shared_ptr<CmChannel> channel_;
  const os::SocketAddress own_address_;
  std::unique_ptr<CmId> id_;
  std::unique_ptr<CmEventRecord> end_;
  bool has_device_ = false;
  bool is_reported_ = false;
};

// A REP has come: the queue pair of the id goes to RTS, and an RTU leaves. False when the attempt
// has ended meanwhile: that is reported next.
bool establish(CmEventRecord& record) {
  CmId& id = CmId::of(record.id);
  {
    const MutexLock guard(id.space().lock());
    if (id.state != IdState::kResponded) return false;
  }
  if (id.qp == nullptr) return true;  // rdma_establish(3)
  const Status moved = connect_pair(id);
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
bool conclude(CmEventRecord& record) {
  if (record.event == RDMA_CM_EVENT_CONNECT_RESPONSE) return establish(record);
  const bool has_failed =
      record.event == RDMA_CM_EVENT_REJECTED || record.event == RDMA_CM_EVENT_UNREACHABLE;
  if (has_failed) end_pair(CmId::of(record.id));
  return true;
}

void complete(CmEventRecord& record) {
  const MutexLock guard(record.target->space().lock());
  acknowledge(*record.target);
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

  // Takes the first event, and makes the id of a request. False when there is none to report; look
  // again then. Errors: those of FirstRequest::make_id(), whose request waits.
  Result<bool> take() {
    std::optional<FirstRequest> request;
    {
      const MutexLock guard(channel_->space().lock());
      CmEventRecord* const first = channel_->first();
      if (first != nullptr && first->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
        request.emplace(*first);
      } else if (first != nullptr) {
        record_ = channel_->take();
        ++record_->target->delivered;
      }
    }
    if (request) {
      if (Status made = request->make_id(); !made) return made.error();
      record_ = request->take();
    } else if (record_ != nullptr && !conclude(*record_)) {
      complete(*record_);
      record_.reset();
    }
    return record_ != nullptr;
  }
  // Whether there is an event.
  bool has_event() {
    const MutexLock guard(channel_->space().lock());
    return channel_->first() != nullptr;
  }
  CmEventRecord* hand_out() { return record_.release(); }

 private:
  const std::shared_ptr<CmChannel> channel_;
  std::unique_ptr<CmEventRecord> record_;
};

int get_event(CmChannel& channel, rdma_cm_event** event) {
  EventReader reader(channel);
  for (;;) {
    auto taken = reader.take();
    if (!taken) return minus_one_with(taken.error().code);
    if (taken.value()) {
      *event = reader.hand_out();
      return 0;
    }
    if (reader.has_event()) continue;
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
