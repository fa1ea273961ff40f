// SPDX-License-Identifier: BSD-2-Clause
// Can one wait for several objects at once, and ask several at once for news? (fi_poll(3))
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "os/thread_state_support.h"
#include "support/channel.h"
#include "support/endpoint.h"
#include "support/native_wait.h"
#include "support/world.h"

namespace weft::conformance {
namespace {

int patience_ms() { return static_cast<int>(patience().count()); }

// A queue, a counter and an event queue that share a wait set, and an endpoint that talks to
// itself.
class Members {
 public:
  explicit Members(fi_wait_obj object) : domain_(Options{}) {
    fi_wait_attr attr{object, 0};
    set_ = open_fid<fid_wait>(
        [&](fid_wait** out) { return fi_wait_open(domain_.fabric(), &attr, out); });
    open_queues();
    open_endpoint();
  }

  fid_fabric* fabric() { return domain_.fabric(); }
  Domain& domain() { return domain_; }
  Fid<fid_wait>& set() { return set_; }
  fid_cq* cq() { return cq_.get(); }
  fid_cntr* counter() { return counter_.get(); }
  fid_eq* eq() { return eq_.get(); }

  void send_to_self() {
    ASSERT_EQ(fi_recv(ep_.get(), buffer_, sizeof buffer_, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
    ASSERT_EQ(fi_inject(ep_.get(), buffer_, 8, self_), 0);
  }
  void add_to_counter() { EXPECT_EQ(fi_cntr_add(counter(), 1), 0); }
  void write_event() {
    const fi_eq_entry entry{};
    EXPECT_GT(fi_eq_write(eq(), FI_NOTIFY, &entry, sizeof entry, 0), 0);
  }
  // Takes whatever news there are.
  void read_all() {
    fi_cq_tagged_entry entries[4];
    while (fi_cq_read(cq(), entries, 4) > 0) {
    }
    fi_cntr_read(counter());
    fi_cntr_readerr(counter());
    fi_eq_entry event{};
    std::uint32_t number = 0;
    while (fi_eq_read(eq(), &number, &event, sizeof event, 0) > 0) {
    }
  }
  void close_members() {
    ep_.reset();
    cq_.reset();
    counter_.reset();
    eq_.reset();
  }

 private:
  void open_queues() {
    fi_cq_attr cq{};
    cq.format = FI_CQ_FORMAT_TAGGED;
    cq.wait_obj = FI_WAIT_SET;
    cq.wait_set = set_.get();
    cq_ = open_fid<fid_cq>([&](fid_cq** out) { return fi_cq_open(domain_.get(), &cq, out, &cq_); });
    fi_cntr_attr cntr{};
    cntr.wait_obj = FI_WAIT_SET;
    cntr.wait_set = set_.get();
    counter_ = open_fid<fid_cntr>(
        [&](fid_cntr** out) { return fi_cntr_open(domain_.get(), &cntr, out, &counter_); });
    fi_eq_attr eq{};
    eq.flags = FI_WRITE;
    eq.wait_obj = FI_WAIT_SET;
    eq.wait_set = set_.get();
    eq_ = open_fid<fid_eq>(
        [&](fid_eq** out) { return fi_eq_open(domain_.fabric(), &eq, out, nullptr); });
  }
  void open_endpoint() {
    fi_av_attr av{};
    av_ = open_fid<fid_av>(
        [&](fid_av** out) { return fi_av_open(domain_.get(), &av, out, nullptr); });
    ep_ = open_fid<fid_ep>(
        [&](fid_ep** out) { return fi_endpoint(domain_.get(), domain_.info(), out, nullptr); });
    ASSERT_EQ(fi_ep_bind(ep_.get(), &av_->fid, 0), 0);
    ASSERT_EQ(fi_ep_bind(ep_.get(), &cq_->fid, FI_TRANSMIT | FI_RECV), 0);
    ASSERT_EQ(fi_enable(ep_.get()), 0);
    Address name;
    name.size = name.bytes.size();
    ASSERT_EQ(fi_getname(&ep_->fid, name.bytes.data(), &name.size), 0);
    ASSERT_EQ(fi_av_insert(av_.get(), name.bytes.data(), 1, &self_, 0, nullptr), 1);
  }

  Domain domain_;
  Fid<fid_wait> set_;
  Fid<fid_cq> cq_;
  Fid<fid_cntr> counter_;
  Fid<fid_eq> eq_;
  Fid<fid_av> av_;
  Fid<fid_ep> ep_;
  fi_addr_t self_ = FI_ADDR_NOTAVAIL;
  char buffer_[8]{};
};

// Every event that must end a wait for the set.
std::vector<std::function<void()>> every_cause(Members& members) {
  return {[&] { members.send_to_self(); }, [&] { members.add_to_counter(); },
          [&] { EXPECT_EQ(fi_cntr_adderr(members.counter(), 1), 0); },
          [&] { members.write_event(); }, [&] { EXPECT_EQ(fi_cq_signal(members.cq()), 0); }};
}

class WaitSet : public testing::TestWithParam<fi_wait_obj> {
 protected:
  WaitSet() : members_(GetParam()) {}
  int wait(int timeout_ms) { return fi_wait(members_.set().get(), timeout_ms); }

  Members members_;
};

TEST_P(WaitSet, WithoutNewsTimesOut) {
  EXPECT_EQ(wait(20), -FI_ETIMEDOUT);
  EXPECT_EQ(wait(0), -FI_ETIMEDOUT);
}

TEST_P(WaitSet, NewsOfAnyMemberAreThereAtOnceUntilTheyAreRead) {
  for (const auto& cause : every_cause(members_)) {
    cause();
    EXPECT_EQ(wait(patience_ms()), 0);
    members_.read_all();
    EXPECT_EQ(wait(20), -FI_ETIMEDOUT);
  }
}

TEST_P(WaitSet, SleeperIsWokenByAnyMember) {
  for (const auto& cause : every_cause(members_)) {
    std::thread other = os::once_asleep(cause);
    EXPECT_EQ(wait(patience_ms()), 0);
    other.join();
    members_.read_all();
  }
}

TEST_P(WaitSet, IsNotClosedBeforeItsMembers) {
  fid_wait* const set = members_.set().get();
  EXPECT_EQ(fi_close(&set->fid), -FI_EBUSY);
  members_.close_members();
  EXPECT_EQ(wait(0), -FI_ETIMEDOUT);
}

TEST_P(WaitSet, KindsOfTheWaitObjectsCanBeAskedFor) {
  fi_wait_obj object = FI_WAIT_NONE;
  EXPECT_EQ(fi_control(&members_.set()->fid, FI_GETWAITOBJ, &object), 0);
  EXPECT_EQ(object, GetParam());
  for (fid* member : {&members_.cq()->fid, &members_.counter()->fid, &members_.eq()->fid}) {
    EXPECT_EQ(fi_control(member, FI_GETWAITOBJ, &object), 0);
    EXPECT_EQ(object, FI_WAIT_SET);
    int fd = -1;
    EXPECT_LT(fi_control(member, FI_GETWAIT, &fd), 0) << "it is the set's";
  }
}

TEST_P(WaitSet, CountersAndEventQueuesOfItDoNotWaitAlone) {
  EXPECT_EQ(fi_cntr_wait(members_.counter(), 1, 10), -FI_EINVAL);
  fi_eq_entry event{};
  std::uint32_t number = 0;
  EXPECT_EQ(fi_eq_sread(members_.eq(), &number, &event, sizeof event, 10, 0), -FI_EINVAL);
}

std::string object_name(const testing::TestParamInfo<fi_wait_obj>& one) {
  return to_string(one.param);
}

INSTANTIATE_TEST_SUITE_P(Sets, WaitSet,
                         testing::Values(FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_POLLFD,
                                         FI_WAIT_MUTEX_COND, FI_WAIT_YIELD),
                         object_name);

class WaitSetNative : public WaitSet {};

TEST_P(WaitSetNative, BlockingEndsWithNewsOfAnyMember) {
  for (const auto& cause : every_cause(members_)) {
    bool caused = false;
    std::thread other = os::once_asleep([&] {
      cause();
      caused = true;
    });
    int blocked = 0;
    while (blocked == 0) {
      blocked = block_on(members_.fabric(), &members_.set()->fid, GetParam(), patience_ms());
    }
    EXPECT_EQ(blocked, -FI_EAGAIN) << "fi_trywait sees what woke us";
    other.join();
    EXPECT_TRUE(caused);
    members_.read_all();
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, WaitSetNative, testing::ValuesIn(kNativeObjects), object_name);

TEST(WaitSetAttributes, ThatMeanNothingAreRefused) {
  const Domain domain{Options{}};
  const auto open = [&](fi_wait_obj object, std::uint64_t flags) {
    fi_wait_attr attr{object, flags};
    fid_wait* set = nullptr;
    const int rc = fi_wait_open(domain.fabric(), &attr, &set);
    if (rc == 0) fi_close(&set->fid);
    return rc;
  };
  EXPECT_LT(open(FI_WAIT_NONE, 0), 0);
  EXPECT_LT(open(FI_WAIT_SET, 0), 0);
  EXPECT_LT(open(static_cast<fi_wait_obj>(7), 0), 0);
  EXPECT_LT(open(FI_WAIT_FD, 1), 0);
  EXPECT_EQ(open(FI_WAIT_FD, 0), 0);
}

TEST(WaitSetAttributes, ASetOfAnotherFabricIsRefused) {
  Members members(FI_WAIT_UNSPEC);
  const Domain other{Options{}};
  fi_cq_attr attr{};
  attr.wait_obj = FI_WAIT_SET;
  attr.wait_set = members.set().get();
  fid_cq* cq = nullptr;
  EXPECT_EQ(fi_cq_open(other.get(), &attr, &cq, nullptr), -FI_EINVAL);
}

// A program's own epoll(7) over objects with a descriptor each.
TEST(OwnLoop, EpollOverAQueueACounterAndAWaitSet) {
  Options options;
  options.wait = FI_WAIT_FD;
  options.counter_wait = FI_WAIT_FD;
  options.counters = FI_RECV;
  World world(Placement::kTwoProcesses, options);
  ASSERT_TRUE(world.ok());
  fid_cq* const cq = world.endpoint().cq();
  fid_cntr* const counter = world.endpoint().counter(FI_RECV);
  std::vector<fid*> fids{&cq->fid, &counter->fid};
  const int loop = epoll_create1(0);
  for (fid* object : fids) {
    int fd = -1;
    ASSERT_EQ(fi_control(object, FI_GETWAIT, &fd), 0);
    epoll_event event{};
    event.events = EPOLLIN;
    ASSERT_EQ(epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event), 0);
  }
  for (std::uint64_t round = 1; round <= 50 && !HasFailure(); ++round) {
    const Token received = world.initiator().post({.kind = Kind::kRecv, .length = 8});
    Request request;
    request.what = Request::What::kPost;
    request.operation = {.kind = Kind::kSend,
                         .length = 8,
                         .peer = world.to_initiator(),
                         .delay_us = static_cast<std::uint32_t>(round * 20)};
    world.remote().start(request);
    fi_cq_tagged_entry entry{};
    while (fi_cq_read(cq, &entry, 1) == -FI_EAGAIN || fi_cntr_read(counter) < round) {
      if (fi_trywait(world.endpoint().domain()->fabric(), fids.data(), 2) != 0) continue;
      epoll_event event{};
      ASSERT_EQ(epoll_wait(loop, &event, 1, patience_ms()), 1) << "round " << round;
    }
    EXPECT_EQ(entry.op_context, world.initiator().context_of(received));
    world.target().wait_success(world.remote().finish().value);
  }
  ::close(loop);
}

class PollSet : public testing::Test {
 protected:
  PollSet() : members_(FI_WAIT_UNSPEC) {
    fi_poll_attr attr{};
    set_ = open_fid<fid_poll>(
        [&](fid_poll** out) { return fi_poll_open(members_.domain().get(), &attr, out); });
  }
  ~PollSet() override {
    fi_poll_del(set_.get(), &members_.cq()->fid, 0);
    fi_poll_del(set_.get(), &members_.counter()->fid, 0);
  }
  int add(fid* object) { return fi_poll_add(set_.get(), object, 0); }
  // The contexts of those with news; waits until there are any when `some`.
  std::vector<void*> poll(bool some = false, int room = 4) {
    void* contexts[4]{};
    const auto end = std::chrono::steady_clock::now() + patience();
    int count = 0;
    do {
      count = fi_poll(set_.get(), contexts, room);
    } while (some && count == 0 && std::chrono::steady_clock::now() < end);
    EXPECT_GE(count, 0);
    return std::vector<void*>(contexts, contexts + std::max(count, 0));
  }
  void* queue_context() { return members_.cq()->fid.context; }
  void* counter_context() { return members_.counter()->fid.context; }

  Members members_;
  Fid<fid_poll> set_;
};

TEST_F(PollSet, NamesAQueueUntilItIsEmpty) {
  ASSERT_EQ(add(&members_.cq()->fid), 0);
  EXPECT_TRUE(poll().empty());
  members_.send_to_self();
  EXPECT_EQ(poll(true), std::vector<void*>{queue_context()});
  EXPECT_EQ(poll(), std::vector<void*>{queue_context()});
  members_.read_all();
  EXPECT_TRUE(poll().empty());
}

TEST_F(PollSet, NamesACounterOnceForEachChange) {
  Options options;
  options.counters = FI_RECV;
  World world(Placement::kSelf, options);
  ASSERT_TRUE(world.ok());
  fid_cntr* const counter = world.endpoint().counter(FI_RECV);
  Fid<fid_poll> set = open_fid<fid_poll>(
      [&](fid_poll** out) { return fi_poll_open(world.endpoint().domain()->get(), nullptr, out); });
  ASSERT_EQ(fi_poll_add(set.get(), &counter->fid, 0), 0);
  void* context = &context;
  EXPECT_EQ(fi_poll(set.get(), &context, 1), 0);
  world.exchange(8);
  EXPECT_EQ(fi_poll(set.get(), &context, 1), 1);
  EXPECT_EQ(context, counter->fid.context);
  EXPECT_EQ(fi_poll(set.get(), &context, 1), 0);
  EXPECT_EQ(fi_cntr_add(counter, 1), 0);
  EXPECT_EQ(fi_cntr_set(counter, 20), 0);
  EXPECT_EQ(fi_poll(set.get(), &context, 1), 0) << "what the program did itself is no news";
  EXPECT_EQ(fi_poll_del(set.get(), &counter->fid, 0), 0);
}

TEST_F(PollSet, GivesNoMoreContextsThanThereIsRoom) {
  ASSERT_EQ(add(&members_.cq()->fid), 0);
  members_.send_to_self();
  EXPECT_EQ(poll(true).size(), 1u);
  EXPECT_TRUE(poll(false, 0).empty());
}

TEST_F(PollSet, MembersComeAndGoOnce) {
  EXPECT_EQ(add(&members_.cq()->fid), 0);
  EXPECT_LT(add(&members_.cq()->fid), 0);
  EXPECT_EQ(fi_close(&set_->fid), -FI_EBUSY);
  EXPECT_EQ(fi_poll_del(set_.get(), &members_.cq()->fid, 0), 0);
  EXPECT_LT(fi_poll_del(set_.get(), &members_.cq()->fid, 0), 0);
}

TEST_F(PollSet, RefusesWhatItCannotPoll) {
  EXPECT_EQ(add(&members_.eq()->fid), -FI_EINVAL);
  EXPECT_EQ(add(nullptr), -FI_EINVAL);
  EXPECT_LT(fi_poll_add(set_.get(), &members_.cq()->fid, 1), 0);
  Domain other{Options{}};
  Fid<fid_cq> foreign = open_fid<fid_cq>(
      [&](fid_cq** out) { return fi_cq_open(other.get(), nullptr, out, nullptr); });
  EXPECT_EQ(add(&foreign->fid), -FI_EINVAL);
  fi_poll_attr attr{1};
  fid_poll* set = nullptr;
  EXPECT_LT(fi_poll_open(other.get(), &attr, &set), 0);
}

}  // namespace
}  // namespace weft::conformance
