// SPDX-License-Identifier: BSD-2-Clause
// Is what was queued to a domain done when its counter has come to its threshold, and counted where
// it was to be counted? (fi_trigger(3), "Deferred work queues")
#include <rdma/fi_atomic.h>
#include <rdma/fi_trigger.h>

#include <array>
#include <deque>
#include <functional>
#include <thread>

#include "support/placements.h"

namespace weft::conformance {
namespace {

constexpr std::uint64_t kAllCounters = FI_SEND | FI_RECV | FI_READ | FI_WRITE;

Options working() {
  Options options;
  options.caps |= FI_TRIGGER | FI_ATOMIC | FI_RMA_EVENT;
  options.counters = kAllCounters;
  return options;
}

Fid<fid_cntr> open_counter(fid_domain* domain, fi_wait_obj wait = FI_WAIT_NONE) {
  fi_cntr_attr attributes{};
  attributes.wait_obj = wait;
  return open_fid<fid_cntr>(
      [&](fid_cntr** out) { return fi_cntr_open(domain, &attributes, out, nullptr); });
}

// One piece of work with everything that belongs to it.
struct Work {
  fi_deferred_work work{};
  fi_op_msg msg{};
  fi_op_tagged tagged{};
  fi_op_rma rma{};
  fi_op_atomic atomic{};
  fi_op_fetch_atomic fetch{};
  fi_op_compare_atomic compare{};
  fi_op_cntr cntr{};
  iovec piece{};
  fi_rma_iov remote{};
  fi_ioc operand{};
  fi_ioc comparand{};
  fi_ioc result{};
  fi_rma_ioc target{};

  Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  Work& when(fid_cntr* counter, std::uint64_t threshold, fid_cntr* completion = nullptr) {
    work.triggering_cntr = counter;
    work.threshold = threshold;
    work.completion_cntr = completion;
    return *this;
  }
  Work& message(fi_op_type type, fid_ep* ep, void* buffer, std::size_t length, fi_addr_t peer,
                std::uint64_t flags = 0) {
    piece = {buffer, length};
    msg = {ep, {}, flags};
    msg.msg = {&piece, nullptr, 1, peer, &work.context, 0};
    tagged = {ep, {}, flags};
    tagged.msg = {&piece, nullptr, 1, peer, 7, 0, &work.context, 0};
    work.op_type = type;
    if (type == FI_OP_SEND || type == FI_OP_RECV) {
      work.op.msg = &msg;
    } else {
      work.op.tagged = &tagged;
    }
    return *this;
  }
  Work& access(fi_op_type type, fid_ep* ep, void* buffer, std::size_t length, fi_addr_t peer,
               const Region& region, std::uint64_t flags = 0) {
    piece = {buffer, length};
    remote = {region.base, length, region.key};
    rma = {ep, {}, flags};
    rma.msg = {&piece, nullptr, 1, peer, &remote, 1, &work.context, 0};
    work.op_type = type;
    work.op.rma = &rma;
    return *this;
  }
  // Of one element of 64 bits.
  Work& change(fi_op_type type, fi_op op, fid_ep* ep, std::uint64_t* values, fi_addr_t peer,
               const Region& region, std::uint64_t flags = 0) {
    operand = {&values[0], 1};
    comparand = {&values[1], 1};
    result = {&values[2], 1};
    target = {region.base, 1, region.key};
    atomic = {ep, {}, flags};
    atomic.msg = {&operand, nullptr, 1, peer, &target, 1, FI_UINT64, op, &work.context, 0};
    fetch = {ep, atomic.msg, {&result, nullptr, 1}, flags};
    compare = {ep, atomic.msg, {&result, nullptr, 1}, {&comparand, nullptr, 1}, flags};
    work.op_type = type;
    if (type == FI_OP_ATOMIC) work.op.atomic = &atomic;
    if (type == FI_OP_FETCH_ATOMIC) work.op.fetch_atomic = &fetch;
    if (type == FI_OP_COMPARE_ATOMIC) work.op.compare_atomic = &compare;
    return *this;
  }
  Work& count(fi_op_type type, fid_cntr* counter, std::uint64_t value) {
    cntr = {counter, value};
    work.op_type = type;
    work.op.cntr = &cntr;
    return *this;
  }
};

class DeferredWork : public PlacementTest {
 protected:
  DeferredWork() : world_(GetParam(), working()) {
    if (!world_.ok()) return;
    gate_ = open_counter(domain());
    done_ = open_counter(domain());
  }

  fid_domain* domain() { return world_.endpoint().domain()->get(); }
  Work& next() { return work_.emplace_back(); }
  int queue(Work& work) { return fi_control(&domain()->fid, FI_QUEUE_WORK, &work.work); }
  bool reaches(fid_cntr* counter, std::uint64_t value) {
    return world_.pump().until([&] { return fi_cntr_read(counter) >= value; }) &&
           fi_cntr_read(counter) == value;
  }
  // The endpoint itself has noticed nothing.
  void expect_silence() {
    for (const std::uint64_t event : {FI_SEND, FI_RECV, FI_READ, FI_WRITE}) {
      EXPECT_EQ(world_.initiator().counter(event), 0u);
      EXPECT_EQ(world_.initiator().counter_error(event), 0u);
    }
    EXPECT_EQ(world_.initiator().leftovers(), 0u);
  }

  World world_;
  std::deque<Work> work_;
  Fid<fid_cntr> gate_;
  Fid<fid_cntr> done_;
};

TEST_P(DeferredWork, MessagesAreSentAndCountedSilently) {
  ASSERT_TRUE(world_.ok());
  std::vector<std::uint8_t> buffer(100000);
  for (std::size_t i = 0; i < buffer.size(); ++i) buffer[i] = pattern_byte(5, i);
  std::uint64_t threshold = 0;
  for (const std::uint64_t length : {0u, 64u, 3000u, 100000u}) {
    for (const fi_op_type type : {FI_OP_SEND, FI_OP_TSEND}) {
      const Token received = world_.target().post(
          {.kind = type == FI_OP_SEND ? Kind::kRecv : Kind::kTrecv, .length = length, .tag = 7});
      Work& work = next().message(type, world_.ep(), buffer.data(), length, world_.to_target());
      ASSERT_EQ(queue(work.when(gate_.get(), ++threshold, done_.get())), 0);
      EXPECT_EQ(world_.target().leftovers(), 0u);
      EXPECT_EQ(fi_cntr_add(gate_.get(), 1), 0);
      world_.target().wait_success(received);
      world_.target().expect_data(received, 5, length);
      EXPECT_TRUE(reaches(done_.get(), threshold));
    }
  }
  expect_silence();
}

TEST_P(DeferredWork, ReceivesArePostedAndCountedSilently) {
  ASSERT_TRUE(world_.ok());
  std::vector<std::uint8_t> buffer(100000);
  std::uint64_t threshold = 0;
  for (const std::uint64_t length : {64u, 100000u}) {
    for (const fi_op_type type : {FI_OP_RECV, FI_OP_TRECV}) {
      std::fill(buffer.begin(), buffer.end(), std::uint8_t{0});
      Work& work = next().message(type, world_.ep(), buffer.data(), length, FI_ADDR_UNSPEC);
      ASSERT_EQ(queue(work.when(gate_.get(), ++threshold, done_.get())), 0);
      const Token sent =
          world_.target().post({.kind = type == FI_OP_RECV ? Kind::kSend : Kind::kTsend,
                                .length = length,
                                .seed = 6,
                                .peer = world_.to_initiator(),
                                .tag = 7});
      world_.pump().once();
      EXPECT_EQ(fi_cntr_read(done_.get()), threshold - 1);
      EXPECT_EQ(fi_cntr_add(gate_.get(), 1), 0);
      EXPECT_TRUE(reaches(done_.get(), threshold));
      world_.target().wait_success(sent);
      EXPECT_EQ(buffer[length - 1], pattern_byte(6, length - 1));
    }
  }
  expect_silence();
}

TEST_P(DeferredWork, RemoteMemoryIsAccessedAndCountedSilently) {
  ASSERT_TRUE(world_.ok());
  const Region region = world_.target().expose({.length = 4096, .seed = 8});
  std::vector<std::uint8_t> buffer(4096);
  Work& read =
      next().access(FI_OP_READ, world_.ep(), buffer.data(), 4096, world_.to_target(), region);
  std::vector<std::uint8_t> source(4096);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = pattern_byte(9, i);
  Work& write =
      next().access(FI_OP_WRITE, world_.ep(), source.data(), 4096, world_.to_target(), region);
  ASSERT_EQ(queue(write.when(gate_.get(), 2, done_.get())), 0);
  ASSERT_EQ(queue(read.when(gate_.get(), 1, done_.get())), 0);
  EXPECT_EQ(fi_cntr_set(gate_.get(), 5), 0);
  EXPECT_TRUE(reaches(done_.get(), 2));
  EXPECT_EQ(buffer[4095], pattern_byte(8, 4095)) << "it was read before it was written";
  world_.target().expect_region(region, 9, 0, 4096);
  expect_silence();
}

TEST_P(DeferredWork, RemoteMemoryIsChangedAtomicallyAndCountedSilently) {
  ASSERT_TRUE(world_.ok());
  const Region region = world_.target().expose({.length = 8});
  const auto step = [&](fi_op_type type, fi_op op, std::uint64_t* values, std::uint64_t at) {
    Work& work = next().change(type, op, world_.ep(), values, world_.to_target(), region);
    ASSERT_EQ(queue(work.when(gate_.get(), at, done_.get())), 0);
  };
  std::uint64_t set[3] = {10, 0, 0};
  std::uint64_t add[3] = {5, 0, 0};
  std::uint64_t swap[3] = {99, 15, 0};
  step(FI_OP_COMPARE_ATOMIC, FI_CSWAP, swap, 3);
  step(FI_OP_FETCH_ATOMIC, FI_SUM, add, 2);
  step(FI_OP_ATOMIC, FI_ATOMIC_WRITE, set, 1);
  EXPECT_EQ(fi_cntr_set(gate_.get(), 3), 0);
  EXPECT_TRUE(reaches(done_.get(), 3));
  EXPECT_EQ(add[2], 10u);
  EXPECT_EQ(swap[2], 15u);
  expect_silence();
}

TEST_P(DeferredWork, CountersAreSetAndAddedTo) {
  ASSERT_TRUE(world_.ok());
  const Fid<fid_cntr> other = open_counter(domain());
  ASSERT_EQ(queue(next().count(FI_OP_CNTR_ADD, other.get(), 7).when(gate_.get(), 2)), 0);
  ASSERT_EQ(queue(next().count(FI_OP_CNTR_SET, other.get(), 100).when(gate_.get(), 1)), 0);
  EXPECT_EQ(fi_cntr_add(gate_.get(), 1), 0);
  EXPECT_EQ(fi_cntr_read(other.get()), 100u);
  EXPECT_EQ(fi_cntr_add(gate_.get(), 1), 0);
  EXPECT_EQ(fi_cntr_read(other.get()), 107u);
  Work& wrong = next().count(FI_OP_CNTR_ADD, other.get(), 7).when(gate_.get(), 2, done_.get());
  EXPECT_EQ(queue(wrong), -FI_EINVAL) << "counter operations have no completion counter";
}

TEST_P(DeferredWork, AnEntryInTheQueueComesOnRequest) {
  ASSERT_TRUE(world_.ok());
  char out[8] = {};
  const Token received = world_.target().post({.kind = Kind::kRecv, .length = 8});
  Work& send = next().message(FI_OP_SEND, world_.ep(), out, 8, world_.to_target(), FI_COMPLETION);
  ASSERT_EQ(queue(send.when(gate_.get(), 0, done_.get())), 0);
  world_.target().wait_success(received);
  EXPECT_TRUE(
      world_.pump().until([&] { return world_.endpoint().take(&send.work.context).has_value(); }));
  EXPECT_TRUE(reaches(done_.get(), 1));
  EXPECT_EQ(world_.initiator().counter(FI_SEND), 0u);
}

TEST_P(DeferredWork, FailuresCountAsErrorsOfTheCompletionCounter) {
  ASSERT_TRUE(world_.ok());
  Region region = world_.target().expose({.length = 8});
  region.key += 77;
  char buffer[8] = {};
  Work& silent = next().access(FI_OP_WRITE, world_.ep(), buffer, 8, world_.to_target(), region);
  ASSERT_EQ(queue(silent.when(gate_.get(), 1, done_.get())), 0);
  EXPECT_EQ(fi_cntr_add(gate_.get(), 1), 0);
  EXPECT_TRUE(world_.pump().until([&] { return fi_cntr_readerr(done_.get()) == 1; }));
  EXPECT_EQ(fi_cntr_read(done_.get()), 0u);
  expect_silence();
  Work& loud =
      next().access(FI_OP_READ, world_.ep(), buffer, 8, world_.to_target(), region, FI_COMPLETION);
  ASSERT_EQ(queue(loud.when(gate_.get(), 1, done_.get())), 0);
  std::optional<Completion> failed;
  EXPECT_TRUE(world_.pump().until([&] {
    failed = world_.endpoint().take_error();
    return failed.has_value();
  }));
  EXPECT_EQ(failed->err, FI_EACCES);
  EXPECT_EQ(failed->context, &loud.work.context);
  EXPECT_EQ(fi_cntr_readerr(done_.get()), 2u);
}

// Without a completion counter it is not counted.
TEST_P(DeferredWork, ACompletionCounterIsNotNeeded) {
  ASSERT_TRUE(world_.ok());
  char out[8] = {};
  const Token received = world_.target().post({.kind = Kind::kRecv, .length = 8});
  Work& send = next().message(FI_OP_SEND, world_.ep(), out, 8, world_.to_target());
  ASSERT_EQ(queue(send.when(gate_.get(), 0)), 0);
  world_.target().wait_success(received);
  expect_silence();
}

// fi_trigger(3): success plus error values. A program that depends on success must check.
TEST_P(DeferredWork, ErrorsOfTheTriggeringCounterCountToo) {
  ASSERT_TRUE(world_.ok());
  const Fid<fid_cntr> other = open_counter(domain());
  ASSERT_EQ(queue(next().count(FI_OP_CNTR_ADD, other.get(), 1).when(gate_.get(), 3)), 0);
  EXPECT_EQ(fi_cntr_adderr(gate_.get(), 2), 0);
  EXPECT_EQ(fi_cntr_read(other.get()), 0u);
  EXPECT_EQ(fi_cntr_add(gate_.get(), 1), 0);
  EXPECT_EQ(fi_cntr_read(other.get()), 1u);
}

TEST_P(DeferredWork, StructuresMayBeUsedAgainOnceTheWorkIsDone) {
  ASSERT_TRUE(world_.ok());
  char out[8] = {};
  Work& send = next().message(FI_OP_SEND, world_.ep(), out, 8, world_.to_target());
  for (std::uint64_t round = 1; round <= 10; ++round) {
    const Token received = world_.target().post({.kind = Kind::kRecv, .length = 8});
    ASSERT_EQ(queue(send.when(gate_.get(), round, done_.get())), 0);
    EXPECT_EQ(fi_cntr_add(gate_.get(), 1), 0);
    EXPECT_TRUE(reaches(done_.get(), round));
    world_.target().wait_success(received);
  }
}

INSTANTIATE_TEST_SUITE_P(Triggers, DeferredWork, both_process_counts(), placement_name);

// Several endpoints of one domain.
class WorkAmongMany : public testing::Test {
 protected:
  static constexpr std::size_t kRanks = 4;

  void SetUp() override {
    ASSERT_TRUE(opened_->ok());
    domain_ = opened_->get();
    for (Rank& rank : ranks_) {
      rank.endpoint = std::make_unique<Endpoint>(opened_, working());
      ASSERT_TRUE(rank.endpoint->ok());
      for (Fid<fid_cntr>& counter : rank.counters) counter = open_counter(domain_);
    }
    for (Rank& rank : ranks_) {
      for (Rank& peer : ranks_) rank.peers.push_back(rank.endpoint->insert(peer.endpoint->name()));
    }
  }
  void TearDown() override {
    for (Rank& rank : ranks_) rank.endpoint.reset();
  }
  int control(int command, void* argument) { return fi_control(&domain_->fid, command, argument); }
  void queue(Work& work) { ASSERT_EQ(control(FI_QUEUE_WORK, &work.work), 0); }
  Work& next() { return work_.emplace_back(); }
  // A receive for the next message, counted in `counter` when that is there.
  void expect(std::size_t rank, std::uint64_t* place, fid_cntr* counter) {
    Work& work = next().message(FI_OP_RECV, ranks_[rank].endpoint->ep(), place, 8, FI_ADDR_UNSPEC);
    queue(work.when(counter, 0, counter));
  }
  void send(std::size_t from, std::size_t to, std::uint64_t* what, fid_cntr* counter,
            std::uint64_t threshold, fid_cntr* completion) {
    Work& work =
        next().message(FI_OP_SEND, ranks_[from].endpoint->ep(), what, 8, ranks_[from].peers[to]);
    queue(work.when(counter, threshold, completion));
  }
  // Nothing but this counter is looked at.
  static bool reaches(fid_cntr* counter, std::uint64_t value) {
    const auto end = std::chrono::steady_clock::now() + patience();
    while (fi_cntr_read(counter) < value) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }

  struct Rank {
    std::array<Fid<fid_cntr>, 4> counters;
    std::unique_ptr<Endpoint> endpoint;
    std::vector<fi_addr_t> peers;
    std::uint64_t value = 0;
  };
  const std::shared_ptr<Domain> opened_ = std::make_shared<Domain>(working());
  fid_domain* domain_ = nullptr;
  std::array<Rank, kRanks> ranks_;
  std::deque<Work> work_;
};

// Rank 0 sends to 1 and 2, rank 1 to 3; rank 0's counter says when all of it may begin.
TEST_F(WorkAmongMany, ABroadcastRunsDownATreeByItself) {
  fid_cntr* const begin = ranks_[0].counters[0].get();
  for (std::size_t rank = 1; rank < kRanks; ++rank) {
    expect(rank, &ranks_[rank].value, ranks_[rank].counters[0].get());
  }
  send(1, 3, &ranks_[1].value, ranks_[1].counters[0].get(), 1, ranks_[1].counters[1].get());
  send(0, 1, &ranks_[0].value, begin, 1, ranks_[0].counters[1].get());
  send(0, 2, &ranks_[0].value, begin, 1, ranks_[0].counters[1].get());
  ranks_[0].value = 4711;
  EXPECT_EQ(fi_cntr_add(begin, 1), 0);
  EXPECT_TRUE(reaches(ranks_[3].counters[0].get(), 1));
  EXPECT_TRUE(reaches(ranks_[2].counters[0].get(), 1));
  for (const Rank& rank : ranks_) EXPECT_EQ(rank.value, 4711u);
}

// Dissemination: in step k every rank tells the one 2^k further, once it has heard in step k - 1.
TEST_F(WorkAmongMany, ABarrierHoldsEveryRankUntilTheLastHasCome) {
  std::array<std::array<std::uint64_t, 2>, kRanks> heard{};
  std::uint64_t token = 1;
  const auto entered = [&](std::size_t rank) { return ranks_[rank].counters[0].get(); };
  const auto step = [&](std::size_t rank, std::size_t k) {
    return ranks_[rank].counters[1 + k].get();
  };
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    for (std::size_t k = 0; k < 2; ++k) {
      Work& work = next().message(FI_OP_TRECV, ranks_[rank].endpoint->ep(), &heard[rank][k], 8,
                                  FI_ADDR_UNSPEC);
      work.tagged.msg.tag = k;
      queue(work.when(entered(rank), 0, step(rank, k)));
    }
    for (std::size_t k = 0; k < 2; ++k) {
      const std::size_t to = (rank + (std::size_t{1} << k)) % kRanks;
      Work& work = next().message(FI_OP_TSEND, ranks_[rank].endpoint->ep(), &token, 8,
                                  ranks_[rank].peers[to]);
      work.tagged.msg.tag = k;
      queue(k == 0 ? work.when(entered(rank), 1) : work.when(step(rank, 0), 2));
    }
    // A step is over when the rank has done what comes before it and has heard: that makes two.
    queue(next().count(FI_OP_CNTR_ADD, step(rank, 0), 1).when(entered(rank), 1));
    queue(next().count(FI_OP_CNTR_ADD, step(rank, 1), 1).when(step(rank, 0), 2));
    queue(next().count(FI_OP_CNTR_ADD, ranks_[rank].counters[3].get(), 1).when(step(rank, 1), 2));
  }
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    for (std::size_t other = 0; other < kRanks; ++other) {
      for (int look = 0; look < 50; ++look) fi_cntr_read(ranks_[other].counters[3].get());
      EXPECT_EQ(fi_cntr_read(ranks_[other].counters[3].get()), 0u) << "before rank " << rank;
    }
    EXPECT_EQ(fi_cntr_add(entered(rank), 1), 0);
  }
  for (const Rank& rank : ranks_) EXPECT_TRUE(reaches(rank.counters[3].get(), 1));
}

// A chain as long as one likes, through all endpoints in turn, started by one addition.
TEST_F(WorkAmongMany, AChainOfMessagesRunsToItsEnd) {
  constexpr std::uint64_t kLaps = 50;
  std::array<fid_cntr*, kRanks> heard{};
  for (std::size_t rank = 0; rank < kRanks; ++rank) heard[rank] = ranks_[rank].counters[0].get();
  for (std::uint64_t lap = 1; lap <= kLaps; ++lap) {
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      expect(rank, &ranks_[rank].value, heard[rank]);
      if (rank == 0 && lap == kLaps) continue;  // it ends where it began
      send(rank, (rank + 1) % kRanks, &ranks_[rank].value, heard[rank], lap, nullptr);
    }
  }
  ranks_[0].value = 5;
  std::uint64_t first = 5;
  send(0, 1, &first, ranks_[0].counters[1].get(), 1, nullptr);
  EXPECT_EQ(fi_cntr_add(ranks_[0].counters[1].get(), 1), 0);
  EXPECT_TRUE(reaches(heard[0], kLaps));
  EXPECT_EQ(ranks_[0].value, 5u);
}

TEST_F(WorkAmongMany, CancelledWorkIsNeverDone) {
  fid_cntr* const gate = ranks_[0].counters[0].get();
  fid_cntr* const done = ranks_[0].counters[1].get();
  Work& kept = next().count(FI_OP_CNTR_ADD, done, 1).when(gate, 1);
  Work& cancelled = next().count(FI_OP_CNTR_ADD, done, 100).when(gate, 1);
  queue(kept);
  queue(cancelled);
  EXPECT_EQ(control(FI_CANCEL_WORK, &cancelled.work), 0);
  EXPECT_EQ(control(FI_CANCEL_WORK, &cancelled.work), -FI_ENOENT);
  EXPECT_EQ(fi_cntr_add(gate, 1), 0);
  EXPECT_EQ(fi_cntr_read(done), 1u);
  EXPECT_EQ(control(FI_CANCEL_WORK, &kept.work), -FI_ENOENT) << "it is done";
}

TEST_F(WorkAmongMany, AFlushForgetsAllWorkOrThatOfOneCounter) {
  fid_cntr* const one = ranks_[0].counters[0].get();
  fid_cntr* const two = ranks_[0].counters[1].get();
  fid_cntr* const done = ranks_[0].counters[2].get();
  char out[8] = {};
  queue(next().count(FI_OP_CNTR_ADD, done, 1).when(one, 1));
  queue(next().count(FI_OP_CNTR_ADD, done, 10).when(two, 1));
  EXPECT_EQ(control(FI_FLUSH_WORK, one), 0);
  EXPECT_EQ(fi_cntr_add(one, 1), 0);
  EXPECT_EQ(fi_cntr_add(two, 1), 0);
  EXPECT_EQ(fi_cntr_read(done), 10u);
  queue(next().count(FI_OP_CNTR_ADD, done, 100).when(one, 2));
  Work& send = next().message(FI_OP_SEND, ranks_[0].endpoint->ep(), out, 8, ranks_[0].peers[1]);
  queue(send.when(two, 2, done));
  EXPECT_EQ(control(FI_FLUSH_WORK, nullptr), 0);
  EXPECT_EQ(fi_cntr_add(one, 1), 0);
  EXPECT_EQ(fi_cntr_add(two, 1), 0);
  EXPECT_EQ(fi_cntr_read(done), 10u);
  EXPECT_EQ(control(FI_FLUSH_WORK, nullptr), 0) << "there is nothing left";
}

TEST_F(WorkAmongMany, CountersAreBusyUntilTheWorkIsDone) {
  Fid<fid_cntr> gate = open_counter(domain_);
  Fid<fid_cntr> done = open_counter(domain_);
  std::uint64_t value = 0;
  Work& receive = next().message(FI_OP_RECV, ranks_[0].endpoint->ep(), &value, 8, FI_ADDR_UNSPEC);
  queue(receive.when(gate.get(), 1, done.get()));
  EXPECT_EQ(fi_close(&gate->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&done->fid), -FI_EBUSY);
  EXPECT_EQ(fi_cntr_add(gate.get(), 1), 0);
  EXPECT_EQ(fi_close(&gate.release()->fid), 0);
  EXPECT_EQ(fi_close(&done->fid), -FI_EBUSY) << "the receive has not taken a message yet";
  EXPECT_EQ(fi_inject(ranks_[1].endpoint->ep(), &value, 8, ranks_[1].peers[0]), 0);
  EXPECT_TRUE(reaches(done.get(), 1));
  EXPECT_EQ(fi_close(&done.release()->fid), 0);
}

TEST_F(WorkAmongMany, AnEndpointTakesItsWorkAlong) {
  Fid<fid_cntr> gate = open_counter(domain_);
  Fid<fid_cntr> done = open_counter(domain_);
  std::uint64_t value = 0;
  fid_ep* const ep = ranks_[0].endpoint->ep();
  queue(next().message(FI_OP_RECV, ep, &value, 8, FI_ADDR_UNSPEC).when(gate.get(), 0, done.get()));
  queue(next().message(FI_OP_RECV, ep, &value, 8, FI_ADDR_UNSPEC).when(gate.get(), 1, done.get()));
  queue(next()
            .message(FI_OP_SEND, ep, &value, 8, ranks_[0].peers[1])
            .when(gate.get(), 1, done.get()));
  ranks_[0].endpoint.reset();
  EXPECT_EQ(fi_cntr_add(gate.get(), 1), 0);
  EXPECT_EQ(fi_cntr_read(done.get()), 0u);
  EXPECT_EQ(fi_close(&gate.release()->fid), 0);
  EXPECT_EQ(fi_close(&done.release()->fid), 0);
}

TEST_F(WorkAmongMany, WorkThatMeansNothingIsRefused) {
  fid_cntr* const gate = ranks_[0].counters[0].get();
  fid_ep* const ep = ranks_[0].endpoint->ep();
  const fi_addr_t peer = ranks_[0].peers[1];
  char buffer[8] = {};
  const auto refused = [&](Work& work) { return control(FI_QUEUE_WORK, &work.work); };
  EXPECT_EQ(control(FI_QUEUE_WORK, nullptr), -FI_EINVAL);
  EXPECT_EQ(control(FI_CANCEL_WORK, nullptr), -FI_EINVAL);
  EXPECT_EQ(control(FI_ENABLE, nullptr), -FI_ENOSYS);
  Work& no_counter = next().message(FI_OP_SEND, ep, buffer, 8, peer);
  EXPECT_EQ(refused(no_counter), -FI_EINVAL);
  Work& no_endpoint = next().message(FI_OP_SEND, nullptr, buffer, 8, peer).when(gate, 1);
  EXPECT_EQ(refused(no_endpoint), -FI_EINVAL);
  Work& no_operation = next().when(gate, 1);
  no_operation.work.op_type = FI_OP_WRITE;
  EXPECT_EQ(refused(no_operation), -FI_EINVAL);
  Work& unknown = next().message(FI_OP_SEND, ep, buffer, 8, peer).when(gate, 1);
  unknown.work.op_type = static_cast<fi_op_type>(99);
  EXPECT_EQ(refused(unknown), -FI_ENOSYS);
  Work& bad_flags = next().message(FI_OP_SEND, ep, buffer, 8, peer, FI_PEEK).when(gate, 1);
  EXPECT_EQ(refused(bad_flags), -FI_EBADFLAGS);
  const Region nowhere{.length = 8};
  Work& uneven = next().access(FI_OP_WRITE, ep, buffer, 8, peer, nowhere).when(gate, 1);
  uneven.remote.len = 4;
  EXPECT_EQ(refused(uneven), -FI_EINVAL);
  World other(Placement::kSelf, working());
  ASSERT_TRUE(other.ok());
  Work& strange = next().message(FI_OP_SEND, other.ep(), buffer, 8, other.to_target());
  EXPECT_EQ(refused(strange.when(gate, 1)), -FI_EINVAL) << "an endpoint of another domain";
  EXPECT_EQ(control(FI_FLUSH_WORK, other.endpoint().counter(FI_SEND)), -FI_EINVAL);
}

// Without FI_MSG there is nothing to send with, whatever the work says.
TEST(DeferredWorkCaps, AnEndpointDoesWhatItWasOpenedFor) {
  Options options = working();
  options.caps = FI_TAGGED | FI_TRIGGER;
  World world(Placement::kSelf, options);
  ASSERT_TRUE(world.ok());
  fid_domain* const domain = world.endpoint().domain()->get();
  const Fid<fid_cntr> gate = open_counter(domain);
  char buffer[8] = {};
  Work work;
  work.message(FI_OP_SEND, world.ep(), buffer, 8, world.to_target()).when(gate.get(), 1);
  EXPECT_EQ(fi_control(&domain->fid, FI_QUEUE_WORK, &work.work), -FI_ENOSYS);
  options.caps = FI_MSG;
  World plain(Placement::kSelf, options);
  ASSERT_TRUE(plain.ok());
  fid_domain* const other = plain.endpoint().domain()->get();
  const Fid<fid_cntr> theirs = open_counter(other);
  work.message(FI_OP_SEND, plain.ep(), buffer, 8, plain.to_target()).when(theirs.get(), 1);
  EXPECT_EQ(fi_control(&other->fid, FI_QUEUE_WORK, &work.work), -FI_EBADFLAGS)
      << "it has no FI_TRIGGER";
}

// A counter that nothing else drives: the wait for it drives everything that leads there.
TEST(DeferredWorkThreaded, AThreadMayWaitForTheCompletionCounterOnly) {
  for (const fi_wait_obj object : {FI_WAIT_UNSPEC, FI_WAIT_YIELD, FI_WAIT_NONE}) {
    World world(Placement::kTwoProcesses, working());
    ASSERT_TRUE(world.ok());
    fid_domain* const domain = world.endpoint().domain()->get();
    const Fid<fid_cntr> arrived = open_counter(domain);
    const Fid<fid_cntr> done = open_counter(domain, object);
    const Region region = world.target().expose({.length = 8});
    char in[8];
    char out[8] = {};
    Work receive;
    receive.message(FI_OP_RECV, world.ep(), in, 8, FI_ADDR_UNSPEC);
    receive.when(arrived.get(), 0, arrived.get());
    Work write;
    write.access(FI_OP_WRITE, world.ep(), out, 8, world.to_target(), region);
    write.when(arrived.get(), 1, done.get());
    for (Work* work : {&receive, &write}) {
      ASSERT_EQ(fi_control(&domain->fid, FI_QUEUE_WORK, &work->work), 0);
    }
    Request request;
    request.what = Request::What::kPost;
    request.operation = {
        .kind = Kind::kSend, .length = 8, .peer = world.to_initiator(), .delay_us = 50000};
    world.remote().start(request);
    EXPECT_EQ(fi_cntr_wait(done.get(), 1, 20000), 0);
    world.target().wait_success(world.remote().finish().value);
  }
}

// Every thread queues work that another one's additions start.
TEST(DeferredWorkThreaded, ThreadsMayQueueAndCountAtOnce) {
  World world(Placement::kSelf, working());
  ASSERT_TRUE(world.ok());
  fid_domain* const domain = world.endpoint().domain()->get();
  constexpr std::uint64_t kThreads = 3;
  constexpr std::uint64_t kEach = 300;
  std::array<std::deque<Work>, kThreads> works;  // queued work stays in place until it is done
  const Fid<fid_cntr> gate = open_counter(domain);
  const Fid<fid_cntr> done = open_counter(domain);
  const auto work = [&](std::deque<Work>& mine) {
    for (std::uint64_t i = 1; i <= kEach; ++i) {
      Work& next = mine.emplace_back();
      next.count(FI_OP_CNTR_ADD, done.get(), 1).when(gate.get(), i * kThreads);
      EXPECT_EQ(fi_control(&domain->fid, FI_QUEUE_WORK, &next.work), 0);
      EXPECT_EQ(fi_cntr_add(gate.get(), 1), 0);
    }
  };
  std::vector<std::thread> threads;
  for (std::deque<Work>& mine : works) threads.emplace_back(work, std::ref(mine));
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fi_cntr_read(done.get()), kThreads * kEach);
}

}  // namespace
}  // namespace weft::conformance
