// SPDX-License-Identifier: BSD-2-Clause
// Does no completion queue overrun, and is no entry lost? (fi_domain(3), resource management: Tx
// CQ, Rx CQ)
#include "support/delivery.h"
#include "support/resource_test.h"

namespace weft::conformance {
namespace {

// --- Completion queues of transmit contexts ----------------------------------------------------

class TxQueue : public ResourceTest {
 protected:
  // The peer takes all there is, with receives posted ahead.
  void far_goes_on(Numbers* received, std::size_t sent) {
    if (received == nullptr) return drive(*far_);
    while (received->count() < sent + kContext) received->post();
    read_entries(far_->cq(), kRoomy);
  }
  void expect_arrived(const Numbers& received, std::size_t sent) {
    if (lossy()) return;
    EXPECT_EQ(received.ended(), sent);
    for (std::size_t i = 0; i < sent && !HasFailure(); ++i) received.expect_holds(i, i);
  }
};

TEST_P(TxQueue, HoldsPostsBackWhileItIsFullAndLosesNoEntry) {
  Options near = roomy();
  near.cq_size = queue();
  near.tx_size = queue() + kFlood;
  ASSERT_NO_FATAL_FAILURE(open(near, roomy()));
  Numbers* received = is_access() ? nullptr : &receives(GetParam().kind, kWord);
  const std::size_t most = queue() + kFlood;
  Region region;
  if (is_access()) region = beside_far_->expose({.length = 2 * most * kWord, .seed = 5});
  Numbers& done = is_access() ? accesses(GetParam().kind, region) : sends(GetParam().kind, kWord);
  EXPECT_FALSE(done.post_up_to(most, [&] {
    drive(*near_);
    far_goes_on(received, done.count());
  }));
  const std::size_t held = done.count();
  EXPECT_GE(held, queue());
  std::uint8_t byte = 0;
  EXPECT_EQ(fi_inject(near_->ep(), &byte, 1, to_far_), -FI_EAGAIN);
  others_go_on();
  EXPECT_TRUE(until([&] {
    read_entries(near_->cq(), 1);
    if (done.count() < held + 2 * queue()) done.post();
    far_goes_on(received, done.count());
    const bool there = lossy() || received == nullptr || received->ended() == done.count();
    return there && done.ended() == held + 2 * queue();
  })) << done.ended()
      << " of " << done.count();
  done.expect_all_ended();
  if (received != nullptr) expect_arrived(*received, done.count());
}
INSTANTIATE_TEST_SUITE_P(
    Resources, TxQueue,
    testing::Values(Cell{FI_EP_RDM, Kind::kSend, 1}, Cell{FI_EP_RDM, Kind::kTsend, 2},
                    Cell{FI_EP_RDM, Kind::kSend, 1024}, Cell{FI_EP_RDM, Kind::kWrite, 1},
                    Cell{FI_EP_RDM, Kind::kRead, 2}, Cell{FI_EP_RDM, Kind::kFetchAtomic, 2},
                    Cell{FI_EP_MSG, Kind::kSend, 1}, Cell{FI_EP_MSG, Kind::kTsend, 2},
                    Cell{FI_EP_MSG, Kind::kSend, 1024}, Cell{FI_EP_MSG, Kind::kWrite, 2},
                    Cell{FI_EP_MSG, Kind::kAtomic, 1}, Cell{FI_EP_DGRAM, Kind::kSend, 1},
                    Cell{FI_EP_DGRAM, Kind::kSend, 2}, Cell{FI_EP_DGRAM, Kind::kSend, 1024}),
    ResourceTest::name);
INSTANTIATE_TEST_SUITE_P(ManagedResources, TxQueue, managed(), ResourceTest::name);

// Two endpoints report to one queue.
class SharedTxQueue : public TwoResourcesTest {};

TEST_P(SharedTxQueue, HoldsBackAllThatReportToIt) {
  Options near = roomy();
  near.cq_size = queue();
  ASSERT_NO_FATAL_FAILURE(open(near, roomy()));
  ASSERT_NO_FATAL_FAILURE(open_second(near, near_->cq(), roomy()));
  Numbers& sent = sends(Kind::kSenddata, kWord);
  Numbers& received = receives(Kind::kSenddata, kWord);
  Numbers& other_sent = other_sends();
  Numbers& other_received = other_receives();
  const std::size_t all = queue() + 2 * kContext;
  for (std::size_t i = 0; i < all; ++i) {
    ASSERT_EQ(received.post(), 0);
    ASSERT_EQ(other_received.post(), 0);
  }
  // All that ends stays in the queue.
  const auto brim = [&] {
    drive(*near_);
    drive(*other_near_);
    read_entries(far_->cq(), kRoomy);
    read_entries(other_far_->cq(), kRoomy);
    return ends(*near_, FI_SEND) - warmed() + ends(*other_near_, FI_SEND) >= queue();
  };
  EXPECT_TRUE(until([&] {
    if (sent.count() < queue()) sent.post();
    return brim();
  }));
  EXPECT_EQ(sent.count(), queue());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(other_sent.post(), -FI_EAGAIN);
  EXPECT_EQ(sent.post(), -FI_EAGAIN);
  others_go_on();
  EXPECT_TRUE(until([&] {
    if (other_sent.count() < all) other_sent.post();
    if (sent.count() < all) sent.post();
    read_entries(near_->cq(), 1);
    brim();
    const bool arrived = received.ended() == all && other_received.ended() == all;
    return sent.ended() == all && other_sent.ended() == all && (arrived || may_lose());
  })) << sent.ended()
      << " and " << other_sent.ended();
  expect_datagrams(received, all);
  expect_datagrams(other_received, all);
}
INSTANTIATE_TEST_SUITE_P(Resources, SharedTxQueue,
                         testing::Values(Cell{FI_EP_DGRAM}, Cell{FI_EP_RDM}, Cell{FI_EP_MSG}),
                         ResourceTest::name);

// --- Completion queues of receive contexts -----------------------------------------------------

class RxQueue : public ResourceTest {
 protected:
  Numbers* receives_ahead(std::size_t count) {
    if (is_access()) return nullptr;
    Numbers& received = receives(GetParam().kind, length());
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(received.post(), 0);
    return &received;
  }
  // A queue of few entries takes a message for each wait of its sender (RNR): a flood would take
  // long.
  static std::size_t beyond() { return queue() < kUsual ? 4 * kContext : kFlood; }
  // More than the queue holds, which is not read.
  bool flood(Numbers& sent) {
    const bool all = sent.post_up_to(queue() + beyond(), [&] {
      read_entries(near_->cq(), kRoomy);
      drive(*far_);
    });
    EXPECT_TRUE(until([&] {
      read_entries(near_->cq(), kRoomy);
      return is_access() || ends(*far_, FI_RECV) >= queue() + warmed();
    }));
    for (int i = 0; i < 1000; ++i) drive(*far_);
    return all;
  }
  // Data of remote writes come in order, and no receive takes part.
  void drain_data(Numbers& written) {
    std::size_t heard = 0;
    EXPECT_TRUE(until([&] {
      for (const Completion& one : read_entries(far_->cq(), 1)) {
        EXPECT_EQ(one.flags & FI_REMOTE_CQ_DATA, FI_REMOTE_CQ_DATA);
        EXPECT_EQ(one.data, heard++);
      }
      read_entries(near_->cq(), kRoomy);
      return heard >= written.count() && written.ended() == written.count();
    })) << heard
        << " of " << written.count();
    EXPECT_EQ(heard, written.count());
    written.expect_all_ended();
  }
};

TEST_P(RxQueue, HoldsSendersBackWhileItIsFullAndLosesNoEntry) {
  Options far = roomy();
  far.cq_size = queue();
  far.shares = GetParam().shares;
  ASSERT_NO_FATAL_FAILURE(open(roomy(), far));
  Numbers* const received = receives_ahead(queue() + kContext);
  Region region;
  if (is_access()) region = beside_far_->expose({.length = (queue() + kFlood) * kWord});
  Numbers& sent =
      is_access() ? accesses(GetParam().kind, region) : sends(GetParam().kind, length());
  const bool all_taken = flood(sent);
  EXPECT_TRUE(!all_taken || queue() < kUsual) << sent.count();
  EXPECT_GT(sent.count(), queue());
  others_go_on();
  if (received == nullptr) return drain_data(sent);
  EXPECT_EQ(ends(*far_, FI_RECV), queue() + warmed());
  drain(sent, *received);
  expect_nothing_twice(*received);
}
INSTANTIATE_TEST_SUITE_P(
    Resources, RxQueue,
    testing::Values(Cell{FI_EP_RDM, Kind::kSenddata, 1}, Cell{FI_EP_RDM, Kind::kTsend, 2},
                    Cell{FI_EP_RDM, Kind::kInject, 1024}, Cell{FI_EP_RDM, Kind::kWritedata, 2},
                    Cell{FI_EP_RDM, Kind::kSend, 2, FI_RECV}, Cell{FI_EP_MSG, Kind::kSend, 1},
                    Cell{FI_EP_MSG, Kind::kTinject, 2}, Cell{FI_EP_MSG, Kind::kTsend, 1024},
                    Cell{FI_EP_MSG, Kind::kWritedata, 1}, Cell{FI_EP_MSG, Kind::kSend, 1, FI_RECV}),
    ResourceTest::name);

// Datagrams that find the queue full are lost, and no others.
class RxDgramQueue : public RxQueue {};

TEST_P(RxDgramQueue, TakesAsManyAsItHoldsAndGoesOnWhenItIsRead) {
  Options far = roomy();
  far.cq_size = queue();
  far.shares = GetParam().shares;
  ASSERT_NO_FATAL_FAILURE(open(roomy(), far));
  Numbers& received = *receives_ahead(queue() + kContext);
  Numbers& sent = sends(GetParam().kind, length());
  EXPECT_TRUE(flood(sent)) << sent.count();
  others_go_on();
  while (!read_entries(far_->cq(), 1).empty()) continue;
  if (!may_lose()) {
    EXPECT_EQ(received.ended(), queue());
  }
  hear_another(sent, received);
}
INSTANTIATE_TEST_SUITE_P(Resources, RxDgramQueue,
                         testing::Values(Cell{FI_EP_DGRAM, Kind::kSenddata, 1},
                                         Cell{FI_EP_DGRAM, Kind::kInjectdata, 2},
                                         Cell{FI_EP_DGRAM, Kind::kSenddata, 1024},
                                         Cell{FI_EP_DGRAM, Kind::kSenddata, 2, FI_RECV}),
                         ResourceTest::name);

// A full queue holds back what is for its endpoint, not what takes receives of the same context for
// another one.
class SharedRxContext : public TwoResourcesTest {};

TEST_P(SharedRxContext, ServesOneEndpointWhileTheQueueOfAnotherIsFull) {
  Options far = roomy();
  far.cq_size = queue();
  far.shares = FI_RECV;
  ASSERT_NO_FATAL_FAILURE(open(roomy(), far));
  Options other = far;
  other.cq_size = kRoomy;
  ASSERT_NO_FATAL_FAILURE(open_second(roomy(), nullptr, other));
  Numbers& received =
      rows_.emplace_back(receiver(), Operation{.kind = Kind::kRecv, .length = kWord});
  for (std::size_t i = 0; i < 8 * kContext; ++i) ASSERT_EQ(received.post(), 0);
  Numbers& sent = sends(Kind::kSenddata, kWord);
  Numbers& other_sent = other_sends();
  const auto go_on = [&] {
    read_entries(near_->cq(), kRoomy);
    read_entries(other_near_->cq(), kRoomy);
    drive(*far_);
  };
  EXPECT_TRUE(sent.post_up_to(kContext, go_on));
  EXPECT_TRUE(until([&] { return go_on(), ends(*far_, FI_RECV) - warmed() >= queue(); }));
  std::size_t others = 0;
  EXPECT_TRUE(until([&] {
    go_on();
    if (other_sent.count() < kContext || (may_lose() && lossy())) other_sent.post();
    others += read_entries(other_far_->cq(), kRoomy).size();
    return others >= kContext;
  })) << others;
  EXPECT_EQ(received.ended(), others);
  std::size_t own = 0;
  EXPECT_TRUE(until([&] {
    go_on();
    own += read_entries(far_->cq(), 1).size();
    return own >= (lossy() ? queue() : kContext);
  })) << own;
}
INSTANTIATE_TEST_SUITE_P(Resources, SharedRxContext,
                         testing::Values(Cell{FI_EP_DGRAM}, Cell{FI_EP_RDM}, Cell{FI_EP_MSG}),
                         ResourceTest::name);

// --- Counters instead of queues, and selective completions -------------------------------------

class CountersAlone : public ResourceTest {};

TEST_P(CountersAlone, HaveNoLimitAndMissNothing) {
  Options only = roomy();
  only.queueless = true;
  ASSERT_NO_FATAL_FAILURE(open(only, only));
  constexpr std::size_t kAll = 2 * kUsual;
  Numbers& sent = sends(GetParam().kind, kWord);
  Numbers& received = receives(GetParam().kind, kWord);
  for (std::size_t i = 0; i < kAll; ++i) ASSERT_EQ(received.post(), 0);
  const auto both = [&] {
    drive(*near_);
    drive(*far_);
  };
  EXPECT_TRUE(sent.post_up_to(kAll, both)) << sent.count();
  others_go_on();
  EXPECT_TRUE(until([&] {
    both();
    return ends(*near_, FI_SEND) >= kAll + warmed() &&
           (ends(*far_, FI_RECV) >= kAll + warmed() || (lossy() && may_lose()));
  }));
  for (int i = 0; i < 200; ++i) both();
  EXPECT_EQ(ends(*near_, FI_SEND), kAll + warmed());
  EXPECT_LE(ends(*far_, FI_RECV), kAll + warmed());
  if (!lossy()) received.expect_in_order();
}
INSTANTIATE_TEST_SUITE_P(Resources, CountersAlone,
                         testing::Values(Cell{FI_EP_DGRAM}, Cell{FI_EP_RDM},
                                         Cell{FI_EP_RDM, Kind::kTinject}, Cell{FI_EP_MSG},
                                         Cell{FI_EP_MSG, Kind::kTsend}),
                         ResourceTest::name);

class SelectiveQueue : public ResourceTest {
 protected:
  static Options selective() {
    Options selective = roomy();
    selective.cq_flags = FI_SELECTIVE_COMPLETION;
    selective.cq_size = queue();
    return selective;
  }
  Numbers& asking(fid_ep* ep, Kind kind) {
    return rows_.emplace_back(ep,
                              Operation{.kind = kind,
                                        .length = kWord,
                                        .peer = kind == Kind::kRecvmsg ? FI_ADDR_UNSPEC : to_far_,
                                        .flags = FI_COMPLETION});
  }
  void go_on() {
    drive(*near_);
    drive(*far_);
  }
};

TEST_P(SelectiveQueue, IsFilledByOperationsThatAskForAnEntryOnly) {
  ASSERT_NO_FATAL_FAILURE(open(selective(), selective()));
  Numbers& silent = sends(Kind::kSend, kWord);
  Numbers& received =
      rows_.emplace_back(receiver(), Operation{.kind = Kind::kRecv, .length = kWord});
  constexpr std::size_t kAll = 8 * kContext;
  for (std::size_t i = 0; i < kAll; ++i) ASSERT_EQ(received.post(), 0);
  EXPECT_TRUE(silent.post_up_to(kAll, [&] { go_on(); })) << silent.count();
  EXPECT_TRUE(until([&] {
    go_on();
    return ends(*near_, FI_SEND) == kAll + warmed() && ends(*far_, FI_RECV) == kAll + warmed();
  }));
  received.expect_in_order();
  Numbers& asking_receives = asking(receiver(), Kind::kRecvmsg);
  for (std::size_t i = 0; i < kAll; ++i) ASSERT_EQ(asking_receives.post(), 0);
  Numbers& asking_sends = asking(near_->ep(), Kind::kSendmsg);
  EXPECT_FALSE(asking_sends.post_up_to(queue() + 4096, [&] { go_on(); })) << asking_sends.count();
  EXPECT_GE(asking_sends.count(), queue());
  EXPECT_EQ(silent.post(), -FI_EAGAIN);
  others_go_on();
  const std::size_t all = asking_sends.count() + 4;
  EXPECT_TRUE(until([&] {
    if (asking_sends.count() < all) asking_sends.post();
    if (asking_receives.count() < all) asking_receives.post();
    read_entries(near_->cq(), 1);
    read_entries(far_->cq(), 1);
    return asking_sends.ended() == all && asking_receives.ended() == all;
  })) << asking_sends.ended()
      << " and " << asking_receives.ended() << " of " << all;
  for (std::size_t i = 0; i < all && !HasFailure(); ++i) asking_receives.expect_holds(i, i);
}
INSTANTIATE_TEST_SUITE_P(Resources, SelectiveQueue,
                         testing::Values(Cell{FI_EP_RDM}, Cell{FI_EP_MSG}), ResourceTest::name);

}  // namespace
}  // namespace weft::conformance
