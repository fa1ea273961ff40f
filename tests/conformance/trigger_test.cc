// SPDX-License-Identifier: BSD-2-Clause
// Does an operation with FI_TRIGGER start when its counter has come to its threshold, in order, and
// not before? (fi_trigger(3))
#include <rdma/fi_trigger.h>

#include <thread>

#include "support/atomic.h"
#include "support/delivery.h"
#include "support/placements.h"

namespace weft::conformance {
namespace {

// Counts nothing by itself: what a test adds is all there is.
constexpr std::uint64_t kGate = FI_REMOTE_READ;

Options triggering() {
  Options options;
  options.caps |= FI_TRIGGER | FI_ATOMIC | FI_RMA_EVENT;
  options.counters = FI_SEND | FI_RECV | FI_WRITE | kGate;
  return options;
}

class Trigger : public PlacementTest {
 protected:
  Trigger() : world_(GetParam(), triggering()) {}

  fid_cntr* gate() { return world_.endpoint().counter(kGate); }
  void open_gate(std::uint64_t count = 1) { EXPECT_EQ(fi_cntr_add(gate(), count), 0); }
  // An operation of the initiator that waits for its gate.
  Operation waiting(Kind kind, std::uint64_t threshold, std::uint64_t length = 64,
                    std::uint64_t seed = 5) {
    Operation operation;
    operation.kind = kind;
    operation.length = length;
    operation.seed = seed;
    operation.peer = traits(kind).receive ? FI_ADDR_UNSPEC : world_.to_target();
    operation.tag = seed;
    operation.flags = FI_TRIGGER;
    operation.trigger = kGate;
    operation.threshold = threshold;
    return operation;
  }
  Token post(const Operation& operation) { return world_.initiator().post(operation); }

  World world_;
};

TEST_P(Trigger, ASendWaitsForItsThreshold) {
  ASSERT_TRUE(world_.ok());
  for (const Kind kind : {Kind::kSendmsg, Kind::kTsendmsg}) {
    for (const std::uint64_t length : {0u, 64u, 3000u, 100000u}) {
      EXPECT_EQ(fi_cntr_set(gate(), 0), 0);
      const Token sent = post(waiting(kind, 2, length));
      const Token received = world_.target().post(
          {.kind = traits(kind).tagged ? Kind::kTrecv : Kind::kRecv, .length = length, .tag = 5});
      open_gate();
      EXPECT_EQ(world_.target().leftovers(), 0u) << "it arrived too early";
      EXPECT_EQ(world_.initiator().leftovers(), 0u);
      open_gate();
      world_.initiator().wait_success(sent);
      world_.target().wait_success(received);
      world_.target().expect_data(received, 5, length);
    }
  }
}

// Posted before the gate is open it would take the first message.
TEST_P(Trigger, AReceiveWaitsForItsThreshold) {
  ASSERT_TRUE(world_.ok());
  for (const Kind kind : {Kind::kRecvmsg, Kind::kTrecvmsg}) {
    const bool tagged = traits(kind).tagged;
    EXPECT_EQ(fi_cntr_set(gate(), 0), 0);
    const Token later = post(waiting(kind, 1));
    const Token now = world_.initiator().post(
        {.kind = tagged ? Kind::kTrecv : Kind::kRecv, .length = 64, .tag = 5});
    for (const std::uint64_t seed : {1u, 2u}) {
      world_.target().post({.kind = tagged ? Kind::kTsend : Kind::kSend,
                            .length = 64,
                            .seed = seed,
                            .peer = world_.to_initiator(),
                            .tag = 5});
    }
    world_.initiator().wait_success(now);
    world_.initiator().expect_data(now, 1, 64);
    open_gate();
    world_.initiator().wait_success(later);
    world_.initiator().expect_data(later, 2, 64);
  }
}

TEST_P(Trigger, RemoteAccessesWaitForTheirThreshold) {
  ASSERT_TRUE(world_.ok());
  for (const std::uint64_t length : {8u, 100000u}) {
    EXPECT_EQ(fi_cntr_set(gate(), 0), 0);
    const Region region = world_.target().expose({.length = length});
    Operation write = waiting(Kind::kWritemsg, 1, length);
    write.remote_address = region.base;
    write.key = region.key;
    Operation read = write;
    read.kind = Kind::kReadmsg;
    read.threshold = 2;
    const Token written = post(write);
    const Token fetched = post(read);
    EXPECT_EQ(world_.initiator().leftovers(), 0u);
    world_.target().expect_region_blank(region, 0, length);
    open_gate();
    world_.initiator().wait_success(written);
    world_.target().expect_region(region, 5, 0, length);
    world_.initiator().expect_data(fetched, 0, 0);
    open_gate();
    world_.initiator().wait_success(fetched);
    world_.initiator().expect_data(fetched, 5, length);
  }
}

TEST_P(Trigger, AtomicOperationsWaitForTheirThreshold) {
  ASSERT_TRUE(world_.ok());
  const Region region = world_.target().expose({.length = 8});
  std::uint64_t threshold = 0;
  for (const Form form : kForms) {
    Atomic atomic;
    atomic.form = form;
    atomic.shape = Shape::kMessage;
    atomic.op = form == Form::kBase ? FI_ATOMIC_WRITE : form == Form::kFetch ? FI_SUM : FI_CSWAP_NE;
    atomic.count = 1;
    std::mt19937_64 random(1);
    atomic.fill(random);
    atomic.operand = {1, 0, 0, 0, 0, 0, 0, 0};
    atomic.compare = {77, 0, 0, 0, 0, 0, 0, 0};
    atomic.peer = world_.to_target();
    atomic.address = region.base;
    atomic.key = region.key;
    atomic.flags = FI_TRIGGER;
    fi_triggered_context context{};
    context.event_type = FI_TRIGGER_THRESHOLD;
    context.trigger.threshold = {gate(), ++threshold};
    ASSERT_EQ(issue(world_.ep(), atomic, &context), 0);
    EXPECT_EQ(world_.initiator().leftovers(), 0u) << form_name(form);
    open_gate();
    ASSERT_TRUE(world_.pump().until([&] { return world_.endpoint().take(&context).has_value(); }));
    collect(atomic);
    if (form == Form::kBase) continue;
    EXPECT_EQ(atomic.result[0], threshold - 1) << "what the one before it has left";
  }
}

TEST_P(Trigger, AJumpOverSeveralThresholdsStartsTheLowestFirst) {
  ASSERT_TRUE(world_.ok());
  constexpr std::uint64_t kThresholds[] = {4, 2, 9, 2, 1, 4, 3};
  constexpr std::uint64_t kExpected[] = {5, 2, 4, 7, 1, 6, 3};  // by the order of posting, from 1
  std::vector<Token> sent;
  std::vector<Token> received;
  for (std::size_t i = 0; i < std::size(kThresholds); ++i) {
    sent.push_back(post(waiting(Kind::kSendmsg, kThresholds[i], 64, i + 1)));
    received.push_back(world_.target().post({.kind = Kind::kRecv, .length = 64}));
  }
  open_gate(4);
  for (std::size_t i = 0; i < std::size(kExpected); ++i) {
    if (i + 1 == std::size(kExpected)) {
      EXPECT_EQ(world_.target().leftovers(), 0u);
      open_gate(100);
    }
    world_.initiator().wait_success(sent[kExpected[i] - 1]);
    world_.target().wait_success(received[i]);
    world_.target().expect_data(received[i], kExpected[i], 64);
  }
}

TEST_P(Trigger, AConditionThatHoldsStartsTheOperationAtOnce) {
  ASSERT_TRUE(world_.ok());
  const Token received = world_.target().post({.kind = Kind::kRecv, .length = 64});
  open_gate(3);
  world_.initiator().wait_success(post(waiting(Kind::kSendmsg, 2)));
  world_.target().wait_success(received);
  world_.target().expect_data(received, 5, 64);
}

// What comes in is sent on without the program: round and round between two sides that only poll.
TEST_P(Trigger, AMessageThatArrivesSendsTheNextOne) {
  ASSERT_TRUE(world_.ok());
  constexpr std::uint64_t kRounds = 20;
  const auto prepare = [&](Party& party, fi_addr_t peer) {
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      party.post({.kind = Kind::kRecv, .length = 64});
      party.post({.kind = Kind::kSendmsg,
                  .length = 64,
                  .seed = round,
                  .peer = peer,
                  .flags = FI_TRIGGER,
                  .trigger = FI_RECV,
                  .threshold = round});
    }
  };
  prepare(world_.initiator(), world_.to_target());
  prepare(world_.target(), world_.to_initiator());
  world_.initiator().post(
      {.kind = Kind::kSend, .length = 64, .seed = 100, .peer = world_.to_target()});
  world_.target().expect_counter(FI_RECV, kRounds);
  world_.initiator().expect_counter(FI_RECV, kRounds);
}

TEST_P(Trigger, AnInjectedBufferMayChangeAtOnce) {
  ASSERT_TRUE(world_.ok());
  Operation send = waiting(Kind::kSendmsg, 1, 100);
  send.flags |= FI_INJECT;
  const Region region = world_.target().expose({.length = 100});
  Operation write = waiting(Kind::kWritemsg, 1, 100);
  write.flags |= FI_INJECT;
  write.remote_address = region.base;
  write.key = region.key;
  const Token sent = post(send);
  const Token written = post(write);
  const Token received = world_.target().post({.kind = Kind::kRecv, .length = 100});
  open_gate();
  world_.initiator().wait_success(sent);
  world_.initiator().wait_success(written);
  world_.target().wait_success(received);
  world_.target().expect_data(received, 5, 100);
  world_.target().expect_region(region, 5, 0, 100);
}

// More than a peer's queue holds: most of them cannot be started when they are due.
TEST_P(Trigger, AnyNumberThatIsDueAtOnceArrivesInOrder) {
  ASSERT_TRUE(world_.ok());
  constexpr std::uint64_t kCount = 1500;
  std::vector<Token> sent;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    sent.push_back(post(waiting(Kind::kSendmsg, 1, 16, i + 1)));
  }
  open_gate();
  for (std::uint64_t i = 0; i < kCount && !HasFailure(); ++i) {
    const Token received = world_.target().post({.kind = Kind::kRecv, .length = 16});
    world_.target().wait_success(received);
    world_.target().expect_data(received, i + 1, 16);
  }
  for (const Token token : sent) world_.initiator().wait_success(token);
}

TEST_P(Trigger, TheFailureOfATriggeredOperationIsReportedLikeAnyOther) {
  ASSERT_TRUE(world_.ok());
  const Region region = world_.target().expose({.length = 64});
  Operation write = waiting(Kind::kWritemsg, 1);
  write.remote_address = region.base;
  write.key = region.key + 77;
  const Token refused = post(write);
  open_gate();
  world_.initiator().wait_error(refused, FI_EACCES);
  EXPECT_EQ(world_.initiator().counter_error(FI_WRITE), 1u);
  // A failure of what it waits for does not start it.
  const Token never = post(waiting(Kind::kSendmsg, 2));
  EXPECT_EQ(fi_cntr_adderr(gate(), 5), 0);
  EXPECT_EQ(world_.initiator().leftovers(), 0u);
  EXPECT_EQ(world_.initiator().cancel(never), 0);
  world_.initiator().wait_error(never, FI_ECANCELED);
}

TEST_P(Trigger, AWaitingOperationCanBeCancelled) {
  ASSERT_TRUE(world_.ok());
  for (const Kind kind : {Kind::kSendmsg, Kind::kTsendmsg, Kind::kRecvmsg, Kind::kTrecvmsg,
                          Kind::kWritemsg, Kind::kReadmsg}) {
    SCOPED_TRACE(traits(kind).name);
    const Token token = post(waiting(kind, 1));
    EXPECT_EQ(world_.initiator().cancel(token), 0);
    const Completion c = world_.initiator().wait_error(token, FI_ECANCELED);
    EXPECT_EQ(c.flags & FI_TAGGED, traits(kind).tagged ? FI_TAGGED : 0u);
    EXPECT_EQ(c.flags & FI_RECV, traits(kind).receive ? FI_RECV : 0u);
    EXPECT_EQ(world_.initiator().cancel(token), -FI_ENOENT);
  }
  open_gate();
  EXPECT_EQ(world_.initiator().leftovers(), 0u);
  EXPECT_EQ(world_.target().leftovers(), 0u);
  world_.exchange();
}

INSTANTIATE_TEST_SUITE_P(Triggers, Trigger, both_process_counts(), placement_name);

// One endpoint that talks to itself.
class TriggerRules : public testing::Test {
 protected:
  TriggerRules() : world_(Placement::kSelf, triggering()) {}

  static Fid<fid_cntr> counter(World& world, fi_wait_obj wait = FI_WAIT_NONE) {
    fi_cntr_attr attributes{};
    attributes.wait_obj = wait;
    return open_fid<fid_cntr>([&](fid_cntr** out) {
      return fi_cntr_open(world.endpoint().domain()->get(), &attributes, out, nullptr);
    });
  }
  static fi_triggered_context when(fid_cntr* cntr, std::uint64_t threshold) {
    fi_triggered_context context{};
    context.event_type = FI_TRIGGER_THRESHOLD;
    context.trigger.threshold = {cntr, threshold};
    return context;
  }
  ssize_t send(fid_ep* ep, fi_addr_t peer, void* context, std::uint64_t flags = FI_TRIGGER) {
    const iovec piece{buffer_, sizeof buffer_};
    const fi_msg message = message_of({&piece, 1}, peer, context);
    return fi_sendmsg(ep, &message, flags);
  }
  ssize_t send(void* context) { return send(world_.ep(), world_.to_target(), context); }
  bool completes(const void* context) {
    return world_.pump().until([&] { return world_.endpoint().take(context).has_value(); });
  }

  World world_;
  char buffer_[8]{};
};

TEST_F(TriggerRules, ConditionsThatMeanNothingAreRefused) {
  ASSERT_TRUE(world_.ok());
  World other(Placement::kSelf, triggering());
  const Fid<fid_cntr> mine = counter(world_);
  const Fid<fid_cntr> theirs = counter(other);
  EXPECT_EQ(send(nullptr), -FI_EINVAL);
  fi_triggered_context context = when(nullptr, 1);
  EXPECT_EQ(send(&context), -FI_EINVAL);
  context = when(theirs.get(), 1);
  EXPECT_EQ(send(&context), -FI_EINVAL) << "a counter of another domain";
  context = when(mine.get(), 1);
  context.event_type = FI_TRIGGER_XPU;
  EXPECT_EQ(send(&context), -FI_ENOSYS);
  context.event_type = static_cast<fi_trigger_event>(99);
  EXPECT_EQ(send(&context), -FI_EINVAL);
  context = when(mine.get(), 1);
  fi_msg_tagged peek{};
  peek.context = &context;
  EXPECT_EQ(fi_trecvmsg(world_.ep(), &peek, FI_TRIGGER | FI_PEEK), -FI_EBADFLAGS)
      << "a peek transfers nothing";
}

TEST_F(TriggerRules, AnEndpointWithoutTheCapabilityKnowsNoTriggers) {
  Options options = triggering();
  options.caps &= ~FI_TRIGGER;
  World plain(Placement::kSelf, options);
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain.endpoint().info()->caps & FI_TRIGGER, 0u);
  fi_triggered_context context = when(plain.endpoint().counter(kGate), 0);
  EXPECT_EQ(send(plain.ep(), plain.to_target(), &context), -FI_EBADFLAGS);
  fid_ep* alias = nullptr;
  EXPECT_EQ(fi_ep_alias(plain.ep(), &alias, FI_TRANSMIT | FI_TRIGGER), -FI_EBADFLAGS);
}

TEST_F(TriggerRules, TheCapabilityIsGrantedOnRequest) {
  ASSERT_TRUE(world_.ok());
  const fi_info* info = world_.endpoint().info();
  EXPECT_NE(info->caps & FI_TRIGGER, 0u);
  EXPECT_NE(info->tx_attr->caps & FI_TRIGGER, 0u);
  EXPECT_NE(info->rx_attr->caps & FI_TRIGGER, 0u);
}

TEST_F(TriggerRules, ACounterIsBusyWhileAnOperationWaitsForIt) {
  ASSERT_TRUE(world_.ok());
  Fid<fid_cntr> mine = counter(world_);
  fi_triggered_context context = when(mine.get(), 1);
  ASSERT_EQ(send(&context), 0);
  EXPECT_EQ(fi_close(&mine->fid), -FI_EBUSY);
  EXPECT_EQ(fi_cancel(&world_.ep()->fid, &context), 0);
  EXPECT_EQ(fi_close(&mine.release()->fid), 0);
}

TEST_F(TriggerRules, AClosedEndpointTakesItsWaitingOperationsAlong) {
  ASSERT_TRUE(world_.ok());
  const Fid<fid_cntr> mine = counter(world_);
  fi_triggered_context context = when(mine.get(), 1);
  {
    Endpoint passing(world_.endpoint().domain(), triggering());
    ASSERT_TRUE(passing.ok());
    const fi_addr_t self = passing.insert(passing.name());
    ASSERT_EQ(send(passing.ep(), self, &context), 0);
    const fi_msg receive = message_of({}, FI_ADDR_UNSPEC, &context);
    ASSERT_EQ(fi_recvmsg(passing.ep(), &receive, FI_TRIGGER), 0);
  }
  EXPECT_EQ(fi_cntr_add(mine.get(), 1), 0);
  EXPECT_EQ(world_.initiator().leftovers(), 0u);
}

// The flag may be a default one: then calls without flags have a triggered context, too.
TEST_F(TriggerRules, AnAliasMayTriggerEveryCall) {
  ASSERT_TRUE(world_.ok());
  const Fid<fid_cntr> mine = counter(world_);
  const auto alias = [&](std::uint64_t flags) {
    return open_fid<fid_ep>([&](fid_ep** out) { return fi_ep_alias(world_.ep(), out, flags); });
  };
  const Fid<fid_ep> sends = alias(FI_TRANSMIT | FI_TRIGGER);
  const Fid<fid_ep> receives = alias(FI_RECV | FI_TRIGGER);
  const Region region = world_.target().expose({.length = 8});
  const fi_addr_t self = world_.to_target();
  char in[8] = {};
  char out[8] = "trigger";
  std::uint64_t one = 1;
  fi_triggered_context c[7];
  for (std::size_t i = 0; i < std::size(c); ++i) c[i] = when(mine.get(), i + 1);
  ASSERT_EQ(fi_recv(receives.get(), in, 8, nullptr, FI_ADDR_UNSPEC, &c[0]), 0);
  ASSERT_EQ(fi_trecv(receives.get(), in, 8, nullptr, FI_ADDR_UNSPEC, 1, 0, &c[1]), 0);
  ASSERT_EQ(fi_tsend(sends.get(), out, 8, nullptr, self, 1, &c[2]), 0);
  ASSERT_EQ(fi_send(sends.get(), out, 8, nullptr, self, &c[3]), 0);
  ASSERT_EQ(fi_write(sends.get(), out, 8, nullptr, self, region.base, region.key, &c[4]), 0);
  ASSERT_EQ(fi_read(sends.get(), in, 8, nullptr, self, region.base, region.key, &c[5]), 0);
  ASSERT_EQ(fi_atomic(sends.get(), &one, 1, nullptr, self, region.base, region.key, FI_UINT64,
                      FI_SUM, &c[6]),
            0);
  EXPECT_EQ(world_.initiator().leftovers(), 0u);
  EXPECT_EQ(fi_cntr_add(mine.get(), std::size(c)), 0);
  for (const fi_triggered_context& context : c) EXPECT_TRUE(completes(&context));
  EXPECT_STREQ(in, "trigger");
}

// The peer comes later: until then the operation cannot be started, and others go on.
TEST_F(TriggerRules, AnOperationThatCannotStartYetIsTriedAgain) {
  ASSERT_TRUE(world_.ok());
  const Fid<fid_cntr> mine = counter(world_);
  Address address;
  {
    Endpoint earlier(world_.endpoint().domain(), triggering());
    address = earlier.name();
  }
  const fi_addr_t peer = world_.endpoint().insert(address);
  fi_triggered_context context = when(mine.get(), 1);
  ASSERT_EQ(send(world_.ep(), peer, &context), 0);
  EXPECT_EQ(fi_cntr_add(mine.get(), 1), 0);
  world_.exchange();
  Options options = triggering();
  options.port = static_cast<std::uint16_t>(address.bytes[2] << 8 | address.bytes[3]);
  Endpoint late(std::make_shared<Domain>(options), options);
  ASSERT_TRUE(late.ok());
  int in = 0;
  ASSERT_EQ(fi_recv(late.ep(), &in, sizeof in, nullptr, FI_ADDR_UNSPEC, &in), 0);
  world_.pump().add(&late);
  EXPECT_TRUE(completes(&context));
  EXPECT_TRUE(world_.pump().until([&] { return late.take(&in) || late.take_error(); }));
  world_.pump().remove(&late);
}

TEST_F(TriggerRules, DatagramsWaitForTheirThreshold) {
  Options options = datagrams();
  options.caps |= FI_TRIGGER;
  options.counters = FI_SEND | FI_RECV;
  World world(Placement::kSelf, options);
  ASSERT_TRUE(world.ok());
  const Fid<fid_cntr> mine = counter(world);
  fi_triggered_context sent = when(mine.get(), 2);
  fi_triggered_context received = when(mine.get(), 1);
  ASSERT_EQ(send(world.ep(), world.to_target(), &sent), 0);
  char in[8];
  const iovec piece{in, sizeof in};
  const fi_msg receive = message_of({&piece, 1}, FI_ADDR_UNSPEC, &received);
  ASSERT_EQ(fi_recvmsg(world.ep(), &receive, FI_TRIGGER), 0);
  EXPECT_EQ(world.initiator().leftovers(), 0u);
  EXPECT_EQ(fi_cntr_add(mine.get(), 2), 0);
  EXPECT_TRUE(world.pump().until([&] { return world.endpoint().take(&sent).has_value(); }));
  bool again = false;
  const auto send_if_lost = [&] {
    if (again) {
      EXPECT_EQ(fi_inject(world.ep(), in, sizeof in, world.to_target()), 0);
    }
    again = true;
  };
  EXPECT_TRUE(until_heard(send_if_lost, [&](std::chrono::milliseconds limit) {
    return world.pump().until([&] { return world.endpoint().take(&received).has_value(); }, limit);
  }));
}

// They belong to no endpoint; one that still waits goes with its context.
TEST_F(TriggerRules, ReceivesOfASharedContextWaitForTheirThreshold) {
  Options options = triggering();
  options.shares = FI_RECV;
  const auto domain = std::make_shared<Domain>(options);
  ASSERT_TRUE(domain->ok());
  Endpoint endpoint(domain, options);
  ASSERT_TRUE(endpoint.ok());
  Pump pump;
  pump.add(&endpoint);
  fid_cntr* const gate = endpoint.counter(kGate);
  const fi_addr_t self = endpoint.insert(endpoint.name());
  fi_triggered_context contexts[3] = {when(gate, 1), when(gate, 1), when(gate, 1)};
  const auto post = [&](fi_triggered_context& context) {
    const fi_msg receive = message_of({}, FI_ADDR_UNSPEC, &context);
    return fi_recvmsg(domain->shared_receive(), &receive, FI_TRIGGER);
  };
  for (fi_triggered_context& context : contexts) ASSERT_EQ(post(context), 0);
  ASSERT_EQ(fi_inject(endpoint.ep(), nullptr, 0, self), 0);
  EXPECT_EQ(fi_cancel(&domain->shared_receive()->fid, &contexts[0]), 0);
  std::optional<Completion> cancelled;
  EXPECT_TRUE(pump.until([&] {
    cancelled = endpoint.take(&contexts[0]);
    return cancelled.has_value();
  }));
  EXPECT_EQ(cancelled->err, FI_ECANCELED);
  EXPECT_EQ(fi_cntr_add(gate, 1), 0);
  EXPECT_TRUE(pump.until([&] { return endpoint.take(&contexts[1]).has_value(); }));
  contexts[0] = when(gate, 2);
  ASSERT_EQ(post(contexts[0]), 0);
  EXPECT_EQ(fi_cancel(&endpoint.ep()->fid, &contexts[0]), 0) << "as other receives of it";
}

class AutoTrigger : public PlacementTest {};

// The target prepares an answer and never calls again; the initiator looks at its own memory only.
TEST_P(AutoTrigger, ATargetThatIsLeftAloneAnswersByWhatItHasPrepared) {
  Options options = triggering();
  options.data_progress = FI_PROGRESS_AUTO;
  options.left_alone = true;
  World world(GetParam(), options);
  ASSERT_TRUE(world.ok());
  const Region region = world.initiator().expose({.length = 64});
  const Token received = world.target().post({.kind = Kind::kRecv, .length = 64});
  world.target().post({.kind = Kind::kWritemsg,
                       .length = 64,
                       .seed = 3,
                       .peer = world.to_initiator(),
                       .flags = FI_TRIGGER,
                       .remote_address = region.base,
                       .key = region.key,
                       .trigger = FI_RECV,
                       .threshold = 1});
  world.initiator().post(
      {.kind = Kind::kInject, .length = 64, .seed = 4, .peer = world.to_target()});
  EXPECT_TRUE(world.pump().until([&] {
    Request look;
    look.what = Request::What::kCheckRegion;
    look.token = region.token;
    look.seed = 3;
    look.count = 64;
    return world.initiator().call(look).text[0] == '\0';
  }));
  world.target().wait_success(received);
}

INSTANTIATE_TEST_SUITE_P(Auto, AutoTrigger,
                         testing::Values(Placement::kTwoProcesses, Placement::kOneProcess),
                         placement_name);

class TriggerWait : public testing::TestWithParam<fi_wait_obj> {};

// A thread sleeps for the completion of an operation that another one triggers.
TEST_P(TriggerWait, ASleeperIsWokenByWhatAnotherThreadTriggers) {
  Options options = triggering();
  options.wait = GetParam();
  options.counter_wait = GetParam();
  World world(Placement::kSelf, options);
  ASSERT_TRUE(world.ok());
  fid_cntr* const gate = world.endpoint().counter(kGate);
  fi_cq_tagged_entry entry{};
  for (std::uint64_t round = 1; round <= 20 && !HasFailure(); ++round) {
    fi_triggered_context context{};
    context.event_type = FI_TRIGGER_THRESHOLD;
    context.trigger.threshold = {gate, round};
    const fi_msg receive = message_of({}, FI_ADDR_UNSPEC, &entry);
    ASSERT_EQ(fi_recvmsg(world.ep(), &receive, 0), 0);
    const fi_msg send = message_of({}, world.to_target(), &context);
    ASSERT_EQ(fi_sendmsg(world.ep(), &send, FI_TRIGGER), 0);
    std::thread adder([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(round * 50));
      EXPECT_EQ(fi_cntr_add(gate, 1), 0);
    });
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(fi_cq_sread(world.endpoint().cq(), &entry, 1, nullptr, 20000), 1);
    }
    EXPECT_EQ(fi_cntr_wait(world.endpoint().counter(FI_RECV), round, 20000), 0);
    adder.join();
  }
}

// Asleep on a counter; a message from another process triggers what that one waits for.
TEST_P(TriggerWait, ASleeperStartsWhatAPeersMessageTriggers) {
  Options options = triggering();
  options.counter_wait = GetParam();
  World world(Placement::kTwoProcesses, options);
  ASSERT_TRUE(world.ok());
  const Region region = world.target().expose({.length = 64});
  world.initiator().post({.kind = Kind::kRecv, .length = 8});
  world.initiator().post({.kind = Kind::kWritemsg,
                          .length = 64,
                          .seed = 9,
                          .peer = world.to_target(),
                          .flags = FI_TRIGGER,
                          .remote_address = region.base,
                          .key = region.key,
                          .trigger = FI_RECV,
                          .threshold = 1});
  Request request;
  request.what = Request::What::kPost;
  request.operation = {
      .kind = Kind::kSend, .length = 8, .peer = world.to_initiator(), .delay_us = 50000};
  world.remote().start(request);
  EXPECT_EQ(fi_cntr_wait(world.endpoint().counter(FI_WRITE), 1, 20000), 0);
  world.target().wait_success(world.remote().finish().value);
  world.target().expect_region(region, 9, 0, 64);
}

INSTANTIATE_TEST_SUITE_P(Threaded, TriggerWait,
                         testing::Values(FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_YIELD),
                         [](const testing::TestParamInfo<fi_wait_obj>& one) {
                           return std::string(one.param == FI_WAIT_UNSPEC ? "Unspec"
                                              : one.param == FI_WAIT_FD   ? "Descriptor"
                                                                          : "Yield");
                         });

}  // namespace
}  // namespace weft::conformance
