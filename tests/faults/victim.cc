// SPDX-License-Identifier: BSD-2-Clause
// What does a process do until it is killed?
#include "victim.h"

#include <signal.h>
#include <time.h>

#include <memory>
#include <string>
#include <vector>

#include "arena.h"
#include "churner.h"
#include "failure.h"
#include "inbox.h"
#include "initiator.h"
#include "node.h"
#include "switchboard.h"

namespace weft::faults {

namespace {

// The kernel sends SIGKILL at that moment, wherever this process then is: between two instructions
// of a copy, asleep, in a system call. It is what `kill -9` from another process does, with a finer
// clock.
void die_in(std::uint32_t microseconds) {
  sigevent event = {};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGKILL;
  timer_t timer = {};
  require(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0, "timer_create");
  itimerspec when = {};
  when.it_value.tv_sec = microseconds / 1000000;
  when.it_value.tv_nsec = static_cast<long>(microseconds % 1000000) * 1000 + 1;
  require(timer_settime(timer, 0, &when, nullptr) == 0, "timer_settime");
}

class Victim {
 public:
  Victim(const Order& order, const Channel& channel)
      : order_(order),
        channel_(channel),
        memory_(std::make_unique_for_overwrite<std::uint8_t[]>(kArenaBytes)),
        node_(order.connected ? FI_EP_MSG : FI_EP_RDM),
        switchboard_(node_) {}

  [[noreturn]] void live() {
    if (order_.early) die_in(order_.kill_after_us);
    set_up();
    if (order_.connected) {
      connect();
    } else {
      survivor_ = node_.insert(order_.survivor);
      if (!order_.early) greet();
    }
    work(order_.connected ? connected_.get() : node_.endpoint());
  }

 private:
  // The survivor lives: nothing of what a victim starts may fail, except where a region is closed
  // on purpose.
  auto no_error() {
    return [this](int error, const std::string& what) {
      if (order_.action == Action::kChurn && error == FI_EACCES) return;
      fail(what + " failed although its target lives: " + error_text(error));
    };
  }

  void set_up() {
    const int status = node_.open(order_.port);
    if (status != 0)
      fail(std::string(node_.failed_call()) + " at port " + std::to_string(order_.port) + ": " +
           error_text(status));
    Arena({memory_.get(), kArenaBytes}).prepare();
    require_ok(node_.register_memory({memory_.get(), kArenaBytes}, kArenaKey, region_),
               "fi_mr_reg");
  }

  void greet() {
    bool greeted = false;
    Inbox hello(
        node_.endpoint(), {true, tag_of(order_.id, Use::kHello), FI_ADDR_UNSPEC, 1, 40000, false},
        [&](ConstBytes, std::uint64_t) { greeted = true; }, no_error());
    const Ready ready{order_.id, node_.address()};
    channel_.send(&ready, sizeof ready);
    while (!greeted) progress();
    reply();
    wait_for_go();
  }

  // The survivor sets the moment of a death, except where that comes before all else.
  void wait_for_go() {
    Go go;
    while (!(channel_.try_receive(&go, sizeof go) && go.id == order_.id))
      node_.poll();  // it does not wake sleepers
    if (!order_.stopped) die_in(order_.kill_after_us);
  }

  void connect() {
    require_ok(switchboard_.open(), switchboard_.failed_call());
    if (order_.asks) {
      require_ok(switchboard_.open_endpoint(nullptr, connected_), switchboard_.failed_call());
      require_ok(switchboard_.connect(*connected_, order_.survivor, order_.id), "fi_connect");
    } else {
      const Ready ready{order_.id, switchboard_.address()};
      channel_.send(&ready, sizeof ready);
      const ConnectionEvent request = next_event();
      require(request.what == FI_CONNREQ && request.id == order_.id,
              "something else than the survivor's request came");
      require_ok(switchboard_.open_endpoint(request.request.get(), connected_),
                 switchboard_.failed_call());
      require_ok(switchboard_.accept(*connected_), "fi_accept");
    }
    const ConnectionEvent made = next_event();
    require(made.what == FI_CONNECTED, "no connection came about: " + error_text(made.error));
    if (!order_.early) wait_for_go();
  }

  ConnectionEvent next_event() {
    std::optional<ConnectionEvent> event;
    while (!(event = switchboard_.read())) {
      if (node_.poll() == 0) sched_yield();
    }
    return std::move(*event);
  }

  void reply() {
    std::vector<std::uint8_t> message(30000);
    write_payload(message, order_.id, 1);
    long status = -FI_EAGAIN;
    while (status == -FI_EAGAIN) {
      status = fi_tsend(node_.endpoint(), message.data(), message.size(), nullptr, survivor_,
                        tag_of(order_.id, Use::kReply), &reply_.operation.context);
      if (status == -FI_EAGAIN) node_.poll();
    }
    require_ok(status, "fi_tsend of the reply");
    reply_.operation.target = &reply_;
    reply_.operation.pending = true;
    while (reply_.operation.pending) progress();
  }

  [[noreturn]] void work(fid_ep* endpoint) {
    const auto ignore = [](ConstBytes, std::uint64_t) {};
    Inbox untagged(endpoint, plain_receives(8), ignore, no_error());
    Inbox packed(endpoint, packed_receives(), ignore, no_error());
    Inbox tagged(endpoint, {true, tag_of(order_.id, Use::kStream), survivor_, 8, 40000, true},
                 ignore, no_error());
    std::unique_ptr<Churner> churner;
    if (order_.action == Action::kChurn && survivor_starts(order_.starter)) {
      churner = std::make_unique<Churner>(node_, churn_key(order_.slot), order_.seed);
    }
    const Target target{endpoint, survivor_, order_.id, order_.survivor_base,
                        churn_key(order_.slot)};
    Initiator initiator(order_.action, target, order_.seed, no_error());
    for (;;) {
      if (victim_starts(order_.starter)) initiator.advance();
      if (churner) churner->step();
      if (order_.stopped) say_when_awake(initiator);
      progress();
    }
  }

  // The survivor asks after a pause; the answer comes when operations have gone on.
  void say_when_awake(const Initiator& initiator) {
    Go go;
    if (!asked_ && channel_.try_receive(&go, sizeof go)) {
      asked_ = true;
      completed_before_ = initiator.completed_count();
    }
    const bool waits = victim_starts(order_.starter) && goes_on(order_.action);
    if (!asked_ || awake_ || (waits && initiator.completed_count() < completed_before_ + 10))
      return;
    awake_ = true;
    const Ready ready{order_.id, {}};
    channel_.send(&ready, sizeof ready);
  }

  void progress() {
    if (order_.blocking) {
      node_.wait(order_.action == Action::kChurn ? 1 : order_.stopped ? 20 : 1000);
    } else if (node_.poll() == 0) {
      sched_yield();
    }
  }

  struct Reply final : CompletionTarget {
    void completed(Operation&, const fi_cq_tagged_entry&) override {}
    void failed(Operation&, const fi_cq_err_entry& error) override {
      fail("reply: " + error_text(error.err));
    }
    Operation operation;
  };

  const Order& order_;
  const Channel& channel_;
  std::unique_ptr<std::uint8_t[]> memory_;
  Node node_;
  Switchboard switchboard_;
  Owned<fid_ep> connected_;
  Owned<fid_mr> region_;
  fi_addr_t survivor_ = 0;
  Reply reply_;
  bool asked_ = false;
  bool awake_ = false;
  std::uint64_t completed_before_ = 0;
};

}  // namespace

void live_as_victim(const Order& order, const Channel& channel) {
  name_this_process("victim " + std::to_string(order.id) + " (" + name_of(order.action) +
                    ", started by " + name_of(order.starter) + ")");
  Victim(order, channel).live();
}

}  // namespace weft::faults
