// SPDX-License-Identifier: BSD-2-Clause
// Is a full context refused, and nothing lost? (fi_domain(3), resource management: Tx Ctx, Rx Ctx)
// Does the attribute say so?
#include <cstring>
#include <set>
#include <string>

#include "support/delivery.h"
#include "support/resource_test.h"

namespace weft::conformance {
namespace {

// --- Transmit contexts -------------------------------------------------------------------------

// A peer whose queue is full takes no more messages.
class TxContext : public ResourceTest {};

TEST_P(TxContext, AnswersAgainWhenItIsFullAndIsAsLargeAsBeforeOnceItIsEmpty) {
  Options far = roomy();
  far.cq_size = 64;
  ASSERT_NO_FATAL_FAILURE(open(roomy(), far));
  Numbers& sent = sends(GetParam().kind, length());
  Numbers& received = receives(GetParam().kind, length());
  std::size_t capacity = 0;
  for (int round = 0; round < 2 && !HasFailure(); ++round) {
    const std::size_t before = sent.count();
    for (std::size_t i = 0; i < far.cq_size; ++i) received.post();
    EXPECT_FALSE(sent.post_up_to(before + kFlood, [&] {
      read_entries(near_->cq(), kRoomy);
      drive(*far_);
    })) << sent.count();
    const std::size_t held = sent.count() - before;
    EXPECT_GE(held, far.cq_size);
    if (round == 0) capacity = held;
    EXPECT_GE(held, capacity / 4 * 3);
    others_go_on();
    drain(sent, received);
  }
  expect_nothing_twice(received);
}
INSTANTIATE_TEST_SUITE_P(Resources, TxContext,
                         testing::Values(Cell{FI_EP_RDM, Kind::kSend},
                                         Cell{FI_EP_RDM, Kind::kTsend},
                                         Cell{FI_EP_RDM, Kind::kInject},
                                         Cell{FI_EP_MSG, Kind::kSenddata},
                                         Cell{FI_EP_MSG, Kind::kTinject}),
                         ResourceTest::name);

// Operations that the peer does for its program. They may all end at once, or fill the context.
class TxAccesses : public ResourceTest {
 protected:
  static constexpr std::size_t kAll = 4 * kUsual;
  static constexpr std::uint64_t kSeed = 5;

  static bool adds() { return GetParam().kind == Kind::kFetchAtomic; }
  // Adds 1, and fetches how often that was done before.
  Numbers& additions(const Region& region) {
    static const std::uint64_t one = 1;
    return rows_.emplace_back(kWord, Numbers::Buffers::kBlank, [this, region](Numbered& number) {
      return fi_fetch_atomic(near_->ep(), &one, 1, nullptr, number.buffer.data(), nullptr, to_far_,
                             region.base, region.key, FI_UINT64, FI_SUM, number.context());
    });
  }
  void expect_each_once(const Numbers& done, const Region& region) {
    std::set<std::uint64_t> sums;
    for (std::size_t i = 0; i < kAll && !HasFailure(); ++i) {
      if (adds()) {
        std::uint64_t sum = 0;
        std::memcpy(&sum, done[i].buffer.data(), sizeof sum);
        EXPECT_TRUE(sums.insert(sum).second) << sum << " was fetched twice";
      } else if (traits(GetParam().kind).read) {
        EXPECT_EQ(done[i].buffer.check_pattern(kSeed, 0, kWord, i * kWord), "");
      } else {
        beside_far_->expect_region(region, number_seed(i), i * kWord, kWord);
      }
    }
    if (!sums.empty() && !HasFailure()) {
      EXPECT_EQ(*sums.rbegin() - *sums.begin(), kAll - 1);
    }
  }
};

TEST_P(TxAccesses, MoreThanTheContextHoldsEndOnceEach) {
  ASSERT_NO_FATAL_FAILURE(open(roomy(), roomy()));
  const Region region = beside_far_->expose(
      {.length = kAll * kWord, .seed = GetParam().kind == Kind::kRead ? kSeed : 0});
  Numbers& done = adds() ? additions(region) : accesses(GetParam().kind, region);
  done.post_up_to(kAll, [] {});
  others_go_on();
  EXPECT_TRUE(until([&] {
    if (done.count() < kAll) done.post();
    read_entries(near_->cq(), kRoomy);
    return done.ended() == kAll;
  })) << done.ended();
  done.expect_all_ended();
  expect_each_once(done, region);
}
INSTANTIATE_TEST_SUITE_P(Resources, TxAccesses,
                         testing::Values(Cell{FI_EP_RDM, Kind::kWrite},
                                         Cell{FI_EP_RDM, Kind::kRead},
                                         Cell{FI_EP_RDM, Kind::kFetchAtomic},
                                         Cell{FI_EP_MSG, Kind::kWrite},
                                         Cell{FI_EP_MSG, Kind::kAtomic}),
                         ResourceTest::name);

// A datagram has ended before the call returns: its place waits for its completion to be read only.
class TxDgramContext : public ResourceTest {};

TEST_P(TxDgramContext, FillNoContext) {
  ASSERT_NO_FATAL_FAILURE(open(roomy(), roomy()));
  Numbers& sent = sends(GetParam().kind, kWord);
  Numbers& received = receives(GetParam().kind, kWord);
  for (std::size_t i = 0; i < 4 * kContext; ++i) ASSERT_EQ(received.post(), 0);
  while (sent.count() < 4 * kContext) {
    ASSERT_EQ(sent.post(), 0) << sent.count();
    read_entries(near_->cq(), kRoomy);
  }
  others_go_on();
  hear_all(received, sent);
  if (!injects()) sent.expect_all_ended();
  EXPECT_EQ(ends(*near_, FI_SEND), sent.count());
}
INSTANTIATE_TEST_SUITE_P(Resources, TxDgramContext,
                         testing::Values(Cell{FI_EP_DGRAM, Kind::kSenddata},
                                         Cell{FI_EP_DGRAM, Kind::kInjectdata}),
                         ResourceTest::name);

// --- Receive contexts --------------------------------------------------------------------------

class RxContext : public ResourceTest {
 protected:
  // Both kinds of messages in turn, where there are two.
  Numbers& mixed_receives() {
    return rows_.emplace_back(
        kWord, Numbers::Buffers::kBlank, [ep = receiver()](Numbered& one) -> ssize_t {
          std::uint8_t* const bytes = one.buffer.data();
          if (lossy() || one.number % 2 == 0)
            return fi_recv(ep, bytes, kWord, nullptr, FI_ADDR_UNSPEC, one.context());
          return fi_trecv(ep, bytes, kWord, nullptr, FI_ADDR_UNSPEC, 1, 0, one.context());
        });
  }
  Numbers& mixed_sends() {
    return rows_.emplace_back(kWord, Numbers::Buffers::kSources, [this](Numbered& one) -> ssize_t {
      const std::uint8_t* const bytes = one.buffer.data();
      if (lossy() || one.number % 2 == 0) {
        return fi_senddata(near_->ep(), bytes, kWord, nullptr, one.number, to_far_, one.context());
      }
      return fi_tsend(near_->ep(), bytes, kWord, nullptr, to_far_, 1, one.context());
    });
  }
  static void fill(Numbers& received, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(received.post(), 0) << i;
    for (int i = 0; i < 3; ++i) EXPECT_EQ(received.post(), -FI_EAGAIN);
  }
  // One more message, which takes one receive.
  void transfer(Numbers& sent, Numbers& received) {
    const std::size_t before = received.ended();
    const auto send = [&] { EXPECT_TRUE(until([&] { return sent.post() == 0; })); };
    const auto heard = [&](std::chrono::milliseconds limit) {
      const auto ended = [&] {
        read_entries(near_->cq(), 1);
        read_entries(far_->cq(), 1);
        return received.ended() == before + 1;
      };
      return until(ended, lossy() ? limit : patience());
    };
    if (lossy()) {
      EXPECT_TRUE(until_heard(send, heard));
    } else {
      send();
      EXPECT_TRUE(heard(patience()));
    }
  }
};

TEST_P(RxContext, AnswersAgainWhenItIsFullAndTakesOneMoreForEachThatEnds) {
  Options far = roomy();
  far.rx_size = kContext;
  far.cq_size = 1;
  far.shares = GetParam().shares;
  ASSERT_NO_FATAL_FAILURE(open(roomy(), far));
  Numbers& received = mixed_receives();
  Numbers& sent = mixed_sends();
  fill(received, kContext);
  others_go_on();
  for (std::size_t i = 0; i < 2 * kContext && !HasFailure(); ++i) {
    transfer(sent, received);
    received.expect_holds(i, lossy() ? received[i].end.data : i);
    fill(received, 1);
  }
  const std::size_t all = received.count();
  for (std::size_t i = received.ended(); i < all; ++i) {
    EXPECT_EQ(fi_cancel(&receiver()->fid, received[i].context()), 0);
  }
  fill(received, kContext);
  EXPECT_TRUE(until([&] {
    read_entries(far_->cq(), 1);
    return received.ended() == all;
  }));
  EXPECT_EQ(received[all - 1].end.err, FI_ECANCELED);
}
INSTANTIATE_TEST_SUITE_P(Resources, RxContext,
                         testing::Values(Cell{FI_EP_DGRAM, Kind::kSend, 1},
                                         Cell{FI_EP_RDM, Kind::kSend, 1},
                                         Cell{FI_EP_MSG, Kind::kSend, 1},
                                         Cell{FI_EP_DGRAM, Kind::kSend, 1, FI_RECV},
                                         Cell{FI_EP_RDM, Kind::kSend, 1, FI_RECV},
                                         Cell{FI_EP_MSG, Kind::kSend, 1, FI_RECV}),
                         ResourceTest::name);
INSTANTIATE_TEST_SUITE_P(ManagedResources, RxContext, managed(), ResourceTest::name);

// --- The attribute -----------------------------------------------------------------------------

class ManagementAttribute : public ResourceTest {};

TEST_P(ManagementAttribute, IsAnsweredByEnabled) {
  int rc = 0;
  const Options options = roomy();
  const Info info = get_info(options, make_hints(options).get(), &rc);
  ASSERT_NE(info, nullptr) << rc;
  for (const fi_info* one = info.get(); one != nullptr; one = one->next) {
    EXPECT_EQ(one->domain_attr->resource_mgmt, FI_RM_ENABLED);
  }
}
INSTANTIATE_TEST_SUITE_P(Resources, ManagementAttribute, managed(), ResourceTest::name);

}  // namespace
}  // namespace weft::conformance
