// SPDX-License-Identifier: BSD-2-Clause
// Is another process that got the id of a dead peer left alone in the middle of a large message?
//
// clone3(2) makes a process with an id of choice, in a namespace of process ids of the test's own.
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "failure.h"
#include "resources.h"
#include "tests.h"
#include "trio.h"

namespace weft::faults {

namespace {

constexpr unsigned kReuseSeconds = 60;
// The device may rely on what it knew for that long.
constexpr auto kKnown = std::chrono::milliseconds(50);

// What takes the id of a peer has something else where the peer had the message.
class Successor {
 public:
  Successor(pid_t id, const LargeMessage& memory) {
    Channel::make_pair(here_, there_);
    clone_args arguments = {};
    arguments.exit_signal = SIGCHLD;
    arguments.set_tid = reinterpret_cast<std::uintptr_t>(&id);
    arguments.set_tid_size = 1;
    id_ = static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof arguments));
    if (id_ < 0) fail("clone3 with a dead peer's id: " + error_text(errno));
    if (id_ != 0) return;
    name_this_process("successor");
    here_.close();
    Orders(std::move(there_)).hear();
    _exit(memory.is_overwritten() ? kPassed : kFailed);
  }
  void require_untouched() {
    Orders(std::move(here_)).say();
    int status = 0;
    require(waitpid(id_, &status, 0) == id_, "waitpid");
    require(status == 0, "a process was written into that has the id of a dead peer");
  }

 private:
  Channel here_;
  Channel there_;
  pid_t id_ = 0;
};

// One side of a message; the other side's memory lies at the same address.
int send_in_vain(LargeMessage& message, const Orders& orders, const Channel& other) {
  Talk talk(FI_EP_RDM, other, true);
  send_greeting(talk);
  orders.hear();
  message.send(talk);
  orders.say();
  orders.hear();
  while (message.pending()) talk.node().poll();
  require(message.error() != 0, "a message counts as sent whose receiver died before its end");
  orders.say();
  return kPassed;
}

int receive_in_vain(LargeMessage& message, const Orders& orders, const Channel& other) {
  Talk talk(FI_EP_RDM, other, false);
  await_greeting(talk);
  orders.say();
  orders.hear();
  talk.node().poll();  // the message is there when this returns
  orders.say();
  orders.hear();
  message.receive(talk);
  while (message.pending()) talk.node().poll();
  require(message.error() != 0, "success with the memory of another process");
  orders.say();
  return kPassed;
}

// Both sides run, and the message is on offer.
void begin_trio(Trio& trio) {
  trio.order_receiver().hear();
  trio.order_sender().say();
  trio.order_sender().hear();
  trio.order_receiver().say();
  trio.order_receiver().hear();
}

// The victim dies; the successor is in its place when this returns.
Successor replace(const Process& victim, const LargeMessage& memory) {
  victim.end();
  Successor successor(victim.id(), memory);
  std::this_thread::sleep_for(kKnown);
  return successor;
}

// The sender dies before the receive is posted.
bool read_from_successor(const Role& sends, const Role& receives, const LargeMessage& memory) {
  Trio trio(sends, receives);
  begin_trio(trio);
  Successor successor = replace(trio.sender(), memory);
  trio.order_receiver().say();
  trio.order_receiver().hear();
  trio.receiver().require_passed();
  successor.require_untouched();
  return true;
}

// A trio whose receiver is stopped just before it reads.
struct HeldTrio {
  HeldTrio(const Role& sends, const Role& receives) : trio(sends, receives) {
    begin_trio(trio);
    receiver.emplace(trio.receiver().id());
    if (!receiver->attached()) return;
    trio.order_receiver().say();
    receiver->hold_at(SYS_process_vm_readv);
  }
  // False where processes cannot be traced.
  bool ok() const { return receiver->attached(); }

  Trio trio;
  std::optional<Tracee> receiver;
};

// The sender dies while the receiver is stopped.
bool read_late_from_successor(const Role& sends, const Role& receives, const LargeMessage& memory) {
  HeldTrio held(sends, receives);
  if (!held.ok()) return false;
  Trio& trio = held.trio;
  Successor successor = replace(trio.sender(), memory);
  held.receiver->let_go();
  trio.order_receiver().hear();
  trio.receiver().require_passed();
  successor.require_untouched();
  return true;
}

// The receiver dies when it has named its buffer and left a share of the copying to the sender.
bool write_to_successor(const Role& sends, const Role& receives, const LargeMessage& memory) {
  HeldTrio held(sends, receives);
  if (!held.ok()) return false;
  Trio& trio = held.trio;
  Successor successor = replace(trio.receiver(), memory);
  held.receiver->forget();
  trio.order_sender().say();
  trio.order_sender().hear();
  trio.sender().require_passed();
  successor.require_untouched();
  return true;
}

// False: this machine does not allow it.
using Scene = bool (*)(const Role& sends, const Role& receives, const LargeMessage& memory);

int run_as_init(Scene scene) {
  name_this_process("first process of the namespace");
  const Watchdog watchdog("a large message one of whose processes was replaced", kReuseSeconds);
  LargeMessage message;
  message.overwrite();
  const bool allowed = scene(std::bind_front(send_in_vain, std::ref(message)),
                             std::bind_front(receive_in_vain, std::ref(message)), message);
  return allowed ? kPassed : skipped("processes cannot be traced here");
}

bool write_file(const char* path, const std::string& text) {
  const int file = ::open(path, O_WRONLY | O_CLOEXEC);
  const bool written =
      file >= 0 && write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(file);
  return written;
}

// In a namespace of process ids that is this user's: there ids may be chosen.
int run_in_own_namespace(Scene scene) {
  const std::string id = std::to_string(geteuid());
  if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0 ||
      !write_file("/proc/self/uid_map", id + " " + id + " 1")) {
    return skipped("there are no namespaces of process ids for this user");
  }
  const pid_t init = fork();
  require(init >= 0, "fork");
  if (init == 0) _exit(run_as_init(scene));
  int status = 0;
  require(waitpid(init, &status, 0) == init, "waitpid");
  return WIFEXITED(status) ? WEXITSTATUS(status) : kFailed;
}

int run_replacing(Scene scene) {
  if (!provider_is_weft()) return kSkipped;
  const std::string directory = make_runtime_directory("reused-id");
  load_library();
  const Process process("the process with a namespace",
                        [&] { return run_in_own_namespace(scene); });
  process.require_passed();
  std::filesystem::remove_all(directory);
  return kPassed;
}

}  // namespace

int run_reused_sender_test() { return run_replacing(read_from_successor); }

int run_reused_sender_during_copy_test() { return run_replacing(read_late_from_successor); }

int run_reused_receiver_test() { return run_replacing(write_to_successor); }

}  // namespace weft::faults
