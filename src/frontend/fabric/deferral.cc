// SPDX-License-Identifier: BSD-2-Clause
// How is an operation put off until a counter has come to a value? fi_trigger(3)
#include "deferral.h"

#include <type_traits>
#include <vector>

#include "base/slices.h"
#include "c_enum.h"
#include "counter.h"
#include "domain.h"
#include "os/user_memory.h"
#include "transfer.h"

namespace weft::fabric {
namespace {

using messaging::AccessCall;
using messaging::AtomicCall;
using messaging::ReceiveCall;
using messaging::SendCall;

// A list of SGEs that outlives the program's.
class KeptSges {
 public:
  // Points `list` to a copy of it; with `copy_bytes` to a copy of what its SGEs hold.
  void keep(std::span<const LocalRange>& list, bool copy_bytes) {
    std::copy(list.begin(), list.end(), sges_);
    list = {sges_, list.size()};
    if (!copy_bytes || list.empty()) return;
    bytes_.resize(total_length(list));
    if (!os::gather(bytes_.data(), list, bytes_.size())) return;  // it fails when it is started
    sges_[0] = {bytes_.data(), bytes_.size()};
    list = {sges_, 1};
  }

 private:
  LocalRange sges_[kIovLimit];
  std::vector<std::byte> bytes_;
};

class KeptRanges {
 public:
  void keep(std::span<const RemoteRange>& list) {
    std::copy(list.begin(), list.end(), ranges_);
    list = {ranges_, list.size()};
  }

 private:
  RemoteRange ranges_[kRmaIovLimit];
};

// A call with lists of its own; `copies` says that its buffers may change.
struct KeptSend {
  SendCall call;
  KeptSges sges;

  KeptSend(const SendCall& original, bool copies) : call(original) { sges.keep(call.sges, copies); }
};

struct KeptReceive {
  ReceiveCall call;
  KeptSges sges;

  KeptReceive(const ReceiveCall& original, bool) : call(original) { sges.keep(call.sges, false); }
};

struct KeptAccess {
  AccessCall call;
  KeptSges local;
  KeptRanges remote;

  KeptAccess(const AccessCall& original, bool copies) : call(original) {
    local.keep(call.local, copies && call.write);
    remote.keep(call.remote);
  }
};

struct KeptAtomic {
  AtomicCall call;
  KeptSges operand;
  KeptSges compare;
  KeptSges result;
  KeptRanges remote;

  KeptAtomic(const AtomicCall& original, bool copies) : call(original) {
    operand.keep(call.operand, copies);
    compare.keep(call.compare, copies);
    result.keep(call.result, false);
    remote.keep(call.remote);
  }
};

// A call that waits, for `Target`: an endpoint or a queue of receives.
template <class Kept, class Target, class Start>
class Transfer final : public device::Deferred {
 public:
  template <class Call>
  Transfer(Target& target, const Call& call, bool copies, const RefusedAccess* refusal, Start start)
      : target_(target),
        kept_(call, copies),
        completion_(use_of(call.report.counter())),
        refusal_(refusal != nullptr ? *refusal : RefusedAccess{}),
        start_(start) {}

  // What it answers besides "again" is the end of it.
  bool start() override {
    const int status =
        refusal_.reason == 0 ? start_(target_, kept_.call) : target_.refuse(kept_.call, refusal_);
    if (status == EAGAIN) return false;
    if (status != 0) fail(status);
    return true;
  }
  void fail(int error) override { target_.abandon(kept_.call, error); }

 private:
  Target& target_;
  Kept kept_;
  const UseOf<device::Counter> completion_;
  const RefusedAccess refusal_;
  const Start start_;
};

int read_counter(fid_cntr* cntr, const Domain& domain, device::Counter*& out) {
  Cntr* const counter = Cntr::of(cntr, domain);
  if (counter == nullptr) return -FI_EINVAL;
  out = &counter->counter();
  return 0;
}

// What a call with FI_TRIGGER waits for.
int read_context(const Domain& domain, void* context, device::Waiting& waiting) {
  const auto* triggered = static_cast<const fi_triggered_context*>(context);
  if (triggered == nullptr) return -FI_EINVAL;
  const int type = number_of(triggered->event_type);
  if (type != FI_TRIGGER_THRESHOLD) return type == FI_TRIGGER_XPU ? -FI_ENOSYS : -FI_EINVAL;
  waiting.threshold = triggered->trigger.threshold.threshold;
  waiting.name = context;
  return read_counter(triggered->trigger.threshold.cntr, domain, waiting.counter);
}

// What deferred work waits for. Its end is counted by a counter of its own, and has an entry in the
// completion queue only where the operation asks for one.
int read_work(Domain& domain, const fi_deferred_work& work, std::uint64_t flags,
              messaging::Report& report, device::Waiting& waiting) {
  waiting.threshold = work.threshold;
  waiting.work = true;
  waiting.name = &work;
  device::Counter* completion = &domain.triggers().unused_counter();
  int wrong = read_counter(work.triggering_cntr, domain, waiting.counter);
  if (wrong == 0 && work.completion_cntr != nullptr) {
    wrong = read_counter(work.completion_cntr, domain, completion);
  }
  report = {report.context, (flags & FI_COMPLETION) != 0, completion};
  return wrong;
}

template <class Kept, class Target, class Call, class Start>
ssize_t defer_to(Handle& handle, Target* target, Call& call, std::uint64_t flags,
                 const fi_deferred_work* work, const RefusedAccess* refusal, Start start) noexcept {
  return at_c_border([&]() -> ssize_t {
    if ((handle.caps() & FI_TRIGGER) == 0) return -FI_EBADFLAGS;
    Domain& domain = handle.domain();
    device::Waiting waiting;
    waiting.owner = target;
    const int wrong = work != nullptr ? read_work(domain, *work, flags, call.report, waiting)
                                      : read_context(domain, call.report.context, waiting);
    if (wrong != 0) return wrong;
    const bool copies = work == nullptr && (flags & FI_INJECT) != 0;
    return domain.triggers().submit(waiting, std::make_unique<Transfer<Kept, Target, Start>>(
                                                 *target, call, copies, refusal, start));
  });
}

}  // namespace

ssize_t defer(Handle& handle, SendCall& call, std::uint64_t flags, const fi_deferred_work* work,
              const RefusedAccess* refusal) noexcept {
  using Start = int (messaging::Endpoint::*)(SendCall&);
  Start how = &messaging::Endpoint::send;
  if (handle.offer()->type == FI_EP_DGRAM) {
    how = (flags & FI_MULTICAST) != 0 ? &messaging::Endpoint::send_to_group
                                      : &messaging::Endpoint::send_datagram;
  }
  const auto start = [how](messaging::Endpoint& core, SendCall& kept) { return (core.*how)(kept); };
  return defer_to<KeptSend>(handle, handle.core(), call, flags, work, refusal, start);
}

ssize_t defer(Handle& handle, ReceiveCall& call, std::uint64_t flags, const fi_deferred_work* work,
              const RefusedAccess* refusal) noexcept {
  // A look at what is there, or a claim, is no transfer.
  if (call.mode != ReceiveCall::Mode::kPost) return -FI_EBADFLAGS;
  const auto start = [](messaging::ReceiveQueue& queue, ReceiveCall& kept) {
    return queue.receive(kept);
  };
  return defer_to<KeptReceive>(handle, handle.receives(), call, flags, work, refusal, start);
}

ssize_t defer(Handle& handle, AccessCall& call, std::uint64_t flags, const fi_deferred_work* work,
              const RefusedAccess* refusal) noexcept {
  const auto start = [](messaging::Endpoint& core, AccessCall& kept) { return core.access(kept); };
  return defer_to<KeptAccess>(handle, handle.core(), call, flags, work, refusal, start);
}

ssize_t defer(Handle& handle, AtomicCall& call, std::uint64_t flags, const fi_deferred_work* work,
              const RefusedAccess* refusal) noexcept {
  const auto start = [](messaging::Endpoint& core, AtomicCall& kept) { return core.atomic(kept); };
  return defer_to<KeptAtomic>(handle, handle.core(), call, flags, work, refusal, start);
}

}  // namespace weft::fabric
