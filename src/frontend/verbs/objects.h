// SPDX-License-Identifier: BSD-2-Clause
// What stands behind each verbs object? (infiniband/verbs.h)
//
// Each object begins with the structure that programs see. `handle` is theirs to read: a private
// copy tells an object whose handle a program has overwritten (check_handle()).
#pragma once

#include "abi.h"

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "base/usable.h"
#include "context.h"
#include "device/completion_queue.h"
#include "device/event_channel.h"
#include "memory/region_table.h"
#include "queue/address_handle.h"
#include "queue/queue_pair.h"
#include "queue/shared_entry.h"
#include "shared_memory/region_memory.h"

namespace weft::verbs {

// A number that differs from those of all other objects of this process.
std::uint32_t new_handle();

// The private copy of what the program sees of an object, and its use of the context.
struct ObjectIdentity {
  std::uint32_t number = new_handle();
  ibv_context* owner = nullptr;
  Use use;
};

// Shows the handle and the context of an object.
template <class Public>
void show_identity(Public& shown, ObjectIdentity& identity, ibv_context* context) {
  shown.handle = identity.number;
  shown.context = identity.owner = context;
  identity.use = Use(VerbsContext::of(context).uses());
}

// Errors: ENOENT when the program has overwritten the handle, or the context.
template <class Public>
int check_identity(const Public& shown, const ObjectIdentity& identity) {
  return shown.handle == identity.number && shown.context == identity.owner ? 0 : ENOENT;
}

// Common to most objects of a context.
template <class Public>
struct VerbsObject : Public, Usable {
  explicit VerbsObject(ibv_context* context) : Public{} {
    show_identity<Public>(*this, identity, context);
  }
  ObjectIdentity identity;
};

template <class Public>
int check_handle(const VerbsObject<Public>& object) {
  return check_identity<Public>(object, object.identity);
}

struct VerbsPd : VerbsObject<ibv_pd> {
  using VerbsObject::VerbsObject;
  DomainId domain;
};

struct VerbsMr : VerbsObject<ibv_mr> {
  using VerbsObject::VerbsObject;
  // Replaces the handle.
  void call(std::uint32_t number) { handle = identity.number = number; }

  std::optional<memory::Registration> registration;   // none: the memory is only mapped
  std::optional<shared_memory::RegionMemory> memory;  // that a verb has allocated or mapped
  UseOf<VerbsPd> domain;
  unsigned access = 0;
  std::uint64_t start = 0;  // the address that names the first byte (iova)
};

struct VerbsChannel : ibv_comp_channel, Usable {
  Use context_use;
  std::unique_ptr<device::EventChannel> events;
  std::unique_ptr<device::EngineGroup> engines;  // the ports of its queues
};

// The events of one object that were delivered and must be acknowledged before it goes.
struct Acknowledged {
  std::atomic<std::uint32_t> delivered{0};
};

struct VerbsCq : ibv_cq_ex, Usable {
  ObjectIdentity identity;
  std::shared_ptr<queue::QpPort> port;  // of queue pairs that receive here
  std::unique_ptr<device::CompletionQueue> entries;
  UseOf<VerbsChannel> channel_use;
  Acknowledged completions;
  Acknowledged errors;
  bool single_threaded = false;
  device::Completion current;  // of ibv_start_poll(3)
  ibv_cq& plain() { return *reinterpret_cast<ibv_cq*>(this); }
};

struct VerbsSrq;

struct XrcDomain;
struct XrcTarget;

struct VerbsXrcd final : ibv_xrcd, Usable {
  Use context_use;
  std::shared_ptr<XrcDomain> domain;  // shared with other handles
};

struct VerbsSrq : VerbsObject<ibv_srq> {
  using VerbsObject::VerbsObject;
  DomainId memory_domain;
  std::unique_ptr<queue::QpReceiveQueue> receives;
  UseOf<VerbsPd> domain;
  UseOf<VerbsXrcd> xrc_domain;          // of one for XRC
  UseOf<VerbsCq> completions;           // the same
  std::shared_ptr<queue::QpPort> port;  // the same
  std::uint32_t srq_number = 0;
  std::unique_ptr<queue::SharedEntry> entry;  // the same, where peers of the host share memory
  Acknowledged events;
  device::EventSource limit_reached{device::Cause::kReceiveLimit};
};

struct VerbsQp final : ibv_qp_ex, Usable, queue::QpEventSink {
  void happened(queue::QpEvent event) override;
  ibv_qp& plain() { return qp_base; }

  ObjectIdentity identity;
  std::uint64_t send_operations = 0;  // that ibv_wr_*() may post; 0: not created for these
  bool all_signaled = false;
  std::shared_ptr<queue::QueuePair> core;
  std::shared_ptr<XrcTarget> target;  // that `core` belongs to, of type XRC_RECV
  UseOf<VerbsPd> domain;
  UseOf<VerbsCq> sends;
  UseOf<VerbsCq> receives;
  UseOf<VerbsSrq> shared;
  UseOf<VerbsXrcd> xrc_domain;
  std::shared_ptr<queue::QpPort> port;
  Acknowledged events;
  std::array<device::EventSource, 5> sources{
      device::EventSource(device::Cause::kCommunicationEstablished),
      device::EventSource(device::Cause::kAccessError),
      device::EventSource(device::Cause::kRequestError), device::EventSource(device::Cause::kFatal),
      device::EventSource(device::Cause::kLastReceive)};
  std::shared_ptr<struct WorkBuilder> builder;  // of ibv_wr_start(3)
};

struct VerbsAh : VerbsObject<ibv_ah> {
  using VerbsObject::VerbsObject;
  UseOf<VerbsPd> domain;
  std::unique_ptr<queue::AddressHandle> address;
};

inline VerbsPd& object_of(ibv_pd* pd) { return static_cast<VerbsPd&>(*pd); }
inline VerbsMr& object_of(ibv_mr* mr) { return static_cast<VerbsMr&>(*mr); }
inline VerbsChannel& object_of(ibv_comp_channel* channel) {
  return static_cast<VerbsChannel&>(*channel);
}
// ibv_cq_ex begins with the members of ibv_cq.
inline VerbsCq& object_of(ibv_cq_ex* cq) { return static_cast<VerbsCq&>(*cq); }
inline VerbsCq& object_of(ibv_cq* cq) { return object_of(reinterpret_cast<ibv_cq_ex*>(cq)); }
inline VerbsSrq& object_of(ibv_srq* srq) { return static_cast<VerbsSrq&>(*srq); }
inline VerbsXrcd& object_of(ibv_xrcd* domain) { return static_cast<VerbsXrcd&>(*domain); }
inline VerbsQp& object_of(ibv_qp_ex* qp) { return static_cast<VerbsQp&>(*qp); }
inline VerbsQp& object_of(ibv_qp* qp) { return object_of(reinterpret_cast<ibv_qp_ex*>(qp)); }
inline VerbsAh& object_of(ibv_ah* ah) { return static_cast<VerbsAh&>(*ah); }

inline int check_handle(VerbsCq& cq) { return check_identity(cq.plain(), cq.identity); }
inline int check_handle(VerbsQp& qp) { return check_identity(qp.plain(), qp.identity); }

// The program acknowledges so many events of an object.
template <class Counted>
void acknowledge(Counted& object, std::uint32_t& completed, std::uint32_t count) {
  pthread_mutex_lock(&object.mutex);
  completed += count;
  pthread_cond_signal(&object.cond);
  pthread_mutex_unlock(&object.mutex);
}

// Waits until the program has acknowledged all events of an object, which is about to go.
template <class Counted>
void await_acknowledgements(Counted& object, const std::atomic<std::uint32_t>& delivered,
                            const std::uint32_t& completed) {
  pthread_mutex_lock(&object.mutex);
  while (completed != delivered.load()) pthread_cond_wait(&object.cond, &object.mutex);
  pthread_mutex_unlock(&object.mutex);
}

}  // namespace weft::verbs
