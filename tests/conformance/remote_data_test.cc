// SPDX-License-Identifier: BSD-2-Clause
// How does a target learn of writes that carry remote CQ data? (fi_rma(3), fi_cq(3))
#include <algorithm>
#include <vector>

#include "support/placements.h"

namespace weft::conformance {
namespace {

class RemoteData : public PlacementTest {
 protected:
  RemoteData() : world_(GetParam(), Options{}) {}

  Token write(const Region& region, std::size_t length, std::uint64_t data, std::uint64_t offset) {
    return world_.initiator().post({.kind = Kind::kWritedata,
                                    .length = length,
                                    .seed = data,
                                    .peer = world_.to_target(),
                                    .data = data,
                                    .remote_address = region.base + offset,
                                    .key = region.key});
  }

  World world_;
};

TEST_P(RemoteData, ReportedDataIsAlreadyThere) {
  ASSERT_TRUE(world_.ok());
  const Region region = world_.target().expose({.length = 1 << 20});
  for (const std::size_t length : {1u, 64u, 5000u, 1u << 20}) {
    const Token token = write(region, length, length + 3, 0);
    const Completion c = world_.target().wait_success(kNoToken);
    EXPECT_EQ(c.data, length + 3);
    world_.target().expect_region(region, length + 3, 0, length);
    world_.initiator().wait_success(token);
  }
}

TEST_P(RemoteData, EmptyWriteDeliversItsDataOnly) {
  ASSERT_TRUE(world_.ok());
  const Region region = world_.target().expose({.length = 64});
  for (const std::uint64_t offset : {0u, 10u, 64u}) {
    const Token token = write(region, 0, 0xFEED + offset, offset);
    EXPECT_EQ(world_.target().wait_success(kNoToken).data, 0xFEED + offset);
    world_.initiator().wait_success(token);
  }
  world_.target().expect_region_blank(region, 0, 64);
}

TEST_P(RemoteData, AllBitsOfTheDataArrive) {
  ASSERT_TRUE(world_.ok());
  const Region region = world_.target().expose({.length = 64});
  for (const std::uint64_t data : {std::uint64_t{0}, ~std::uint64_t{0}, std::uint64_t{1} << 63}) {
    const Token token = write(region, 8, data, 0);
    EXPECT_EQ(world_.target().wait_success(kNoToken).data, data);
    world_.initiator().wait_success(token);
  }
}

TEST_P(RemoteData, HundredsAreAllReportedOnce) {
  ASSERT_TRUE(world_.ok());
  constexpr std::uint64_t kWrites = 500;
  const Region region = world_.target().expose({.length = 8 * kWrites});
  std::vector<Token> tokens;
  for (std::uint64_t i = 0; i < kWrites; ++i) tokens.push_back(write(region, 8, i, 8 * i));
  std::vector<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < kWrites && !HasFailure(); ++i) {
    seen.push_back(world_.target().wait_success(kNoToken).data);
  }
  std::sort(seen.begin(), seen.end());
  for (std::uint64_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], i);
  for (const Token token : tokens) world_.initiator().wait_success(token);
  EXPECT_EQ(world_.target().leftovers(), 0u);
}

TEST_P(RemoteData, UsesUpNoReceive) {
  ASSERT_TRUE(world_.ok());
  const Region region = world_.target().expose({.length = 64});
  const Token posted = world_.target().post({.kind = Kind::kRecv, .length = 16});
  const Token token = write(region, 8, 9, 0);
  EXPECT_EQ(world_.target().wait_success(kNoToken).data, 9u);
  world_.initiator().wait_success(token);
  EXPECT_EQ(world_.target().cancel(posted), 0);
  world_.target().wait_error(posted, FI_ECANCELED);
}

INSTANTIATE_TEST_SUITE_P(RemoteAccess, RemoteData, every_placement(), placement_name);

class Fence : public PlacementTest {
 protected:
  Fence() : world_(GetParam(), options()) {}
  static Options options() {
    Options options;
    options.caps |= FI_FENCE;
    options.order = 0;  // What the fence promises must not come from the order of operations.
    return options;
  }

  World world_;
};

// The fenced write comes after all the writes before it, and its completion covers them.
TEST_P(Fence, FencedWriteSeesEverythingBeforeItDone) {
  ASSERT_TRUE(world_.ok());
  constexpr std::size_t kLength = 200000;
  const Region region = world_.target().expose({.length = 2 * kLength});
  const auto rma = [&](std::size_t length, std::uint64_t seed, std::uint64_t at,
                       std::uint64_t flags) {
    return world_.initiator().post({.kind = Kind::kWritemsg,
                                    .length = length,
                                    .seed = seed,
                                    .peer = world_.to_target(),
                                    .flags = flags,
                                    .remote_address = region.base + at,
                                    .key = region.key});
  };
  for (std::uint64_t round = 1; round <= 10; ++round) {
    const Token large = rma(kLength, round, 0, FI_INJECT_COMPLETE);
    const Token other = rma(kLength, round + 50, kLength, FI_INJECT_COMPLETE);
    const Token fenced = rma(64, round + 100, 0, FI_FENCE | FI_DELIVERY_COMPLETE);
    world_.initiator().wait_success(fenced);
    world_.target().expect_region(region, round + 100, 0, 64);
    world_.target().expect_region(region, round + 50, kLength, kLength);
    world_.initiator().wait_success(large);
    world_.initiator().wait_success(other);
  }
}

TEST_P(Fence, FencedReadSeesTheWriteBeforeIt) {
  ASSERT_TRUE(world_.ok());
  const Region region = world_.target().expose({.length = 200000});
  for (const std::size_t length : {8u, 200000u}) {
    const auto rma = [&](Kind kind, std::uint64_t flags) {
      return world_.initiator().post({.kind = kind,
                                      .length = length,
                                      .seed = length,
                                      .peer = world_.to_target(),
                                      .flags = flags,
                                      .remote_address = region.base,
                                      .key = region.key});
    };
    const Token write = rma(Kind::kWritemsg, 0);
    const Token read = rma(Kind::kReadmsg, FI_FENCE);
    world_.initiator().wait_success(read);
    world_.initiator().expect_data(read, length, length);
    world_.initiator().wait_success(write);
  }
}

TEST_P(Fence, FencedMessageAnnouncesTheWriteBeforeIt) {
  ASSERT_TRUE(world_.ok());
  const Region region = world_.target().expose({.length = 200000});
  const Token received = world_.target().post({.kind = Kind::kRecv, .length = 8});
  const Token write = world_.initiator().post({.kind = Kind::kWrite,
                                               .length = 200000,
                                               .seed = 3,
                                               .peer = world_.to_target(),
                                               .remote_address = region.base,
                                               .key = region.key});
  const Token sent = world_.initiator().post({.kind = Kind::kSendmsg,
                                              .length = 8,
                                              .seed = 4,
                                              .peer = world_.to_target(),
                                              .flags = FI_FENCE | FI_DELIVERY_COMPLETE});
  world_.target().wait_success(received);
  world_.target().expect_region(region, 3, 0, 200000);
  world_.initiator().wait_success(write);
  world_.initiator().wait_success(sent);
}

INSTANTIATE_TEST_SUITE_P(RemoteAccess, Fence, both_process_counts(), placement_name);

}  // namespace
}  // namespace weft::conformance
