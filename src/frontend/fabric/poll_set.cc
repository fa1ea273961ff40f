// SPDX-License-Identifier: BSD-2-Clause
// What is a poll set? fi_poll(3)
#include <algorithm>
#include <mutex>
#include <vector>

#include "boundary.h"
#include "counter.h"
#include "cq.h"
#include "domain.h"
#include "fid_object.h"

namespace weft::fabric {
namespace {

// One object of a set: a completion queue or a counter.
struct Polled {
  fid* object = nullptr;
  Use use;

  static bool fits(fid* object, Domain& domain) {
    if (object == nullptr) return false;
    if (object->fclass == FI_CLASS_CQ) return &queue(object).domain() == &domain;
    return object->fclass == FI_CLASS_CNTR && &counter(object).domain() == &domain;
  }
  static Polled of(fid* object) {
    if (object->fclass == FI_CLASS_CQ) return {object, Use(queue(object))};
    return {object, Use(counter(object))};
  }
  static Cq& queue(fid* object) { return Cq::from(object); }
  static Cntr& counter(fid* object) { return Cntr::from(object); }

  void progress() const {
    const bool is_queue = object->fclass == FI_CLASS_CQ;
    (is_queue ? queue(object).wait_point() : counter(object).wait_point()).engines().progress();
  }
  // True when it has to be told of.
  bool take_news() const {
    if (object->fclass == FI_CLASS_CQ) return !queue(object).queue().empty();
    return counter(object).take_poll_news();
  }
};

// The object behind a fid_poll. Any thread.
class PollSet : public ChildObject<PollSet, fid_poll, Domain> {
 public:
  explicit PollSet(Domain& domain);

  int add(struct fid* object);
  int remove(struct fid* object);
  int poll(void** contexts, std::size_t count);
  // While something is polled.
  bool in_use() const {
    const std::lock_guard guard(mutex_);
    return !polled_.empty();
  }

 private:
  std::vector<Polled>::iterator find(struct fid* object) {
    return std::find_if(polled_.begin(), polled_.end(),
                        [&](const Polled& one) { return one.object == object; });
  }

  mutable std::mutex mutex_;
  std::vector<Polled> polled_;
};

int add(fid_poll* set, fid* object, std::uint64_t flags) {
  if (flags != 0) return -FI_EBADFLAGS;
  return at_c_border([&] { return PollSet::from(set).add(object); });
}

int remove(fid_poll* set, fid* object, std::uint64_t flags) {
  if (flags != 0) return -FI_EBADFLAGS;
  return at_c_border([&] { return PollSet::from(set).remove(object); });
}

int poll(fid_poll* set, void** contexts, int count) {
  if (count < 0 || (contexts == nullptr && count != 0)) return -FI_EINVAL;
  return at_c_border(
      [&] { return PollSet::from(set).poll(contexts, static_cast<std::size_t>(count)); });
}

constexpr FidCalls kPollSetCalls{.close = close_object<PollSet>};

OperationTable<fi_ops_poll> poll_table({sizeof(fi_ops_poll), poll, add, remove});

PollSet::PollSet(Domain& domain)
    : ChildObject(FI_CLASS_POLL, domain, nullptr, fid_operations<kPollSetCalls>()) {
  ops = poll_table.get();
}

int PollSet::add(struct fid* object) {
  if (!Polled::fits(object, parent())) return -FI_EINVAL;
  const std::lock_guard guard(mutex_);
  if (find(object) != polled_.end()) return -FI_EALREADY;
  polled_.push_back(Polled::of(object));
  return 0;
}

int PollSet::remove(struct fid* object) {
  const std::lock_guard guard(mutex_);
  const auto found = find(object);
  if (found == polled_.end()) return -FI_EINVAL;
  polled_.erase(found);
  return 0;
}

int PollSet::poll(void** contexts, std::size_t count) {
  const std::lock_guard guard(mutex_);
  std::size_t reported = 0;
  for (const Polled& one : polled_) one.progress();
  for (const Polled& one : polled_) {
    if (reported == count) break;
    if (one.take_news()) contexts[reported++] = one.object->context;
  }
  return static_cast<int>(reported);
}

}  // namespace

int open_poll_set(Domain& domain, fi_poll_attr* attributes, fid_poll** set) {
  if (attributes != nullptr && attributes->flags != 0) return -FI_EBADFLAGS;
  *set = new PollSet(domain);
  return 0;
}

}  // namespace weft::fabric
