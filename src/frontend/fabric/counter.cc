// SPDX-License-Identifier: BSD-2-Clause
// What is a counter to a libfabric program? fi_cntr(3)
#include "counter.h"

#include "boundary.h"
#include "cq.h"
#include "unsupported.h"

namespace weft::fabric {
namespace {

device::Counter& counter_of(fid_cntr* cntr) { return Counter::from(cntr).counter(); }

std::uint64_t read(fid_cntr* cntr) {
  counter_of(cntr).engines().progress();
  return Counter::from(cntr).read();
}

std::uint64_t readerr(fid_cntr* cntr) {
  counter_of(cntr).engines().progress();
  return Counter::from(cntr).read_errors();
}

int add(fid_cntr* cntr, std::uint64_t value) {
  counter_of(cntr).add(value);
  return 0;
}

int adderr(fid_cntr* cntr, std::uint64_t value) {
  counter_of(cntr).add_errors(value);
  return 0;
}

int set(fid_cntr* cntr, std::uint64_t value) {
  counter_of(cntr).set(value);
  return 0;
}

int seterr(fid_cntr* cntr, std::uint64_t value) {
  counter_of(cntr).set_errors(value);
  return 0;
}

// A failure ends the wait, too: the threshold may never be reached then.
int wait(fid_cntr* cntr, std::uint64_t threshold, int timeout) {
  device::Counter& counter = counter_of(cntr);
  return at_c_border([&] {
    const std::uint64_t errors = counter.errors();
    const auto ready = [&] { return counter.value() >= threshold || counter.errors() != errors; };
    if (!counter.engines().wait(std::chrono::milliseconds(timeout), ready)) return -FI_ETIMEDOUT;
    return counter.value() >= threshold ? 0 : -FI_EAVAIL;
  });
}

int close_counter(fid* fid) {
  Counter& counter = Counter::from(reinterpret_cast<fid_cntr*>(fid));
  if (counter.in_use()) return -FI_EBUSY;
  delete &counter;
  return 0;
}

int control(fid* fid, int command, void* argument) {
  if (command != FI_GETWAIT) return -FI_ENOSYS;
  return get_wait_object(counter_of(reinterpret_cast<fid_cntr*>(fid)).engines(), argument);
}

fi_ops* fid_operations() {
  static fi_ops table = [] {
    fi_ops operations = unsupported_operations<fi_ops>();
    operations.close = close_counter;
    operations.control = control;
    return operations;
  }();
  return &table;
}

fi_ops_cntr* counter_operations() {
  static fi_ops_cntr table{sizeof(fi_ops_cntr), read, readerr, add, set, wait, adderr, seterr};
  return &table;
}

}  // namespace

Counter::Counter(Domain& domain, device::WaitKind wait, void* context)
    : fid_cntr{}, use_(domain), counter_(domain.thread_safe(), wait) {
  fid.fclass = FI_CLASS_CNTR;
  fid.context = context;
  fid.ops = fid_operations();
  ops = counter_operations();
}

int open_counter(Domain& domain, fi_cntr_attr* attributes, fid_cntr** cntr, void* context) {
  if (attributes->flags != 0) return -FI_EBADFLAGS;
  if (attributes->events != FI_CNTR_EVENTS_COMP) return -FI_ENOSYS;
  device::WaitKind wait{};
  if (const int wrong = wait_kind(attributes->wait_obj, wait)) return wrong;
  auto created = std::make_unique<Counter>(domain, wait, context);
  if (const Status ok = created->counter().engines().open(); !ok) return fabric_status(ok.error());
  *cntr = created.release();
  return 0;
}

}  // namespace weft::fabric
