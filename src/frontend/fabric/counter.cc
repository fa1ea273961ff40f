// SPDX-License-Identifier: BSD-2-Clause
// What is a counter to a libfabric program? fi_cntr(3)
#include "counter.h"

#include "boundary.h"
#include "c_enum.h"
#include "fid_object.h"

namespace weft::fabric {
namespace {

device::EngineGroup& engines_of(fid_cntr* cntr) { return Cntr::from(cntr).counter().engines(); }

// Of a call that has a count instead of a status; without memory the values stay as they are.
void progress(fid_cntr* cntr) {
  at_c_border([&] {
    engines_of(cntr).progress();
    return 0;
  });
}

std::uint64_t read(fid_cntr* cntr) {
  progress(cntr);
  return Cntr::from(cntr).read();
}

std::uint64_t readerr(fid_cntr* cntr) {
  progress(cntr);
  return Cntr::from(cntr).read_errors();
}

// Changes a counter and starts what has waited for that.
int change(fid_cntr* cntr, void (Cntr::*how)(std::uint64_t), std::uint64_t value) {
  Cntr& counter = Cntr::from(cntr);
  (counter.*how)(value);
  counter.domain().triggers().start_due();
  return 0;
}

int add(fid_cntr* cntr, std::uint64_t value) { return change(cntr, &Cntr::add, value); }

int adderr(fid_cntr* cntr, std::uint64_t value) { return change(cntr, &Cntr::add_errors, value); }

int set(fid_cntr* cntr, std::uint64_t value) { return change(cntr, &Cntr::set, value); }

int seterr(fid_cntr* cntr, std::uint64_t value) { return change(cntr, &Cntr::set_errors, value); }

// The manual forbids to call this with FI_WAIT_NONE, but programs do, libfabric's own among them:
// they get a wait that spins.
int wait(fid_cntr* cntr, std::uint64_t threshold, int timeout) {
  Cntr& counter = Cntr::from(cntr);
  if (counter.wait_point().object() == FI_WAIT_SET) return -FI_EINVAL;
  return at_c_border([&] { return counter.wait(threshold, timeout); });
}

constexpr FidCalls kCntrCalls{.close = close_object<Cntr>, .control = control_wait<Cntr>};

OperationTable<fi_ops_cntr> counter_table({sizeof(fi_ops_cntr), read, readerr, add, set, wait,
                                           adderr, seterr});

}  // namespace

Cntr::Cntr(Domain& domain, const WaitWish& wish, Places::Reservation place, void* context)
    : ChildObject(FI_CLASS_CNTR, domain, context, fid_operations<kCntrCalls>()),
      place_(std::move(place)),
      counter_(domain.locking(), wish.kind()),
      wait_point_(
          counter_.engines(), wish, [this] { return has_news(); }, &domain.engines()) {
  ops = counter_table.get();
}

Cntr* Cntr::of(fid_cntr* cntr, const Domain& domain) {
  if (cntr == nullptr || cntr->fid.fclass != FI_CLASS_CNTR) return nullptr;
  Cntr& counter = from(cntr);
  return &counter.domain() == &domain ? &counter : nullptr;
}

// A failure ends the wait, too: the threshold may never be reached then. Every thread that waits is
// told of it.
int Cntr::wait(std::uint64_t threshold, int timeout_ms) {
  const std::uint64_t told = told_errors_;
  const auto ready = [&] { return counter_.value() >= threshold || counter_.errors() != told; };
  if (!counter_.engines().wait(std::chrono::milliseconds(timeout_ms), ready)) return -FI_ETIMEDOUT;
  if (counter_.value() >= threshold) return 0;
  told_errors_ = counter_.errors();
  return -FI_EAVAIL;
}

void Cntr::add(std::uint64_t count) {
  polled_value_ += count;
  counter_.add(count);
}

void Cntr::add_errors(std::uint64_t count) {
  polled_errors_ += count;
  told_errors_ += count;
  counter_.add_errors(count);
}

void Cntr::set(std::uint64_t value) {
  polled_value_ = value;
  counter_.set(value);
}

void Cntr::set_errors(std::uint64_t value) {
  polled_errors_ = value;
  told_errors_ = value;
  counter_.set_errors(value);
}

bool Cntr::take_poll_news() {
  const std::uint64_t value = counter_.value();
  const std::uint64_t errors = counter_.errors();
  const bool more = polled_value_.exchange(value) != value;
  return (polled_errors_.exchange(errors) != errors) || more;
}

int open_counter(Domain& domain, fi_cntr_attr* attributes, fid_cntr** cntr, void* context) {
  if (attributes->flags != 0) return -FI_EBADFLAGS;
  if (number_of(attributes->events) != FI_CNTR_EVENTS_COMP) return -FI_ENOSYS;
  WaitWish wish;
  if (const int wrong =
          WaitWish::read(attributes->wait_obj, attributes->wait_set, domain.fabric(), wish)) {
    return wrong;
  }
  Places::Reservation place = domain.places().counters.take();
  if (!place) return -FI_ENOSPC;
  return open_waitable(std::make_unique<Cntr>(domain, wish, std::move(place), context), cntr);
}

}  // namespace weft::fabric
