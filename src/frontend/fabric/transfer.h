// SPDX-License-Identifier: BSD-2-Clause
// How do the arguments of libfabric's transfer calls become calls of an endpoint?
#pragma once

#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <initializer_list>
#include <span>

#include "boundary.h"
#include "deferral.h"
#include "device_staging.h"
#include "handle.h"
#include "offer.h"
#include "operations.h"
#include "transfer_rules.h"

namespace weft::fabric {

static_assert(sizeof(iovec) == sizeof(LocalRange));
static_assert(offsetof(iovec, iov_len) == offsetof(LocalRange, length));
static_assert(sizeof(fi_rma_iov) == sizeof(RemoteRange));
static_assert(offsetof(fi_rma_iov, len) == offsetof(RemoteRange, length));
static_assert(offsetof(fi_rma_iov, key) == offsetof(RemoteRange, key));
static_assert(FI_ADDR_UNSPEC == messaging::kNoPeer);

// Flags that a transmit call may carry.
inline constexpr std::uint64_t kCallFlags = kTxFlags | FI_TRIGGER;

// One buffer as a list of SGEs.
inline LocalRange sge(const void* buffer, std::size_t length) {
  return {const_cast<void*>(buffer), length};
}

// The buffer of a message. Without a buffer the message has no bytes, whatever its length says, as
// with libfabric's socket providers, on which programs rely.
inline LocalRange message_sge(const void* buffer, std::size_t length) {
  return sge(buffer, buffer != nullptr ? length : 0);
}

// A caller's list of SGEs.
inline std::span<const LocalRange> sges(const iovec* list, std::size_t count) {
  return {reinterpret_cast<const LocalRange*>(list), count};
}

// A caller's list of remote ranges.
inline std::span<const RemoteRange> ranges(const fi_rma_iov* list, std::size_t count) {
  return {reinterpret_cast<const RemoteRange*>(list), count};
}

// Checks a caller's list of SGEs and adds up its length. Errors: -FI_EINVAL for a null list or
// buffer and too many SGEs, -FI_EMSGSIZE for more than kMaxMessageSize bytes.
inline int measure(std::span<const LocalRange> list, std::size_t& length) {
  if (list.size() > kIovLimit || (list.data() == nullptr && !list.empty())) return -FI_EINVAL;
  std::size_t sum = 0;
  for (const LocalRange& entry : list) {
    if (entry.base == nullptr && entry.length != 0) return -FI_EINVAL;
    if (entry.length > kMaxMessageSize - sum) return -FI_EMSGSIZE;
    sum += entry.length;
  }
  length = sum;
  return 0;
}

// Data for the completion queue of the target, where a call has some.
struct RemoteData {
  bool given = false;
  std::uint64_t value = 0;
};

// How a call reports its end: by default, or as the flags of the call say.
inline messaging::Report report(bool selective, std::uint64_t flags, void* context) {
  return {context, !selective || (flags & FI_COMPLETION) != 0};
}

// The tables of one kind of message calls: fi_ops_msg or fi_ops_tagged.
template <class Table>
class ByDirection {
 public:
  explicit ByDirection(const Table& full)
      : both_(full),
        transmit_(with_receives_of(unsupported_operations<Table>(), full)),
        receive_(with_receives_of(full, unsupported_operations<Table>())) {}
  Table* of(Direction direction) const {
    if (direction == Direction::kBoth) return both_.get();
    return direction == Direction::kTransmit ? transmit_.get() : receive_.get();
  }

 private:
  static Table with_receives_of(const Table& from, Table table) {
    table.recv = from.recv;
    table.recvv = from.recvv;
    table.recvmsg = from.recvmsg;
    return table;
  }

  OperationTable<Table> both_;
  OperationTable<Table> transmit_;
  OperationTable<Table> receive_;
};

// Starts a call that was checked, now or later. `refusal` is null or says why that call, which is
// put off, must not be carried out (deferral.h); `work` is as there, here and below.
template <class Call>
using Start = ssize_t (*)(Handle& ep, Call& call, std::uint64_t flags, const fi_deferred_work* work,
                          const RefusedAccess* refusal) noexcept;

// Buffers and ranges of a call of `length` bytes; injected bytes are copied.
struct Uses {
  std::size_t length;
  bool injected;
  std::initializer_list<LocalUse> local;
  std::span<const RemoteRange> remote = {};
};

// Starts a call some of whose buffers are memory of devices.
template <class Target, class Call>
ssize_t start_staged(Handle& ep, Target& target, Call& call, std::uint64_t flags, Start<Call> start,
                     std::initializer_list<LocalUse> uses, const DeviceBuffers& devices) {
  if ((flags & FI_TRIGGER) != 0) return -FI_ENOSYS;
  const messaging::StagingPtr staging(new DeviceStaging(uses, devices));
  if (const int error = static_cast<DeviceStaging&>(*staging).begin(); error != 0) {
    if (call.report.silent()) return -error;
    target.abandon(call, error);
    return 0;
  }
  call.staging = staging.get();
  return start(ep, call, flags, nullptr, nullptr);
}

// Holds a call to the rules of its domain's contract. A call with buffers that must not be used is
// reported by `target` instead of being started, unless it is put off. Kept out of the way of calls
// that have no such rules.
template <class Target, class Call>
[[gnu::cold, gnu::noinline]] ssize_t start_by_rules(Handle& ep, Target& target, Call& call,
                                                    std::uint64_t flags,
                                                    const fi_deferred_work* work, Start<Call> start,
                                                    const Uses& uses) noexcept {
  return at_c_border([&]() -> ssize_t {
    if (const int wrong = ep.rules()->check_size(uses.length, uses.injected)) return wrong;
    DeviceBuffers devices;
    const RefusedAccess refused = ep.rules()->check(uses.local, uses.remote, devices);
    if (refused.reason == 0 && devices.any) {
      return start_staged(ep, target, call, flags, start, uses.local, devices);
    }
    if (refused.reason == 0) return start(ep, call, flags, work, nullptr);
    if ((flags & FI_TRIGGER) == 0) return -target.refuse(call, refused);
    return start(ep, call, flags, work, &refused);
  });
}

inline LocalUse local_use(std::span<const LocalRange>& buffers, Descriptors descriptors,
                          Access need, bool injected = false) {
  return {&buffers, descriptors, need, injected};
}

inline ssize_t start_send(Handle& ep, messaging::SendCall& call, std::uint64_t flags,
                          const fi_deferred_work* work, const RefusedAccess* refusal) noexcept {
  if ((flags & FI_TRIGGER) != 0) [[unlikely]]
    return defer(ep, call, flags, work, refusal);
  return at_c_border([&]() -> ssize_t { return -ep.core()->send(call); });
}

// Finishes a send: checks what all forms have in common, and sends, now or later.
inline ssize_t send(Handle& ep, messaging::SendCall& call, Descriptors descriptors,
                    std::uint64_t flags, const fi_deferred_work* work = nullptr) noexcept {
  if (ep.core() == nullptr) [[unlikely]]
    return -FI_EOPBADSTATE;
  if (const int wrong = measure(call.sges, call.length)) [[unlikely]]
    return wrong;
  call.must_copy = call.report.silent() || (flags & FI_INJECT) != 0;
  if (call.must_copy && call.length > kInjectSize) [[unlikely]]
    return -FI_EMSGSIZE;
  call.until_delivered = (flags & FI_DELIVERY_COMPLETE) != 0;
  call.fence = (flags & FI_FENCE) != 0;
  if (ep.rules() != nullptr) [[unlikely]] {
    return start_by_rules(ep, *ep.core(), call, flags, work, start_send,
                          {call.length,
                           call.must_copy,
                           {local_use(call.sges, descriptors, Access::kSend, call.must_copy)}});
  }
  return start_send(ep, call, flags, work, nullptr);
}

// Starts an operation on memory of a peer.
template <class Call>
ssize_t start_remote(Handle& ep, Call& call, int (messaging::Endpoint::*start)(Call&),
                     std::uint64_t flags, const fi_deferred_work* work,
                     const RefusedAccess* refusal) noexcept {
  if ((flags & FI_TRIGGER) != 0) [[unlikely]]
    return defer(ep, call, flags, work, refusal);
  return at_c_border([&]() -> ssize_t { return -((*ep.core()).*start)(call); });
}

inline ssize_t start_datagram(Handle& ep, messaging::SendCall& call, std::uint64_t flags,
                              const fi_deferred_work* work, const RefusedAccess* refusal) noexcept {
  if ((flags & FI_TRIGGER) != 0) [[unlikely]]
    return defer(ep, call, flags, work, refusal);
  return at_c_border([&]() -> ssize_t {
    messaging::Endpoint& core = *ep.core();
    return -((flags & FI_MULTICAST) != 0 ? core.send_to_group(call) : core.send_datagram(call));
  });
}

// The same for endpoints whose messages may be lost (FI_EP_DGRAM): the buffers are free when it
// returns. Errors besides: -FI_EMSGSIZE for more than the endpoint's limit.
inline ssize_t send_datagram(Handle& ep, messaging::SendCall& call, Descriptors descriptors,
                             std::uint64_t flags, const fi_deferred_work* work = nullptr) noexcept {
  if (ep.core() == nullptr) [[unlikely]]
    return -FI_EOPBADSTATE;
  if (const int wrong = measure(call.sges, call.length)) [[unlikely]]
    return wrong;
  if (call.length > ep.max_message_size()) [[unlikely]]
    return -FI_EMSGSIZE;
  if (ep.rules() != nullptr) [[unlikely]] {
    const bool injected = call.report.silent() || (flags & FI_INJECT) != 0;
    return start_by_rules(
        ep, *ep.core(), call, flags, work, start_datagram,
        {call.length, injected, {local_use(call.sges, descriptors, Access::kSend, injected)}});
  }
  return start_datagram(ep, call, flags, work, nullptr);
}

inline ssize_t start_receive(Handle& ep, messaging::ReceiveCall& call, std::uint64_t flags,
                             const fi_deferred_work* work, const RefusedAccess* refusal) noexcept {
  if ((flags & FI_TRIGGER) != 0) [[unlikely]]
    return defer(ep, call, flags, work, refusal);
  return at_c_border([&]() -> ssize_t { return -ep.receives()->receive(call); });
}

// Posts a receive, or peeks.
inline ssize_t receive(Handle& ep, messaging::ReceiveCall& call, Descriptors descriptors,
                       fi_addr_t source, std::uint64_t flags,
                       const fi_deferred_work* work = nullptr) noexcept {
  if (ep.receives() == nullptr) [[unlikely]]
    return -FI_EOPBADSTATE;
  std::size_t length = 0;
  const bool has_buffers = call.mode == messaging::ReceiveCall::Mode::kPost ||
                           call.mode == messaging::ReceiveCall::Mode::kTakeClaimed;
  if (!has_buffers) {
    call.sges = {};  // fi_tagged(3): a peek ignores them
  } else if (const int wrong = measure(call.sges, length)) {
    return wrong;
  }
  if (ep.directed()) call.source = source;
  if (ep.rules() != nullptr) [[unlikely]] {
    return start_by_rules(ep, *ep.receives(), call, flags, work, start_receive,
                          {0, false, {local_use(call.sges, descriptors, Access::kReceive)}});
  }
  return start_receive(ep, call, flags, work, nullptr);
}

}  // namespace weft::fabric
