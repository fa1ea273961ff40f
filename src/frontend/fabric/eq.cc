// SPDX-License-Identifier: BSD-2-Clause
// What is an event queue? fi_eq(3)
#include "eq.h"

#include <algorithm>
#include <cstring>

#include "boundary.h"
#include "completion_error.h"
#include "fid_object.h"
#include "internal.h"
#include "os/cancellation.h"

namespace weft::fabric {
namespace {

ssize_t read(fid_eq* eq, std::uint32_t* event, void* buffer, std::size_t length,
             std::uint64_t flags) {
  if ((flags & ~FI_PEEK) != 0) return -FI_EBADFLAGS;
  if (event == nullptr || (buffer == nullptr && length != 0)) return -FI_EINVAL;
  return at_c_border(
      [&] { return EventQueue::from(eq).take(event, buffer, length, (flags & FI_PEEK) != 0); });
}

ssize_t readerr(fid_eq* eq, fi_eq_err_entry* entry, std::uint64_t flags) {
  if ((flags & ~FI_PEEK) != 0) return -FI_EBADFLAGS;
  if (entry == nullptr) return -FI_EINVAL;
  return at_c_border(
      [&] { return EventQueue::from(eq).take_error(*entry, (flags & FI_PEEK) != 0); });
}

ssize_t write(fid_eq* fid, std::uint32_t event, const void* buffer, std::size_t length,
              std::uint64_t flags) {
  EventQueue& eq = EventQueue::from(fid);
  if (!eq.writable()) return -FI_EINVAL;
  if (flags != 0) return -FI_EBADFLAGS;
  if (buffer == nullptr && length != 0) return -FI_EINVAL;
  return at_c_border([&]() -> ssize_t {
    eq.push(event, buffer, length);
    return static_cast<ssize_t>(length);
  });
}

ssize_t sread(fid_eq* fid, std::uint32_t* event, void* buffer, std::size_t length, int timeout,
              std::uint64_t flags) {
  EventQueue& eq = EventQueue::from(fid);
  const fi_wait_obj object = eq.wait_point().object();
  if (object == FI_WAIT_NONE || object == FI_WAIT_SET) return -FI_EINVAL;
  if ((flags & ~FI_PEEK) != 0) return -FI_EBADFLAGS;
  if (event == nullptr || (buffer == nullptr && length != 0)) return -FI_EINVAL;
  return at_c_border([&] { return eq.wait_and_take(event, buffer, length, flags, timeout); });
}

// Error data of events is the private data of a rejection, and no text.
const char* strerror(fid_eq*, int code, const void*, char* buffer, std::size_t length) {
  return error_text(code, nullptr, buffer, length);
}

constexpr FidCalls kEqCalls{.close = close_object<EventQueue>, .control = control_wait<EventQueue>};

OperationTable<fi_ops_eq> eq_table({sizeof(fi_ops_eq), read, readerr, write, sread, strerror});

}  // namespace

// Calls nest, as several domains may have the queue.
class EventQueue::BackgroundWork final : public device::Engine {
 public:
  BackgroundWork(EventQueue& eq, os::Event bell) : eq_(eq), bell_(std::move(bell)) {}

  void progress() override { eq_.do_work_for(kLongest); }
  // Work that rang before is found here.
  bool fall_asleep() override {
    ++sleepers_;
    bell_.clear();
    return !eq_.has_work();
  }
  void wake_up() override {
    if (--sleepers_ == 0) bell_.clear();
  }
  int wake_fd() const override { return bell_.fd(); }
  unsigned polls() override { return eq_.reads_.load(std::memory_order_relaxed); }
  void ring() {
    if (sleepers_ != 0) bell_.set();
  }

 private:
  // Other engines wait meanwhile.
  static constexpr auto kLongest = std::chrono::milliseconds(1);

  EventQueue& eq_;
  os::Event bell_;
  std::atomic<int> sleepers_{0};
};

EventQueue::EventQueue(Fabric& fabric, std::uint64_t flags, const WaitWish& wish, void* context)
    : ChildObject(FI_CLASS_EQ, fabric, context, fid_operations<kEqCalls>()),
      writable_((flags & FI_WRITE) != 0),
      fills_error_data_(fabric.requested_api() >= FI_VERSION(1, 5)),
      waiting_(true, wish.kind()),
      wait_point_(waiting_, wish, [this] { return ready(); }) {
  ops = eq_table.get();
}

EventQueue::~EventQueue() = default;

Result<device::Engine*> EventQueue::background_work() {
  auto bell = os::Event::create();
  if (!bell) return bell.error();
  auto made = std::make_unique<BackgroundWork>(*this, std::move(bell).value());
  const std::lock_guard guard(mutex_);
  if (background_work_ == nullptr) background_work_ = std::move(made);
  return background_work_.get();
}

void EventQueue::add(QueuedEvent entry) {
  std::list<QueuedEvent> added;
  added.push_back(std::move(entry));
  {
    const std::lock_guard guard(mutex_);
    if (added.front().work != nullptr) {
      undone_.push_back(&added.front());
      if (background_work_ != nullptr) background_work_->ring();
    }
    entries_.splice(entries_.end(), added);
  }
  waiting_.notify();
}

void EventQueue::push(std::uint32_t event, const void* content, std::size_t length) {
  QueuedEvent entry;
  entry.event = event;
  entry.least = length;
  const auto* bytes = static_cast<const std::byte*>(content);
  entry.content.assign(bytes, bytes + length);
  add(std::move(entry));
}

void EventQueue::push_error(const fi_eq_err_entry& error, std::span<const std::byte> data) {
  QueuedEvent entry;
  entry.failed = true;
  entry.error = error;
  entry.object = error.fid;
  if (data.empty() && error.err_data != nullptr) {
    data = {static_cast<const std::byte*>(error.err_data), error.err_data_size};
  }
  entry.content.assign(data.begin(), data.end());
  add(std::move(entry));
}

void EventQueue::push_work(std::uint32_t event, struct fid& object, std::function<int()> work) {
  fi_eq_entry content{};
  content.fid = &object;
  content.context = object.context;
  const auto bytes = std::as_bytes(std::span(&content, 1));
  QueuedEvent entry;
  entry.event = event;
  entry.object = &object;
  entry.least = bytes.size();
  entry.content.assign(bytes.begin(), bytes.end());
  entry.work = std::move(work);
  add(std::move(entry));
}

// The first work, without the lock: others add events, and read those before it, meanwhile.
void EventQueue::do_work(std::unique_lock<std::mutex>& lock) {
  const os::CancellationOff off;
  QueuedEvent& entry = *undone_.front();
  undone_.pop_front();
  worked_on_ = &entry;
  const std::function<int()> work = std::exchange(entry.work, nullptr);
  lock.unlock();
  const int status = work();
  if (status != 0) {
    fi_eq_entry content;
    std::memcpy(&content, entry.content.data(), sizeof content);
    entry.content.clear();
    entry.failed = true;
    entry.error.fid = content.fid;
    entry.error.context = content.context;
    entry.error.err = -status;
  }
  lock.lock();
  worked_on_ = nullptr;
  work_ended_.notify_all();
  waiting_.notify();
}

bool EventQueue::has_work() const {
  const std::lock_guard guard(mutex_);
  return !undone_.empty();
}

void EventQueue::do_work_for(std::chrono::nanoseconds longest) {
  const Time end = Time::clock::now() + longest;
  std::unique_lock lock(mutex_);
  while (worked_on_ == nullptr && !undone_.empty()) {
    do_work(lock);
    if (Time::clock::now() >= end) return;
  }
}

// Null while another thread does the work that is read next.
EventQueue::QueuedEvent* EventQueue::first(std::unique_lock<std::mutex>& lock) {
  if (entries_.empty() || &entries_.front() == worked_on_) return nullptr;
  if (entries_.front().work != nullptr) do_work(lock);
  return &entries_.front();
}

// fi_cm(3): data for which the reader has no room are cut off.
EventQueue::QueuedEvent EventQueue::of_connection(std::uint32_t event, struct fid& object,
                                                  InfoList info, std::span<const std::byte> data) {
  const fi_eq_cm_entry head{&object, info.get()};
  QueuedEvent entry;
  entry.event = event;
  entry.object = &object;
  entry.info = std::move(info);
  entry.least = sizeof head;
  const auto bytes = std::as_bytes(std::span(&head, 1));
  entry.content.assign(bytes.begin(), bytes.end());
  entry.content.insert(entry.content.end(), data.begin(), data.end());
  return entry;
}

void EventQueue::push_connection(std::uint32_t event, struct fid& object, InfoList info,
                                 std::span<const std::byte> data) {
  add(of_connection(event, object, std::move(info), data));
}

void EventQueue::push_request(struct fid& object, InfoList info, std::span<const std::byte> data) {
  {
    const std::lock_guard guard(mutex_);
    requests_.push_back(of_connection(FI_CONNREQ, object, std::move(info), data));
  }
  waiting_.notify();
}

// When a request is there, every engine is driven once more before it counts.
void EventQueue::bring_up_to_date() {
  reads_.fetch_add(1, std::memory_order_relaxed);
  waiting_.progress();
  std::size_t requests = 0;
  {
    const std::lock_guard guard(mutex_);
    requests = requests_.size();
  }
  if (requests == 0) return;
  waiting_.progress();
  const std::lock_guard guard(mutex_);
  for (; requests > 0 && !requests_.empty(); --requests) {
    entries_.push_back(std::move(requests_.front()));
    requests_.pop_front();
  }
}

bool EventQueue::withdraw_request(const struct fid* handle) {
  const std::lock_guard guard(mutex_);
  const auto is_it = [&](const QueuedEvent& entry) {
    return entry.info != nullptr && entry.info->handle == handle && !entry.shown;
  };
  return std::erase_if(entries_, is_it) + std::erase_if(requests_, is_it) != 0;
}

void EventQueue::forget(const struct fid& object) {
  if (wait_point_.inherited()) return;  // a forked child reads nothing
  const os::CancellationOff off;
  std::unique_lock lock(mutex_);
  work_ended_.wait(lock, [&] { return worked_on_ == nullptr || worked_on_->object != &object; });
  const auto is_of_it = [&](const QueuedEvent& entry) { return entry.object == &object; };
  std::erase_if(undone_, [&](const QueuedEvent* entry) { return is_of_it(*entry); });
  std::erase_if(entries_, is_of_it);
  std::erase_if(requests_, is_of_it);
}

ssize_t EventQueue::take(std::uint32_t* event, void* buffer, std::size_t length, bool peek) {
  bring_up_to_date();
  std::unique_lock lock(mutex_);
  QueuedEvent* const next = first(lock);
  if (next == nullptr) return -FI_EAGAIN;
  if (next->failed) return -FI_EAVAIL;
  if (next->least > length) return -FI_ETOOSMALL;
  *event = next->event;
  const std::size_t size = std::min(next->content.size(), length);
  if (size != 0) std::memcpy(buffer, next->content.data(), size);
  next->shown = true;
  if (peek) return static_cast<ssize_t>(size);
  (void)next->info.release();
  entries_.pop_front();
  return static_cast<ssize_t>(size);
}

// An event may be gone when it is taken: another thread works on it, or has read it.
ssize_t EventQueue::wait_and_take(std::uint32_t* event, void* buffer, std::size_t length,
                                  std::uint64_t flags, int timeout_ms) {
  using std::chrono::milliseconds;
  const Time end = Time::clock::now() + milliseconds(std::max(timeout_ms, 0));
  milliseconds left(timeout_ms);
  for (;;) {
    const bool there = waiting_.wait(left, [this] { return ready(); });
    const ssize_t got = take(event, buffer, length, (flags & FI_PEEK) != 0);
    if (got != -FI_EAGAIN || !there) return got;
    const auto rest = std::chrono::ceil<milliseconds>(end - Time::clock::now());
    if (timeout_ms >= 0) left = std::max(rest, milliseconds(0));
  }
}

// fi_eq(3): the error data go into the reader's buffer. Without a buffer, and always before API
// 1.5, err_data points to the queue's copy until the next read.
void EventQueue::give_error(const QueuedEvent& failed, fi_eq_err_entry& out) {
  fi_eq_err_entry error = failed.error;
  if (fills_error_data_ && out.err_data != nullptr && out.err_data_size != 0) {
    error.err_data = out.err_data;
    error.err_data_size = std::min(out.err_data_size, failed.content.size());
    std::copy_n(failed.content.begin(), error.err_data_size, static_cast<std::byte*>(out.err_data));
  } else {
    lent_ = failed.content;
    error.err_data = lent_.empty() ? nullptr : lent_.data();
    error.err_data_size = lent_.size();
  }
  out = error;
}

ssize_t EventQueue::take_error(fi_eq_err_entry& out, bool peek) {
  bring_up_to_date();
  std::unique_lock lock(mutex_);
  const QueuedEvent* const next = first(lock);
  if (next == nullptr || !next->failed) return -FI_EAGAIN;
  give_error(*next, out);
  if (!peek) entries_.pop_front();
  return sizeof out;
}

bool EventQueue::ready() const {
  const std::lock_guard guard(mutex_);
  return entries_.empty() ? !requests_.empty() : &entries_.front() != worked_on_;
}

int open_eq(Fabric& fabric, fi_eq_attr* attributes, fid_eq** eq, void* context) {
  const fi_eq_attr wanted = attributes != nullptr ? *attributes : fi_eq_attr{};
  if ((wanted.flags & ~(FI_WRITE | FI_AFFINITY)) != 0) return -FI_EBADFLAGS;
  WaitWish wish;
  if (const int wrong = WaitWish::read(wanted.wait_obj, wanted.wait_set, fabric, wish)) {
    return wrong;
  }
  return at_c_border([&] {
    return open_waitable(std::make_unique<EventQueue>(fabric, wanted.flags, wish, context), eq);
  });
}

}  // namespace weft::fabric
