// SPDX-License-Identifier: BSD-2-Clause
// What does a thread need that lives beside those of the program?
#include "os/thread.h"

#include <dlfcn.h>
#include <signal.h>

#include <memory>
#include <utility>

#include "os/barrier.h"
#include "os/cancellation.h"

namespace weft::os {

namespace {

// A program that locks its memory (mlockall(2)) fills each stack. No function of Weft has a frame
// of more than 20 KiB.
constexpr std::size_t kStackBytes = std::size_t{512} << 10;

// glibc takes the thread-local storage of the program and its libraries from the stack. Only that
// function knows how much it is; without it the thread has a stack of the usual size.
int create_thread(pthread_t& id, void* (*body)(void*), void* argument) {
  using MinimumOf = std::size_t (*)(const pthread_attr_t*);
  const auto minimum_of =
      reinterpret_cast<MinimumOf>(::dlsym(RTLD_DEFAULT, "__pthread_get_minstack"));
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  if (minimum_of != nullptr)
    ::pthread_attr_setstacksize(&attributes, kStackBytes + minimum_of(&attributes));
  const int error = ::pthread_create(&id, &attributes, body, argument);
  ::pthread_attr_destroy(&attributes);
  return error;
}

void* run(void* argument) {
  const std::unique_ptr<std::function<void()>> body(static_cast<std::function<void()>*>(argument));
  (*body)();
  return nullptr;
}

}  // namespace

Thread::Thread(Thread&& other) noexcept
    : id_(other.id_), running_(std::exchange(other.running_, false)) {}

Thread& Thread::operator=(Thread&& other) noexcept {
  std::swap(id_, other.id_);
  std::swap(running_, other.running_);
  return *this;
}

Thread::~Thread() {
  if (!running_) return;
  const CancellationOff off;
  ::pthread_join(id_, nullptr);
}

void Thread::forget() { running_ = false; }

Result<Thread> Thread::start(std::function<void()> body) {
  register_for_barriers_early();
  Thread thread;
  auto argument = std::make_unique<std::function<void()>>(std::move(body));
  // A thread inherits the mask of its creator.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  // The kernel ends a process that causes these itself while they are blocked: copies of user
  // memory may cause them (os/user_memory.h).
  for (const int fault : {SIGSEGV, SIGBUS}) ::sigdelset(&all, fault);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = create_thread(thread.id_, run, argument.get());
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) return Error{error, "cannot start a thread"};
  thread.running_ = true;
  static_cast<void>(argument.release());  // run() has it
  ::pthread_setname_np(thread.id_, "weft");
  return thread;
}

}  // namespace weft::os
