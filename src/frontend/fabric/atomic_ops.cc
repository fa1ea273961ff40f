// SPDX-License-Identifier: BSD-2-Clause
// What do the atomic calls do? fi_atomic(3)
#include <rdma/fi_atomic.h>

#include "atomic_query.h"
#include "c_enum.h"
#include "transfer.h"

namespace weft::fabric {
namespace {

using messaging::AtomicCall;

static_assert(kMaxAtomicBytes <= kInjectSize, "every operand may be injected");

using Elements = std::span<const fi_ioc>;
using RemoteElements = std::span<const fi_rma_ioc>;

// The bytes of a list whose entries count elements of `size` bytes. Errors: -FI_EINVAL for an empty
// or null list, a null buffer, or too many entries; -FI_EMSGSIZE for more than kMaxAtomicBytes.
template <class Entry, class Range, std::size_t kMost, class Convert>
int to_bytes(std::span<const Entry> list, std::size_t size, Range (&out)[kMost],
             std::size_t& length, Convert convert) {
  if (list.empty() || list.size() > kMost || list.data() == nullptr) return -FI_EINVAL;
  std::size_t sum = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].count > (kMaxAtomicBytes - sum) / size) return -FI_EMSGSIZE;
    out[i] = convert(list[i], list[i].count * size);
    sum += list[i].count * size;
  }
  length = sum;
  return sum == 0 ? -FI_EINVAL : 0;
}

// The buffers of one side in bytes. SGEs that `list` does not have are not even zeroed: zeroing
// all four lists of a call was worth some 0.05 us.
struct LocalBytes {
  union {
    LocalRange sges[kIovLimit];
  };
  std::span<const LocalRange> list;

  LocalBytes() {}

  // Errors: those of to_bytes(), -FI_EINVAL when it is not `length` bytes.
  int read(Elements elements, std::size_t size, std::size_t length) {
    std::size_t sum = 0;
    const auto convert = [](const fi_ioc& entry, std::size_t bytes) {
      return LocalRange{entry.addr, bytes};
    };
    if (const int wrong = to_bytes(elements, size, sges, sum, convert)) return wrong;
    list = {sges, elements.size()};
    for (const LocalRange& sge : list) {
      if (sge.base == nullptr && sge.length != 0) return -FI_EINVAL;
    }
    return sum == length ? 0 : -FI_EINVAL;
  }
};

struct RemoteBytes {
  union {
    RemoteRange ranges[kRmaIovLimit];
  };
  std::span<const RemoteRange> list;
  std::size_t length = 0;

  RemoteBytes() {}

  int read(RemoteElements elements, std::size_t size) {
    const auto convert = [](const fi_rma_ioc& entry, std::size_t bytes) {
      return RemoteRange{entry.addr, bytes, RegionKey{entry.key}};
    };
    list = {ranges, elements.size()};
    return to_bytes(elements, size, ranges, length, convert);
  }
};

// A call in any of its forms. The lists that its form does not have are empty.
struct AtomicArguments {
  AtomicForm form = AtomicForm::kBase;
  int type = FI_VOID;  // number of an fi_datatype
  int op = FI_NOOP;    // number of an fi_op
  Elements operand{};
  Elements result{};
  Elements compare{};
  RemoteElements remote{};
  Descriptors operand_descriptors = nullptr;
  Descriptors result_descriptors = nullptr;
  Descriptors compare_descriptors = nullptr;
  bool has_data = false;
  std::uint64_t data = 0;
  fi_addr_t peer = FI_ADDR_UNSPEC;
  std::uint64_t flags = 0;
  messaging::Report report{};
  const fi_deferred_work* work = nullptr;  // as in deferral.h
};

ssize_t start_atomic(Handle& ep, AtomicCall& call, std::uint64_t flags,
                     const fi_deferred_work* work, const RefusedAccess* refusal) noexcept {
  return start_remote(ep, call, &messaging::Endpoint::atomic, flags, work, refusal);
}

// With FI_INJECT only the result needs a descriptor.
[[gnu::cold, gnu::noinline]] ssize_t start_by_rules(Handle& ep, AtomicCall& call,
                                                    const AtomicArguments& request) noexcept {
  const bool injected = call.report.silent() || (request.flags & FI_INJECT) != 0;
  return start_by_rules(
      ep, *ep.core(), call, request.flags, request.work, start_atomic,
      {call.length,
       injected,
       {local_use(call.operand, request.operand_descriptors, Access::kWrite, injected),
        local_use(call.compare, request.compare_descriptors, Access::kWrite, injected),
        local_use(call.result, request.result_descriptors, Access::kRead)},
       call.remote});
}

ssize_t start(Handle& ep, const AtomicArguments& request) noexcept {
  if (ep.core() == nullptr) [[unlikely]]
    return -FI_EOPBADSTATE;
  const Result<AtomicAction> action = action_of(request.form, request.type, request.op);
  if (!action) return -action.error().code;
  AtomicCall call;
  call.action = action.value();
  const std::size_t size = size_of(call.action.type);
  RemoteBytes remote;
  LocalBytes operand;
  LocalBytes compare;
  LocalBytes result;
  int wrong = remote.read(request.remote, size);
  if (wrong == 0 && call.action.has_operand()) {
    wrong = operand.read(request.operand, size, remote.length);
  }
  if (wrong == 0 && call.action.compares()) {
    wrong = compare.read(request.compare, size, remote.length);
  }
  if (wrong == 0 && call.action.fetches()) {
    wrong = result.read(request.result, size, remote.length);
  }
  if (wrong != 0) [[unlikely]]
    return wrong;
  call.operand = operand.list;
  call.compare = compare.list;
  call.result = result.list;
  call.remote = remote.list;
  call.length = remote.length;
  call.has_data = request.has_data;
  call.data = request.data;
  call.peer = request.peer;
  call.fence = (request.flags & FI_FENCE) != 0;
  call.report = request.report;
  if (ep.rules() != nullptr) [[unlikely]]
    return start_by_rules(ep, call, request);
  return start_atomic(ep, call, request.flags, request.work, nullptr);
}

// The target of a call that names one remote address: as many elements as `list` has.
fi_rma_ioc target_of(Elements list, std::uint64_t address, std::uint64_t key) {
  fi_rma_ioc target{address, 0, key};
  if (list.data() == nullptr || list.size() > kIovLimit) return target;  // refused
  for (const fi_ioc& entry : list) {
    if (__builtin_add_overflow(target.count, entry.count, &target.count)) {
      target.count = SIZE_MAX;  // refused
      break;
    }
  }
  return target;
}

fi_ioc elements(const void* buffer, std::size_t count) {
  return {const_cast<void*>(buffer), count};
}

// Starts a call without flags of its own.
ssize_t start_default(fid_ep* fid, AtomicArguments& request, fi_addr_t peer, std::uint64_t address,
                      std::uint64_t key, void* context) {
  Handle& ep = Handle::from(fid);
  const bool reads = request.op == FI_ATOMIC_READ;
  const fi_rma_ioc target = target_of(reads ? request.result : request.operand, address, key);
  request.remote = {&target, 1};
  request.peer = peer;
  request.flags = ep.tx_flags;
  request.report = report(ep.tx_selective(), request.flags, context);
  return start(ep, request);
}

ssize_t atomicv(fid_ep* fid, const fi_ioc* list, void** descriptors, std::size_t count,
                fi_addr_t peer, std::uint64_t address, std::uint64_t key, fi_datatype type,
                fi_op op, void* context) {
  AtomicArguments request{AtomicForm::kBase, number_of(type), number_of(op), {list, count}};
  request.operand_descriptors = descriptors;
  return start_default(fid, request, peer, address, key, context);
}

ssize_t atomic(fid_ep* fid, const void* buffer, std::size_t count, void* descriptor, fi_addr_t peer,
               std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op,
               void* context) {
  const fi_ioc operand = elements(buffer, count);
  return atomicv(fid, &operand, &descriptor, 1, peer, address, key, type, op, context);
}

ssize_t atomicmsg(fid_ep* fid, const fi_msg_atomic* msg, std::uint64_t flags) {
  if (msg == nullptr) return -FI_EINVAL;
  return change_memory(Handle::from(fid), *msg, nullptr, nullptr, flags, nullptr);
}

ssize_t inject_atomic(fid_ep* fid, const void* buffer, std::size_t count, fi_addr_t peer,
                      std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op) {
  const fi_ioc operand = elements(buffer, count);
  const fi_rma_ioc target{address, count, key};
  AtomicArguments request{AtomicForm::kBase, number_of(type), number_of(op), {&operand, 1}};
  request.remote = {&target, 1};
  request.peer = peer;
  request.report = messaging::Report::silence();
  return start(Handle::from(fid), request);
}

ssize_t fetch_atomicv(fid_ep* fid, const fi_ioc* list, void** descriptors, std::size_t count,
                      fi_ioc* results, void** result_descriptors, std::size_t result_count,
                      fi_addr_t peer, std::uint64_t address, std::uint64_t key, fi_datatype type,
                      fi_op op, void* context) {
  AtomicArguments request{AtomicForm::kFetch, number_of(type), number_of(op), {list, count}};
  request.operand_descriptors = descriptors;
  request.result = {results, result_count};
  request.result_descriptors = result_descriptors;
  return start_default(fid, request, peer, address, key, context);
}

ssize_t fetch_atomic(fid_ep* fid, const void* buffer, std::size_t count, void* descriptor,
                     void* result, void* result_descriptor, fi_addr_t peer, std::uint64_t address,
                     std::uint64_t key, fi_datatype type, fi_op op, void* context) {
  const fi_ioc operand = elements(buffer, count);
  fi_ioc results = elements(result, count);
  return fetch_atomicv(fid, &operand, &descriptor, 1, &results, &result_descriptor, 1, peer,
                       address, key, type, op, context);
}

ssize_t fetch_atomicmsg(fid_ep* fid, const fi_msg_atomic* msg, fi_ioc* results, void** descriptors,
                        std::size_t result_count, std::uint64_t flags) {
  if (msg == nullptr) return -FI_EINVAL;
  const fi_msg_fetch fetch{results, descriptors, result_count};
  return change_memory(Handle::from(fid), *msg, &fetch, nullptr, flags, nullptr);
}

ssize_t compare_atomicv(fid_ep* fid, const fi_ioc* list, void** descriptors, std::size_t count,
                        const fi_ioc* compare, void** compare_descriptors,
                        std::size_t compare_count, fi_ioc* results, void** result_descriptors,
                        std::size_t result_count, fi_addr_t peer, std::uint64_t address,
                        std::uint64_t key, fi_datatype type, fi_op op, void* context) {
  AtomicArguments request{AtomicForm::kCompare, number_of(type), number_of(op), {list, count}};
  request.result = {results, result_count};
  request.compare = {compare, compare_count};
  request.operand_descriptors = descriptors;
  request.result_descriptors = result_descriptors;
  request.compare_descriptors = compare_descriptors;
  return start_default(fid, request, peer, address, key, context);
}

ssize_t compare_atomic(fid_ep* fid, const void* buffer, std::size_t count, void* descriptor,
                       const void* compare, void* compare_descriptor, void* result,
                       void* result_descriptor, fi_addr_t peer, std::uint64_t address,
                       std::uint64_t key, fi_datatype type, fi_op op, void* context) {
  const fi_ioc operand = elements(buffer, count);
  const fi_ioc compared = elements(compare, count);
  fi_ioc results = elements(result, count);
  return compare_atomicv(fid, &operand, &descriptor, 1, &compared, &compare_descriptor, 1, &results,
                         &result_descriptor, 1, peer, address, key, type, op, context);
}

ssize_t compare_atomicmsg(fid_ep* fid, const fi_msg_atomic* msg, const fi_ioc* compare,
                          void** compare_descriptors, std::size_t compare_count, fi_ioc* results,
                          void** result_descriptors, std::size_t result_count,
                          std::uint64_t flags) {
  if (msg == nullptr) return -FI_EINVAL;
  const fi_msg_fetch fetch{results, result_descriptors, result_count};
  const fi_msg_compare comparands{compare, compare_descriptors, compare_count};
  return change_memory(Handle::from(fid), *msg, &fetch, &comparands, flags, nullptr);
}

OperationTable<fi_ops_atomic> atomic_table({sizeof(fi_ops_atomic), atomic, atomicv, atomicmsg,
                                            inject_atomic, fetch_atomic, fetch_atomicv,
                                            fetch_atomicmsg, compare_atomic, compare_atomicv,
                                            compare_atomicmsg, atomic_valid<AtomicForm::kBase>,
                                            atomic_valid<AtomicForm::kFetch>,
                                            atomic_valid<AtomicForm::kCompare>});

}  // namespace

ssize_t change_memory(Handle& ep, const fi_msg_atomic& msg, const fi_msg_fetch* fetch,
                      const fi_msg_compare* compare, std::uint64_t flags,
                      const fi_deferred_work* work) {
  if ((flags & ~kCallFlags) != 0) return -FI_EBADFLAGS;
  AtomicArguments request{
      AtomicForm::kBase, number_of(msg.datatype), number_of(msg.op), {msg.msg_iov, msg.iov_count}};
  if (fetch != nullptr) {
    request.form = AtomicForm::kFetch;
    request.result = {fetch->msg_iov, fetch->iov_count};
    request.result_descriptors = fetch->desc;
  }
  if (compare != nullptr) {
    request.form = AtomicForm::kCompare;
    request.compare = {compare->msg_iov, compare->iov_count};
    request.compare_descriptors = compare->desc;
  }
  request.operand_descriptors = msg.desc;
  request.remote = {msg.rma_iov, msg.rma_iov_count};
  request.has_data = (flags & FI_REMOTE_CQ_DATA) != 0;
  request.data = msg.data;
  request.peer = msg.addr;
  request.flags = flags;
  request.report = report(ep.tx_selective(), flags, msg.context);
  request.work = work;
  return start(ep, request);
}

fi_ops_atomic* atomic_operations() { return atomic_table.get(); }

}  // namespace weft::fabric
