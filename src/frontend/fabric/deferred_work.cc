// SPDX-License-Identifier: BSD-2-Clause
// What does a program queue to a domain, to be done when a counter has come to a value?
// fi_trigger(3), "Deferred work queues"
#include "boundary.h"
#include "c_enum.h"
#include "counter.h"
#include "deferral.h"
#include "domain.h"

namespace weft::fabric {
namespace {

// FI_OP_CNTR_SET or FI_OP_CNTR_ADD.
class CountLater final : public device::Deferred {
 public:
  CountLater(device::Counter& counter, bool adds, std::uint64_t value)
      : counter_(counter), adds_(adds), value_(value) {}

  bool start() override {
    device::Counter& counter = *counter_.get();
    if (adds_) {
      counter.add(value_);
    } else {
      counter.set(value_);
    }
    return true;
  }
  void fail(int) override {}  // deferred work has no completions

 private:
  const UseOf<device::Counter> counter_;
  const bool adds_;
  const std::uint64_t value_;
};

int queue_count(Domain& domain, const fi_deferred_work& work) {
  if (work.op.cntr == nullptr || work.completion_cntr != nullptr) return -FI_EINVAL;
  Cntr* const waits = Cntr::of(work.triggering_cntr, domain);
  Cntr* const counts = Cntr::of(work.op.cntr->cntr, domain);
  if (waits == nullptr || counts == nullptr) return -FI_EINVAL;
  device::Waiting waiting;
  waiting.counter = &waits->counter();
  waiting.threshold = work.threshold;
  waiting.work = true;
  waiting.name = &work;
  return domain.triggers().submit(
      waiting, std::make_unique<CountLater>(counts->counter(), work.op_type == FI_OP_CNTR_ADD,
                                            work.op.cntr->value));
}

// The handle of an operation, which must be able to do such; null with -FI_EINVAL or -FI_ENOSYS.
template <class Operation>
Handle* handle_of(const Operation* operation, const Domain& domain, std::uint64_t cap, int& wrong) {
  wrong = -FI_EINVAL;
  if (operation == nullptr || operation->ep == nullptr) return nullptr;
  Handle& handle = Handle::from(operation->ep);
  if (&handle.domain() != &domain) return nullptr;
  wrong = -FI_ENOSYS;
  return (handle.caps() & cap) != 0 ? &handle : nullptr;
}

// Calls start(handle, operation, flags) for an operation of a kind that needs the capability `cap`.
template <class Operation, class Start>
int queue_transfer(Domain& domain, const Operation* operation, std::uint64_t cap, Start start) {
  int wrong = 0;
  Handle* const handle = handle_of(operation, domain, cap, wrong);
  if (handle == nullptr) return wrong;
  return static_cast<int>(start(*handle, *operation, operation->flags | FI_TRIGGER));
}

int queue_atomic(Domain& domain, const fi_deferred_work& work) {
  switch (number_of(work.op_type)) {
    case FI_OP_ATOMIC:
      return queue_transfer(domain, work.op.atomic, FI_ATOMIC, [&](auto& ep, auto& op, auto flags) {
        return change_memory(ep, op.msg, nullptr, nullptr, flags, &work);
      });
    case FI_OP_FETCH_ATOMIC:
      return queue_transfer(domain, work.op.fetch_atomic, FI_ATOMIC,
                            [&](auto& ep, auto& op, auto flags) {
                              return change_memory(ep, op.msg, &op.fetch, nullptr, flags, &work);
                            });
    default:
      return queue_transfer(
          domain, work.op.compare_atomic, FI_ATOMIC, [&](auto& ep, auto& op, auto flags) {
            return change_memory(ep, op.msg, &op.fetch, &op.compare, flags, &work);
          });
  }
}

int queue(Domain& domain, const fi_deferred_work& work) {
  const bool writes = number_of(work.op_type) == FI_OP_WRITE;
  const auto receive = [&](auto& ep, auto& op, auto flags) {
    return receive_message(ep, op.msg, flags, &work);
  };
  const auto send = [&](auto& ep, auto& op, auto flags) {
    return send_message(ep, op.msg, flags, &work);
  };
  switch (number_of(work.op_type)) {
    case FI_OP_RECV:
      return queue_transfer(domain, work.op.msg, FI_MSG, receive);
    case FI_OP_SEND:
      return queue_transfer(domain, work.op.msg, FI_MSG, send);
    case FI_OP_TRECV:
      return queue_transfer(domain, work.op.tagged, FI_TAGGED, receive);
    case FI_OP_TSEND:
      return queue_transfer(domain, work.op.tagged, FI_TAGGED, send);
    case FI_OP_READ:
    case FI_OP_WRITE:
      return queue_transfer(domain, work.op.rma, FI_RMA, [&](auto& ep, auto& op, auto flags) {
        return access_memory(ep, writes, op.msg, flags, &work);
      });
    case FI_OP_ATOMIC:
    case FI_OP_FETCH_ATOMIC:
    case FI_OP_COMPARE_ATOMIC:
      return queue_atomic(domain, work);
    case FI_OP_CNTR_SET:
    case FI_OP_CNTR_ADD:
      return queue_count(domain, work);
    default:
      return -FI_ENOSYS;
  }
}

// What is cancelled is not reported: deferred work has no completions.
int cancel(Domain& domain, const fi_deferred_work& work) {
  const auto cancelled = domain.triggers().withdraw(
      [&](const device::Waiting& waiting) { return waiting.work && waiting.name == &work; });
  return cancelled.empty() ? -FI_ENOENT : 0;
}

// All work, or all that waits for one counter.
int flush(Domain& domain, fid_cntr* cntr) {
  Cntr* const counter = Cntr::of(cntr, domain);
  if (cntr != nullptr && counter == nullptr) return -FI_EINVAL;
  domain.triggers().withdraw([&](const device::Waiting& waiting) {
    return waiting.work && (counter == nullptr || waiting.counter == &counter->counter());
  });
  return 0;
}

}  // namespace

int control_work(Domain& domain, int command, void* argument) {
  const auto* work = static_cast<const fi_deferred_work*>(argument);
  switch (command) {
    case FI_QUEUE_WORK:
      return work == nullptr ? -FI_EINVAL : at_c_border([&] { return queue(domain, *work); });
    case FI_CANCEL_WORK:
      return work == nullptr ? -FI_EINVAL : at_c_border([&] { return cancel(domain, *work); });
    case FI_FLUSH_WORK:
      return at_c_border([&] { return flush(domain, static_cast<fid_cntr*>(argument)); });
    default:
      return -FI_ENOSYS;
  }
}

}  // namespace weft::fabric
