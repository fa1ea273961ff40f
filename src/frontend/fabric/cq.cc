// SPDX-License-Identifier: BSD-2-Clause
// What is a completion queue to a libfabric program? fi_cq(3)
#include "cq.h"

#include <algorithm>

#include "boundary.h"
#include "c_enum.h"
#include "completion_error.h"
#include "fid_object.h"
#include "log.h"
#include "offer.h"

namespace weft::fabric {
namespace {

using device::Completion;

static_assert(FI_MSG == device::kMessage && FI_RMA == device::kRma && FI_TAGGED == device::kTagged);
static_assert(FI_READ == device::kRead && FI_WRITE == device::kWrite);
static_assert(FI_RECV == device::kReceive && FI_SEND == device::kSend);
static_assert(FI_ATOMIC == device::kAtomic);
static_assert(FI_REMOTE_READ == device::kRemoteRead && FI_REMOTE_WRITE == device::kRemoteWrite);
static_assert(FI_MULTI_RECV == device::kMultiReceive && FI_MULTICAST == device::kMulticast);
static_assert(FI_REMOTE_CQ_DATA == device::kHasRemoteData);
static_assert(FI_ADDR_NOTAVAIL == device::kUnknownSource);

constexpr std::size_t kLargestCompletionQueue = std::size_t{1} << 24;
constexpr unsigned kMostReadsAlone = 16;

void store(const Completion& from, fi_cq_entry& to) { to.op_context = from.context; }

void store(const Completion& from, fi_cq_msg_entry& to) {
  to = {from.context, from.flags, from.length};
}

void store(const Completion& from, fi_cq_data_entry& to) {
  to = {from.context, from.flags, from.length, from.buffer, from.data};
}

void store(const Completion& from, fi_cq_tagged_entry& to) {
  to = {from.context, from.flags, from.length, from.buffer, from.data, from.tag};
}

template <class Entry>
std::size_t pop(device::CompletionQueue& queue, void* buffer, std::size_t count, fi_addr_t* sources,
                device::CompletionQueue::Front& front) {
  auto* out = static_cast<Entry*>(buffer);
  return queue.pop(count, front, [&](const Completion& completion) {
    store(completion, *out++);
    if (sources != nullptr) *sources++ = completion.source;
  });
}

ssize_t take(Cq& cq, void* buffer, std::size_t count, fi_addr_t* sources) {
  device::CompletionQueue::Front front = device::CompletionQueue::Front::kNothing;
  std::size_t taken = 0;
  switch (cq.format()) {
    case FI_CQ_FORMAT_UNSPEC:
    case FI_CQ_FORMAT_CONTEXT:
      taken = pop<fi_cq_entry>(cq.queue(), buffer, count, sources, front);
      break;
    case FI_CQ_FORMAT_MSG:
      taken = pop<fi_cq_msg_entry>(cq.queue(), buffer, count, sources, front);
      break;
    case FI_CQ_FORMAT_DATA:
      taken = pop<fi_cq_data_entry>(cq.queue(), buffer, count, sources, front);
      break;
    case FI_CQ_FORMAT_TAGGED:
      taken = pop<fi_cq_tagged_entry>(cq.queue(), buffer, count, sources, front);
      break;
  }
  if (taken != 0) return static_cast<ssize_t>(taken);
  if (front == device::CompletionQueue::Front::kError) return -FI_EAVAIL;
  return front == device::CompletionQueue::Front::kCompletion ? 0 : -FI_EAGAIN;
}

ssize_t readfrom(fid_cq* fid, void* buffer, std::size_t count, fi_addr_t* sources) {
  Cq& cq = Cq::from(fid);
  if (buffer == nullptr && count != 0) return -FI_EINVAL;
  return at_c_border([&]() -> ssize_t {
    device::CompletionQueue& queue = cq.queue();
    {
      const ExclusiveEntry entry(queue.biased_lock());
      if (queue.empty() || cq.progress_is_due()) queue.engines().drive();
      if (!queue.empty()) return take(cq, buffer, count, sources);
    }
    queue.engines().count_poll();
    return -FI_EAGAIN;
  });
}

ssize_t read(fid_cq* fid, void* buffer, std::size_t count) {
  return readfrom(fid, buffer, count, nullptr);
}

ssize_t sreadfrom(fid_cq* fid, void* buffer, std::size_t count, fi_addr_t* sources,
                  const void* condition, int timeout) {
  Cq& cq = Cq::from(fid);
  if (buffer == nullptr && count != 0) return -FI_EINVAL;
  if (cq.wait_point().object() == FI_WAIT_NONE) return -FI_EINVAL;
  return at_c_border([&]() -> ssize_t {
    const std::size_t least = cq.threshold(condition);
    const auto ready = [&] { return cq.queue().size() >= least || cq.queue().has_error(); };
    cq.queue().engines().wait(std::chrono::milliseconds(timeout), ready);
    const ExclusiveEntry entry(cq.queue().biased_lock());
    return take(cq, buffer, count, sources);
  });
}

ssize_t sread(fid_cq* fid, void* buffer, std::size_t count, const void* condition, int timeout) {
  return sreadfrom(fid, buffer, count, nullptr, condition, timeout);
}

ssize_t readerr(fid_cq* fid, fi_cq_err_entry* entry, std::uint64_t flags) {
  Cq& cq = Cq::from(fid);
  if (entry == nullptr) return -FI_EINVAL;
  if (flags != 0) return -FI_EBADFLAGS;
  return at_c_border([&]() -> ssize_t {
    Completion completion;
    if (!cq.queue().pop_error(completion)) return -FI_EAGAIN;
    fill_error(completion, cq.domain().api_version(), cq.lent_error_data(), *entry);
    return 1;
  });
}

const char* strerror(fid_cq*, int code, const void* data, char* buffer, std::size_t length) {
  return error_text(code, data, buffer, length);
}

int signal(fid_cq* fid) {
  Cq& cq = Cq::from(fid);
  if (cq.wait_point().object() == FI_WAIT_NONE) return -FI_EINVAL;
  cq.queue().engines().signal();
  return 0;
}

constexpr FidCalls kCqCalls{.close = close_object<Cq>, .control = control_wait<Cq>};

OperationTable<fi_ops_cq> cq_table({sizeof(fi_ops_cq), read, readfrom, readerr, sread, sreadfrom,
                                    signal, strerror});

// What a program may write into the attributes, whatever it is.
int check(const fi_cq_attr& attributes) {
  if ((attributes.flags & ~FI_AFFINITY) != 0) return -FI_EBADFLAGS;
  const int format = number_of(attributes.format);
  if (format < FI_CQ_FORMAT_UNSPEC || format > FI_CQ_FORMAT_TAGGED) return -FI_EINVAL;
  if (attributes.size > kLargestCompletionQueue) return -FI_EINVAL;
  if (number_of(attributes.wait_obj) == FI_WAIT_NONE) return 0;  // wait_cond is ignored then
  const int condition = number_of(attributes.wait_cond);
  const bool known = condition == FI_CQ_COND_NONE || condition == FI_CQ_COND_THRESHOLD;
  return known ? 0 : -FI_EINVAL;
}

}  // namespace

Cq::Cq(Domain& domain, const fi_cq_attr& attributes, const WaitWish& wish,
       Places::Reservation place, void* context)
    : ChildObject(FI_CLASS_CQ, domain, context, fid_operations<kCqCalls>()),
      place_(std::move(place)),
      format_(attributes.format),
      has_threshold_(number_of(attributes.wait_cond) == FI_CQ_COND_THRESHOLD),
      chooses_size_(attributes.size == 0),
      size_(attributes.size != 0 ? attributes.size : kUsualQueueSize),
      queue_(size_, domain.locking(), wish.kind()),
      wait_point_(
          queue_.engines(), wish, [this] { return !queue_.empty(); }, &domain.engines()),
      listed_(domain.queues(), *this) {
  ops = cq_table.get();
}

void Cq::admit(std::size_t transmit_size) {
  const std::lock_guard guard(control_);
  transmit_sizes_ += transmit_size;
  fit_transmit_contexts();
}

void Cq::dismiss(std::size_t transmit_size) {
  const std::lock_guard guard(control_);
  transmit_sizes_ -= transmit_size;
  fit_transmit_contexts();
}

// Such a queue takes any size but 0.
void Cq::fit_transmit_contexts() {
  if (chooses_size_) static_cast<void>(queue_.resize(std::max(size_, transmit_sizes_)));
}

// One thread's count may get lost to another's: it comes round all the same.
bool Cq::progress_is_due() {
  if (queue_.progress_was_asked_for()) return true;
  const unsigned reads = reads_alone_.load(std::memory_order_relaxed) + 1;
  reads_alone_.store(reads, std::memory_order_relaxed);
  return reads % kMostReadsAlone == 0;
}

// No more than the queue takes: the wait for that would never end.
std::size_t Cq::threshold(const void* condition) const {
  if (!has_threshold_ || condition == nullptr) return 1;
  return std::min(reinterpret_cast<std::uintptr_t>(condition), size_);
}

int open_cq(Domain& domain, fi_cq_attr* attributes, fid_cq** cq, void* context) {
  if (const int wrong = check(*attributes)) return wrong;
  WaitWish wish;
  if (const int wrong =
          WaitWish::read(attributes->wait_obj, attributes->wait_set, domain.fabric(), wish)) {
    return wrong;
  }
  Places::Reservation place = domain.places().queues.take();
  if (!place) return -FI_ENOSPC;
  return open_waitable(std::make_unique<Cq>(domain, *attributes, wish, std::move(place), context),
                       cq);
}

}  // namespace weft::fabric
