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
        memory_(std::make_unique_for_overwrite<std::uint8_t[]>(kArenaBytes)) {}

  [[noreturn]] void live() {
    if (order_.early) die_in(order_.kill_after_us);
    set_up();
    if (!order_.early) greet();
    work();
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
    survivor_ = node_.insert(order_.survivor);
  }

  void greet() {
    bool greeted = false;
    Inbox hello(
        node_, {true, tag_of(order_.id, Use::kHello), FI_ADDR_UNSPEC, 1, 40000, false},
        [&](ConstBytes, std::uint64_t) { greeted = true; }, no_error());
    const Ready ready{order_.id, node_.address()};
    channel_.send(&ready, sizeof ready);
    while (!greeted) progress();
    reply();
    Go go;
    while (!(channel_.try_receive(&go, sizeof go) && go.id == order_.id))
      node_.poll();  // it does not wake sleepers
    die_in(order_.kill_after_us);
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

  [[noreturn]] void work() {
    const auto ignore = [](ConstBytes, std::uint64_t) {};
    Inbox untagged(node_, {false, 0, FI_ADDR_UNSPEC, 8, 512 * 1024, true}, ignore, no_error());
    Inbox tagged(node_, {true, tag_of(order_.id, Use::kStream), survivor_, 8, 40000, true}, ignore,
                 no_error());
    std::unique_ptr<Churner> churner;
    if (order_.action == Action::kChurn && survivor_starts(order_.starter)) {
      churner = std::make_unique<Churner>(node_, churn_key(order_.slot), order_.seed);
    }
    const Target target{survivor_, order_.id, order_.survivor_base, churn_key(order_.slot)};
    Initiator initiator(node_, order_.action, target, order_.seed, no_error());
    for (;;) {
      if (victim_starts(order_.starter)) initiator.advance();
      if (churner) churner->step();
      progress();
    }
  }

  void progress() {
    if (order_.blocking) {
      node_.wait(order_.action == Action::kChurn ? 1 : 1000);
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
  Owned<fid_mr> region_;
  fi_addr_t survivor_ = FI_ADDR_UNSPEC;
  Reply reply_;
};

}  // namespace

void live_as_victim(const Order& order, const Channel& channel) {
  name_this_process("victim " + std::to_string(order.id) + " (" + name_of(order.action) +
                    ", started by " + name_of(order.starter) + ")");
  Victim(order, channel).live();
}

}  // namespace weft::faults
