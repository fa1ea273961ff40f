// SPDX-License-Identifier: BSD-2-Clause
// Does the memory of a large message belong to the program again when it is told so, even if a
// process is stopped in the middle of copying?
//
// Sender and receiver copy at once, with process_vm_writev(2) and process_vm_readv(2). A third
// process holds them where such a copy begins.
#include <sys/syscall.h>

#include <cstdio>
#include <filesystem>
#include <functional>

#include "failure.h"
#include "large_message.h"
#include "process.h"
#include "resources.h"
#include "tests.h"
#include "trio.h"

namespace weft::faults {

namespace {

constexpr unsigned kSeconds = 60;
// More than a receiver takes in one poll, so that some are left behind the large message, and fewer
// than the ring of a connection has room for.
constexpr unsigned kSmallMessages = 100;
constexpr int kObserved = 500;  // ms in which a receive that is reported too early is seen to be

// What every sender does first.
void begin_to_send(const Orders& orders, Talk& talk, LargeMessage& message) {
  send_greeting(talk);
  orders.hear();
  message.send(talk);
}

// Sends a large message and small ones behind it, and goes on until it is told to end.
int live_as_sender(fi_ep_type type, const Orders& orders, const Channel& other) {
  LargeMessage message;  // is being sent until the endpoint is closed
  Talk talk(type, other, true);
  begin_to_send(orders, talk, message);
  for (unsigned i = 0; i < kSmallMessages; ++i) {
    require_ok(fi_inject(talk.endpoint(), &i, sizeof i, talk.peer()), "fi_inject");
  }
  orders.say();
  orders.hear();
  while (!orders.heard()) {
    talk.node().poll();
    talk.read_events();
  }
  orders.say();  // it is outside of any copy now
  orders.hear();
  return kPassed;
}

// What every receiver does first: it is held in its one poll.
void begin_to_receive(const Orders& orders, const Talk& talk, LargeMessage& message) {
  await_greeting(talk);
  message.receive(talk);
  orders.say();
  orders.hear();
  talk.node().poll();
}

void await(const Talk& talk, const LargeMessage& message) {
  while (message.pending()) talk.node().poll();
}

int receive_and_shut_down(const Orders& orders, const Channel& other) {
  Talk talk(FI_EP_MSG, other, false);
  LargeMessage message;
  begin_to_receive(orders, talk, message);
  require_ok(fi_shutdown(talk.endpoint(), 0), "fi_shutdown");
  await(talk, message);
  message.overwrite();
  orders.say();
  orders.hear();
  require(message.is_overwritten(), "a peer wrote into the buffer of a receive that was reported");
  return kPassed;
}

int receive_and_close(bool shares_receives, const Orders& orders, const Channel& other) {
  Talk talk(FI_EP_RDM, other, false, shares_receives);
  LargeMessage message;
  begin_to_receive(orders, talk, message);
  const int first = talk.node().close_endpoint();
  talk.node().poll();
  const bool reported = !message.pending();
  if (first == 0) message.overwrite();
  orders.say();
  orders.hear();
  require(first != 0 || message.is_overwritten(), "a peer wrote after fi_close returned 0");
  require(first == -FI_EBUSY, "fi_close while a peer writes: " + error_text(first));
  require(!reported, "a receive was reported while a peer wrote into its buffer");
  if (!shares_receives) await(talk, message);
  require_ok(talk.node().close_endpoint(), "fi_close once no peer writes");
  if (shares_receives) await(talk, message);
  require(message.error() == FI_ECANCELED, "the receive: " + error_text(message.error()));
  return kPassed;
}

// Gives its message up while the receiver is held, and uses the memory for something else.
int live_as_leaving_sender(fi_ep_type type, const Orders& orders, const Channel& other) {
  Talk talk(type, other, true);
  LargeMessage message;
  begin_to_send(orders, talk, message);
  orders.say();
  orders.hear();
  if (type == FI_EP_MSG) {
    require_ok(fi_shutdown(talk.endpoint(), 0), "fi_shutdown");
    await(talk, message);
    require(message.error() != 0, "a message was sent that the receiver does not have");
  } else {
    require_ok(talk.node().close_endpoint(), "fi_close");
  }
  message.overwrite();
  orders.say();
  orders.hear();
  return kPassed;
}

int receive_from_leaving_sender(fi_ep_type type, const Orders& orders, const Channel& other) {
  Talk talk(type, other, false);
  LargeMessage message;
  begin_to_receive(orders, talk, message);
  await(talk, message);
  orders.say();
  require(message.error() != 0 || message.is_message(), "success with bytes of something else");
  return kPassed;
}

// The receive is posted, and the message is on offer.
void begin(Trio& trio) {
  trio.order_receiver().hear();
  trio.order_sender().say();
  trio.order_sender().hear();
}

// Holds the sender in a copy into the receiver's buffer, and lets the receiver do what it does.
int write_late(fi_ep_type type, const Role& receive, bool closes) {
  Trio trio(std::bind_front(live_as_sender, type), receive);
  begin(trio);
  Tracee sender(trio.sender().id());
  Tracee receiver(trio.receiver().id());
  if (!sender.attached() || !receiver.attached()) return skipped("processes cannot be traced here");
  trio.order_receiver().say();
  // While it has not copied its share, the sender takes one.
  receiver.hold_at(SYS_process_vm_readv);
  trio.order_sender().say();
  sender.hold_at(SYS_process_vm_writev);
  receiver.let_go();
  // A receive that is reported now is reported too early; fi_close waits before it gives up.
  const bool early = trio.order_receiver().wait(closes ? -1 : kObserved);
  sender.let_go();
  trio.order_sender().say();
  trio.order_sender().hear();
  if (!early) trio.order_receiver().wait(-1);
  trio.order_receiver().hear();
  trio.order_receiver().say();
  trio.order_sender().say();
  trio.require_passed();
  return kPassed;
}

// Holds the receiver in a copy out of the sender's buffer until the sender has given that up.
int read_late(fi_ep_type type) {
  Trio trio(std::bind_front(live_as_leaving_sender, type),
            std::bind_front(receive_from_leaving_sender, type));
  begin(trio);
  Tracee receiver(trio.receiver().id());
  if (!receiver.attached()) return skipped("processes cannot be traced here");
  trio.order_receiver().say();
  receiver.hold_at(SYS_process_vm_readv);
  trio.order_sender().say();
  trio.order_sender().hear();
  receiver.let_go();
  trio.order_receiver().hear();
  trio.order_sender().say();
  trio.require_passed();
  return kPassed;
}

template <class Test>
int run(const std::string& name, Test test) {
  if (!provider_is_weft()) return kSkipped;
  const std::string directory = make_runtime_directory(name);
  load_library();
  int result = kPassed;
  {
    const Watchdog watchdog("a large message one of whose processes is stopped", kSeconds);
    result = test();
  }
  std::filesystem::remove_all(directory);
  return result;
}

}  // namespace

int run_shutdown_during_copy_test() {
  return run("shutdown-copy", [] { return write_late(FI_EP_MSG, receive_and_shut_down, false); });
}

int run_close_during_copy_test() {
  return run("close-copy",
             [] { return write_late(FI_EP_RDM, std::bind_front(receive_and_close, false), true); });
}

int run_shared_close_during_copy_test() {
  return run("shared-copy",
             [] { return write_late(FI_EP_RDM, std::bind_front(receive_and_close, true), true); });
}

int run_sender_close_during_copy_test() {
  return run("sender-close", [] { return read_late(FI_EP_RDM); });
}

int run_sender_shutdown_during_copy_test() {
  return run("sender-shutdown", [] { return read_late(FI_EP_MSG); });
}

}  // namespace weft::faults
