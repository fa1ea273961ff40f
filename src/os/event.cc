// SPDX-License-Identifier: BSD-2-Clause
// What can a thread sleep on, and how are several such things one descriptor?
#include "os/event.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <ctime>
#include <vector>

#include "direct_calls.h"

namespace weft::os {
namespace {

template <class Duration>
timespec timespec_of(Duration time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  return {seconds.count(), std::chrono::nanoseconds(time - seconds).count()};
}

}  // namespace

Result<Event> Event::create(int flags) {
  Event event;
  event.fd_.reset(::eventfd(0, EFD_CLOEXEC | flags));
  if (!event.fd_.valid()) return last_error("cannot open an event descriptor");
  return event;
}

Result<Event> Event::create() { return create(EFD_NONBLOCK); }

Result<Event> Event::create_for_program() { return create(0); }

void Event::set() {
  const std::uint64_t one = 1;
  // Fails only when it is readable already.
  [[maybe_unused]] const ssize_t written = direct::write(fd_.get(), &one, sizeof one);
}

void Event::clear() {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t taken = direct::read(fd_.get(), &count, sizeof count);
}

Result<EventSet> EventSet::create() {
  EventSet set;
  set.fd_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!set.fd_.valid()) return last_error("cannot open a set of event descriptors");
  set.process_ = ::getpid();
  return set;
}

Status EventSet::add(int fd) {
  if (process_ != ::getpid()) return {};
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (::epoll_ctl(fd_.get(), EPOLL_CTL_ADD, fd, &event) != 0 && errno != EEXIST) {
    return last_error("cannot watch a descriptor");
  }
  return {};
}

void EventSet::remove(int fd) {
  if (process_ == ::getpid()) ::epoll_ctl(fd_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

struct PollList::Entries {
  std::vector<pollfd> list;
};

PollList::PollList() : entries_(std::make_unique<Entries>()) {}

PollList::~PollList() = default;

void PollList::clear() { entries_->list.clear(); }

void PollList::add(int fd) { entries_->list.push_back({fd, POLLIN, 0}); }

bool PollList::wait(std::chrono::nanoseconds timeout) {
  const timespec limit = timespec_of(timeout);
  const int ready = direct::ppoll(entries_->list.data(), entries_->list.size(), &limit);
  if (ready <= 0) {
    for (pollfd& entry : entries_->list) entry.revents = 0;
  }
  return ready > 0;
}

bool PollList::readable(std::size_t index) const {
  return index < entries_->list.size() && entries_->list[index].revents != 0;
}

bool may_wait(int fd) { return (::fcntl(fd, F_GETFL) & O_NONBLOCK) == 0; }

bool wait_readable(int fd, std::chrono::milliseconds timeout) {
  pollfd entry{fd, POLLIN, 0};
  const timespec limit = timespec_of(timeout);
  return direct::ppoll(&entry, 1, timeout.count() < 0 ? nullptr : &limit) > 0;
}

bool sleep_or_cancelled(int fd, std::chrono::milliseconds timeout) {
  pollfd entry{fd, POLLIN, 0};
  const auto limit = timeout.count() < 0         ? -1
                     : timeout.count() > INT_MAX ? INT_MAX
                                                 : timeout.count();
  return ::poll(&entry, 1, static_cast<int>(limit)) >= 0 || errno != EINTR;
}

bool handlers_restart_calls() {
  sigset_t blocked;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP}) sigaddset(&blocked, fault);
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action {};
    if (sigismember(&blocked, number) == 1 || ::sigaction(number, nullptr, &action) != 0) continue;
    const bool handled = action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
    if (handled && (action.sa_flags & SA_RESTART) == 0) return false;
  }
  return true;
}

Fd watch_process(int pid) { return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

bool is_this_process(int pid) { return pid == ::getpid(); }

}  // namespace weft::os
