// SPDX-License-Identifier: BSD-2-Clause
// Do messages of one sender match in the order in which they were sent? (FI_ORDER_SAS)
#include <vector>

#include "support/placements.h"

namespace weft::conformance {
namespace {

constexpr std::size_t kLargest = 300000;
// Small next to large: a large message must not be overtaken by a small one, nor the reverse.
constexpr std::size_t kSizes[] = {1, 70000, 0, 64, 4096, 8, 4097, kLargest, 40, 16385, 9000};
constexpr std::size_t kMessages = 220;
constexpr std::uint64_t kTag = 11;

class Ordering : public testing::TestWithParam<std::tuple<Placement, bool>> {
 protected:
  Ordering() : world_(std::get<0>(GetParam()), Options{}) {}
  bool tagged() const { return std::get<1>(GetParam()); }

  std::size_t size(std::size_t i) const { return kSizes[i % std::size(kSizes)]; }

  void post_receives(std::size_t length) {
    for (std::size_t i = 0; i < kMessages && !HasFailure(); ++i) {
      received_.push_back(world_.target().post({.kind = tagged() ? Kind::kTrecv : Kind::kRecv,
                                                .length = std::max(length, size(i)),
                                                .tag = kTag}));
    }
  }
  void post_sends() {
    for (std::size_t i = 0; i < kMessages && !HasFailure(); ++i) {
      sent_.push_back(world_.initiator().post({.kind = tagged() ? Kind::kTsend : Kind::kSend,
                                               .length = size(i),
                                               .seed = i + 1,
                                               .peer = world_.to_target(),
                                               .tag = kTag}));
    }
  }
  void expect_in_order() {
    for (std::size_t i = 0; i < kMessages && !HasFailure(); ++i) {
      SCOPED_TRACE(i);
      EXPECT_EQ(world_.target().wait_success(received_[i]).length, size(i));
      world_.target().expect_data(received_[i], i + 1, size(i));
      world_.initiator().wait_success(sent_[i]);
    }
  }

  World world_;
  std::vector<Token> received_;
  std::vector<Token> sent_;
};

TEST_P(Ordering, NthPostedReceiveGetsNthMessage) {
  ASSERT_TRUE(world_.ok());
  post_receives(kLargest);
  post_sends();
  expect_in_order();
}

TEST_P(Ordering, NthLateReceiveGetsNthMessage) {
  ASSERT_TRUE(world_.ok());
  post_sends();
  world_.target().leftovers();
  post_receives(0);  // Exactly as long as the message that must come.
  expect_in_order();
}

INSTANTIATE_TEST_SUITE_P(Order, Ordering, testing::Combine(every_placement(), testing::Bool()),
                         [](const testing::TestParamInfo<std::tuple<Placement, bool>>& one) {
                           return std::string(to_string(std::get<0>(one.param))) +
                                  (std::get<1>(one.param) ? "_Tagged" : "_Plain");
                         });

// A removed address may be inserted again, in the same or another place of the address vector: the
// messages before it and behind it are those of one pair of endpoints.
class Reinsertion : public PlacementTest {};

TEST_P(Reinsertion, MessagesKeepTheirOrderThoughThePeerIsRemovedAndInsertedBetween) {
  World world(GetParam(), Options{});
  ASSERT_TRUE(world.ok());
  constexpr std::uint64_t kSends = 200;
  const Address name = world.target().name();
  fi_addr_t peer = world.to_target();
  std::vector<Token> received;
  for (std::uint64_t i = 0; i < kSends; ++i)
    received.push_back(world.target().post({.kind = Kind::kRecv, .length = 16}));
  for (std::uint64_t i = 0; i < kSends && !HasFailure(); ++i) {
    world.initiator().wait_success(
        world.initiator().post({.kind = Kind::kSend, .length = 16, .seed = i + 1, .peer = peer}));
    ASSERT_EQ(fi_av_remove(world.endpoint().av(), &peer, 1, 0), 0);
    peer = world.endpoint().insert(name);
  }
  for (std::uint64_t i = 0; i < kSends && !HasFailure(); ++i) {
    SCOPED_TRACE(i);
    world.target().wait_success(received[i]);
    world.target().expect_data(received[i], i + 1, 16);
  }
}

INSTANTIATE_TEST_SUITE_P(Order, Reinsertion,
                         testing::Values(Placement::kTwoProcesses, Placement::kOneProcess,
                                         Placement::kTwoDomains),
                         placement_name);

class MixedOrdering : public PlacementTest {};

// The write is complete at the target when the later message is received (FI_ORDER_SAW), and of
// two writes to the same place the later one stays (FI_ORDER_WAW).
TEST_P(MixedOrdering, MessageArrivesAfterTheWritesBeforeIt) {
  World world(GetParam(), Options{});
  ASSERT_TRUE(world.ok());
  for (const std::size_t length : {std::size_t{8}, std::size_t{5000}, std::size_t{400000}}) {
    SCOPED_TRACE(length);
    const Region region = world.target().expose({.length = length});
    std::vector<Token> writes;
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      writes.push_back(world.initiator().post({.kind = Kind::kWrite,
                                               .length = length,
                                               .seed = seed,
                                               .peer = world.to_target(),
                                               .remote_address = region.base,
                                               .key = region.key}));
    }
    world.exchange();
    world.target().expect_region(region, 4, 0, length);
    for (const Token write : writes) world.initiator().wait_success(write);
    EXPECT_EQ(world.target().close_region(region), 0);
  }
}

TEST_P(MixedOrdering, ReadSeesTheWriteBeforeIt) {
  World world(GetParam(), Options{});
  ASSERT_TRUE(world.ok());
  for (const std::size_t length : {std::size_t{8}, std::size_t{5000}, std::size_t{400000}}) {
    SCOPED_TRACE(length);
    const Region region = world.target().expose({.length = length});
    const auto rma = [&](Kind kind) {
      return world.initiator().post({.kind = kind,
                                     .length = length,
                                     .seed = 6,
                                     .peer = world.to_target(),
                                     .remote_address = region.base,
                                     .key = region.key});
    };
    const Token write = rma(Kind::kWrite);
    const Token read = rma(Kind::kRead);
    world.initiator().wait_success(write);
    world.initiator().wait_success(read);
    world.initiator().expect_data(read, 6, length);
    EXPECT_EQ(world.target().close_region(region), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Order, MixedOrdering, every_placement(), placement_name);

}  // namespace
}  // namespace weft::conformance
