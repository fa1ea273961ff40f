// SPDX-License-Identifier: BSD-2-Clause
// What do the remote memory calls do? fi_rma(3)
#include "transfer.h"

namespace weft::fabric {
namespace {

using messaging::AccessCall;

// Checks that both sides name the same number of bytes. Errors: as measure(), and -FI_EINVAL when
// they differ or there are too many remote ranges.
int measure_both(AccessCall& call) {
  if (const int wrong = measure(call.local, call.length)) return wrong;
  if (call.remote.empty() || call.remote.size() > kRmaIovLimit || call.remote.data() == nullptr) {
    return -FI_EINVAL;
  }
  std::size_t sum = 0;
  for (const RemoteRange& range : call.remote) {
    if (__builtin_add_overflow(sum, range.length, &sum)) return -FI_EINVAL;
  }
  return sum == call.length ? 0 : -FI_EINVAL;
}

ssize_t start_access(Handle& ep, AccessCall& call, std::uint64_t flags,
                     const fi_deferred_work* work, const RefusedAccess* refusal) noexcept {
  return start_remote(ep, call, &messaging::Endpoint::access, flags, work, refusal);
}

ssize_t access(Handle& ep, AccessCall& call, Descriptors descriptors, std::uint64_t flags,
               const fi_deferred_work* work = nullptr) noexcept {
  if (ep.core() == nullptr) [[unlikely]]
    return -FI_EOPBADSTATE;
  if (const int wrong = measure_both(call)) [[unlikely]]
    return wrong;
  const bool copies = call.report.silent() || (flags & FI_INJECT) != 0;
  call.must_copy = copies;
  if (copies && call.length > kInjectSize) [[unlikely]]
    return -FI_EMSGSIZE;
  call.fence = (flags & FI_FENCE) != 0;
  if (ep.rules() != nullptr) [[unlikely]] {
    const bool injected = copies && call.write;
    const Access need = call.write ? Access::kWrite : Access::kRead;
    return start_by_rules(
        ep, *ep.core(), call, flags, work, start_access,
        {call.length, injected, {local_use(call.local, descriptors, need, injected)}, call.remote});
  }
  return start_access(ep, call, flags, work, nullptr);
}

// The calls without flags that name one remote range.
struct OneRange {
  RemoteRange remote;
  AccessCall call;

  OneRange(bool write, std::span<const LocalRange> local, fi_addr_t peer, std::uint64_t address,
           std::uint64_t key, RemoteData data = {}) {
    remote = {address, total(local), RegionKey{key}};
    call.peer = peer;
    call.write = write;
    call.has_data = data.given;
    call.data = data.value;
    call.local = local;
    call.remote = {&remote, 1};
  }
  // The null list of a caller is refused by measure().
  static std::size_t total(std::span<const LocalRange> local) {
    std::size_t length = 0;
    return measure(local, length) == 0 ? length : 0;
  }
};

// Inlined: so many arguments would go over the stack.
[[gnu::always_inline]] inline ssize_t one_range(fid_ep* fid, bool write,
                                                std::span<const LocalRange> local,
                                                Descriptors descriptors, fi_addr_t peer,
                                                std::uint64_t address, std::uint64_t key,
                                                void* context, RemoteData data = {}) {
  Handle& ep = Handle::from(fid);
  const std::uint64_t flags = ep.tx_flags;
  OneRange one(write, local, peer, address, key, data);
  one.call.report = report(ep.tx_selective(), flags, context);
  return access(ep, one.call, descriptors, flags);
}

// The calls that reads and writes have in common; `Bytes` are void and const void.
template <bool kWrite, class Bytes>
struct AccessCalls {
  static ssize_t one(fid_ep* fid, Bytes* buffer, std::size_t length, void* descriptor,
                     fi_addr_t peer, std::uint64_t address, std::uint64_t key, void* context) {
    const LocalRange local = sge(buffer, length);
    return one_range(fid, kWrite, {&local, 1}, &descriptor, peer, address, key, context);
  }

  static ssize_t vector(fid_ep* fid, const iovec* list, void** descriptors, std::size_t count,
                        fi_addr_t peer, std::uint64_t address, std::uint64_t key, void* context) {
    return one_range(fid, kWrite, sges(list, count), descriptors, peer, address, key, context);
  }

  static ssize_t message(fid_ep* fid, const fi_msg_rma* msg, std::uint64_t flags) {
    if (msg == nullptr) return -FI_EINVAL;
    return access_memory(Handle::from(fid), kWrite, *msg, flags, nullptr);
  }
};
using Reads = AccessCalls<false, void>;
using Writes = AccessCalls<true, const void>;

ssize_t writedata(fid_ep* fid, const void* buffer, std::size_t length, void* descriptor,
                  std::uint64_t data, fi_addr_t peer, std::uint64_t address, std::uint64_t key,
                  void* context) {
  const LocalRange local = sge(buffer, length);
  return one_range(fid, true, {&local, 1}, &descriptor, peer, address, key, context, {true, data});
}

ssize_t inject(fid_ep* fid, const void* buffer, std::size_t length, fi_addr_t peer,
               std::uint64_t address, std::uint64_t key, RemoteData data) {
  const LocalRange local = sge(buffer, length);
  OneRange one(true, {&local, 1}, peer, address, key, data);
  one.call.report = messaging::Report::silence();
  return access(Handle::from(fid), one.call, nullptr, 0);
}

ssize_t inject_write(fid_ep* fid, const void* buffer, std::size_t length, fi_addr_t peer,
                     std::uint64_t address, std::uint64_t key) {
  return inject(fid, buffer, length, peer, address, key, {});
}

ssize_t inject_writedata(fid_ep* fid, const void* buffer, std::size_t length, std::uint64_t data,
                         fi_addr_t peer, std::uint64_t address, std::uint64_t key) {
  return inject(fid, buffer, length, peer, address, key, {true, data});
}

OperationTable<fi_ops_rma> rma_table({sizeof(fi_ops_rma), Reads::one, Reads::vector, Reads::message,
                                      Writes::one, Writes::vector, Writes::message, inject_write,
                                      writedata, inject_writedata});

}  // namespace

ssize_t access_memory(Handle& ep, bool write, const fi_msg_rma& msg, std::uint64_t flags,
                      const fi_deferred_work* work) {
  if ((flags & ~kCallFlags) != 0) return -FI_EBADFLAGS;
  AccessCall call;
  call.peer = msg.addr;
  call.write = write;
  call.has_data = write && (flags & FI_REMOTE_CQ_DATA) != 0;
  call.data = msg.data;
  call.local = sges(msg.msg_iov, msg.iov_count);
  call.remote = ranges(msg.rma_iov, msg.rma_iov_count);
  call.report = report(ep.tx_selective(), flags, msg.context);
  return access(ep, call, msg.desc, flags, work);
}

fi_ops_rma* rma_operations() { return rma_table.get(); }

}  // namespace weft::fabric
