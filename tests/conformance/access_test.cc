// SPDX-License-Identifier: BSD-2-Clause
// Is every remote access that its target did not grant refused, without a byte moved? (fi_mr(3))
#include <tuple>
#include <vector>

#include "support/level.h"

namespace weft::conformance {
namespace {

constexpr std::size_t kRegion = 300000;
constexpr std::uint64_t kContents = 21;  // Seed of the region's pattern.

class Access : public testing::TestWithParam<TransferCase> {
 protected:
  // With both contracts: offsets between processes, virtual addresses within one.
  static Options options() {
    const auto& [kind, level, placement] = GetParam();
    Options options;
    if (!traits(kind).message) options.tx_flags = level.flag;
    if (placement != Placement::kTwoProcesses) {
      options.mr_mode = FI_MR_BASIC;
    }
    return options;
  }

  Access() : kind_(std::get<0>(GetParam())), world_(std::get<2>(GetParam()), options()) {
    if (!world_.ok()) return;
    region_ = world_.target().expose({.length = kRegion, .seed = kContents});
    const std::size_t inject = world_.endpoint().info()->tx_attr->inject_size;
    lengths_ = traits(kind_).inject ? std::vector<std::size_t>{1, std::min<std::size_t>(64, inject)}
                                    : std::vector<std::size_t>{1, 64, 5000, 200000};
  }

  Operation operation(std::size_t length, const Region& region, std::uint64_t address) {
    Operation o;
    o.kind = kind_;
    o.length = length;
    o.seed = 99;
    o.peer = world_.to_target();
    o.data = 5;
    if (traits(kind_).message) o.flags = std::get<1>(GetParam()).flag;
    o.remote_address = address;
    o.key = region.key;
    return o;
  }

  // An injected operation has no context of its own to be found by, and may be refused by the call
  // itself; either way the refusal is told once.
  void await_error(const Posted& posted) {
    if (traits(kind_).inject && posted.rc == -FI_EACCES) return;
    ASSERT_EQ(posted.rc, 0) << fi_strerror(static_cast<int>(-posted.rc));
    std::optional<Completion> c;
    const auto found = [&] { return (c = world_.endpoint().take_error()).has_value(); };
    ASSERT_TRUE(world_.pump().until(found)) << "no error completion";
    EXPECT_EQ(c->err, FI_EACCES) << fi_strerror(c->err);
    const std::uint64_t way = traits(kind_).read ? FI_READ : FI_WRITE;
    EXPECT_EQ(c->flags & (FI_RMA | way), FI_RMA | way) << fi_tostr(&c->flags, FI_TYPE_CAPS);
    if (!traits(kind_).inject) {
      EXPECT_EQ(c->context, world_.initiator().context_of(posted.token));
    }
  }

  void expect_refused(const Operation& o) {
    if (HasFailure()) return;  // One broken refusal says enough, and may have killed the peer.
    SCOPED_TRACE(testing::Message() << o.length << " bytes");
    const Posted posted = world_.initiator().try_post(o);
    await_error(posted);
    if (traits(kind_).read) world_.initiator().expect_data(posted.token, 0, 0);
    world_.exchange();  // The endpoint goes on, and whatever was to arrive has arrived.
    world_.target().expect_region(region_, kContents, 0, kRegion);
    EXPECT_EQ(world_.initiator().leftovers() + world_.target().leftovers(), 0u);
  }

  // After the refusals the same endpoint does the same thing rightly.
  void expect_still_granted() {
    if (HasFailure()) return;
    const std::size_t length = lengths_.back();
    const Token token = world_.initiator().post(operation(length, region_, region_.base));
    if (!traits(kind_).inject) world_.initiator().wait_success(token);
    if (traits(kind_).data) world_.target().wait_success(kNoToken);
    world_.exchange();
    if (traits(kind_).read) {
      world_.initiator().expect_data(token, kContents, length);
    } else {
      world_.target().expect_region(region_, 99, 0, length);
    }
  }

  const Kind kind_;
  World world_;
  Region region_;
  std::vector<std::size_t> lengths_;
};

TEST_P(Access, UnknownKey) {
  ASSERT_TRUE(world_.ok());
  Region wrong = region_;
  for (const std::uint64_t key : {region_.key + 0x10000, ~std::uint64_t{0}, ~region_.key}) {
    wrong.key = key;
    for (const std::size_t length : lengths_) expect_refused(operation(length, wrong, wrong.base));
  }
  expect_still_granted();
}

TEST_P(Access, OneByteBehindTheEnd) {
  ASSERT_TRUE(world_.ok());
  for (const std::size_t length : lengths_) {
    expect_refused(operation(length, region_, region_.base + kRegion - length + 1));
  }
  expect_still_granted();
}

TEST_P(Access, WhollyBehindTheEnd) {
  ASSERT_TRUE(world_.ok());
  for (const std::size_t length : lengths_) {
    expect_refused(operation(length, region_, region_.base + kRegion));
    expect_refused(operation(length, region_, region_.base + (std::uint64_t{1} << 40)));
  }
  expect_still_granted();
}

TEST_P(Access, OneByteBeforeTheStart) {
  ASSERT_TRUE(world_.ok());
  for (const std::size_t length : lengths_) {
    expect_refused(operation(length, region_, region_.base - 1));
  }
  expect_still_granted();
}

// Address plus length is beyond 2^64, so that a careless sum lands inside the region again.
TEST_P(Access, RangeThatWrapsAround) {
  ASSERT_TRUE(world_.ok());
  for (const std::size_t length : lengths_) {
    expect_refused(operation(length, region_, ~std::uint64_t{0}));
    expect_refused(operation(length, region_, ~std::uint64_t{0} - length + 1));
    if (length > 1) expect_refused(operation(length, region_, ~std::uint64_t{0} - length + 2));
  }
  expect_still_granted();
}

TEST_P(Access, RightThatWasNotGranted) {
  ASSERT_TRUE(world_.ok());
  const std::uint64_t other = traits(kind_).read ? FI_REMOTE_WRITE : FI_REMOTE_READ;
  for (const std::uint64_t access :
       {other, std::uint64_t{FI_SEND | FI_RECV | FI_READ | FI_WRITE}}) {
    const Region narrow =
        world_.target().expose({.length = kRegion, .access = access, .seed = kContents});
    for (const std::size_t length : lengths_) {
      expect_refused(operation(length, narrow, narrow.base));
      world_.target().expect_region(narrow, kContents, 0, kRegion);
    }
    EXPECT_EQ(world_.target().close_region(narrow), 0);
  }
  expect_still_granted();
}

TEST_P(Access, RegionThatWasClosed) {
  ASSERT_TRUE(world_.ok());
  const Region closed = world_.target().expose({.length = kRegion, .seed = kContents});
  EXPECT_EQ(world_.target().close_region(closed), 0);
  for (const std::size_t length : lengths_) {
    expect_refused(operation(length, closed, closed.base));
    world_.target().expect_region(closed, kContents, 0, kRegion);
  }
  expect_still_granted();
}

// A key belongs to the domain of its region, whichever endpoint of the process is asked.
TEST_P(Access, KeyOfAnotherDomain) {
  ASSERT_TRUE(world_.ok());
  Pump idle;
  LocalParty stranger(std::make_shared<Domain>(options()), options(), &idle);
  ASSERT_TRUE(stranger.ok());
  for (int i = 0; i < 8; ++i) stranger.expose({});  // Not a key that both domains happen to use.
  const Region foreign = stranger.expose({.length = kRegion, .seed = kContents});
  if (foreign.key == region_.key) GTEST_SKIP() << "both domains gave out the same key";
  for (const std::size_t length : lengths_) {
    expect_refused(operation(length, foreign, foreign.base));
    stranger.expect_region(foreign, kContents, 0, kRegion);
  }
  expect_still_granted();
}

// One bad element of several: the good one must not be touched either.
TEST_P(Access, OneBadElementOfTwo) {
  ASSERT_TRUE(world_.ok());
  if (!traits(kind_).message) GTEST_SKIP() << "takes one remote range only";
  for (const std::size_t length : {std::size_t{64}, std::size_t{5000}, std::size_t{200000}}) {
    Operation bad_second = operation(length, region_, region_.base);
    bad_second.split_remote = true;
    bad_second.second_key = region_.key + 0x10000;
    expect_refused(bad_second);
    Operation bad_first = operation(length, region_, region_.base);
    bad_first.split_remote = true;
    bad_first.key = region_.key + 0x10000;
    bad_first.second_key = region_.key;
    expect_refused(bad_first);
    Operation long_second = operation(length, region_, region_.base + kRegion - length + 1);
    long_second.split_remote = true;
    long_second.second_key = region_.key;
    expect_refused(long_second);
  }
  expect_still_granted();
}

// InfiniBand validates neither the key nor the address of an access of no bytes (IBTA 9.7.4.1.1).
TEST_P(Access, EmptyOneSucceedsWhateverItsKeyAndAddress) {
  ASSERT_TRUE(world_.ok());
  const Region closed = world_.target().expose({.length = 64});
  EXPECT_EQ(world_.target().close_region(closed), 0);
  const Region narrow = world_.target().expose({.length = 64, .access = FI_SEND});
  const Region nothing = world_.target().expose({.length = 0});
  Region unknown = region_;
  unknown.key += 0x10000;
  Region largest = region_;
  largest.key = ~std::uint64_t{0};
  for (const Region& region : {closed, narrow, nothing, unknown, largest, region_}) {
    for (const std::uint64_t at : {region.base, region.base - 1, ~std::uint64_t{0},
                                   region.base + (std::uint64_t{1} << 40)}) {
      const Token token = world_.initiator().post(operation(0, region, at));
      if (!traits(kind_).inject) world_.initiator().wait_success(token);
      if (!traits(kind_).data) continue;
      const auto told = world_.target().wait(kNoToken);
      ASSERT_TRUE(told.has_value());
      EXPECT_EQ(told->data, 5u);
    }
    if (HasFailure()) return;
  }
  world_.exchange();
  EXPECT_EQ(world_.initiator().leftovers() + world_.target().leftovers(), 0u);
  world_.target().expect_region(region_, kContents, 0, kRegion);
  expect_still_granted();
}

TEST_P(Access, RegionOfNoBytesRefusesEveryByte) {
  ASSERT_TRUE(world_.ok());
  const Region nothing = world_.target().expose({.length = 0});
  for (const std::size_t length : lengths_) {
    expect_refused(operation(length, nothing, nothing.base));
    expect_refused(operation(length, nothing, nothing.base - length));
  }
  expect_still_granted();
}

// A burst of refusals between good operations: each one gets its own verdict.
TEST_P(Access, BadAndGoodOperationsDoNotMixUp) {
  ASSERT_TRUE(world_.ok());
  if (traits(kind_).inject) GTEST_SKIP() << "good ones report nothing";
  std::vector<std::pair<Token, bool>> posted;
  for (std::uint64_t i = 0; i < 60; ++i) {
    Operation o = operation(i % 2 == 0 ? 64 : 5000, region_, region_.base);
    const bool bad = i % 3 == 0;
    if (bad) {
      o.key += 0x10000;
      o.second_key += 0x10000;
    }
    posted.emplace_back(world_.initiator().post(o), bad);
  }
  for (const auto& [token, bad] : posted) {
    EXPECT_EQ(world_.initiator().wait(token).value_or(Completion{}).err, bad ? FI_EACCES : 0);
    if (HasFailure()) return;
  }
  if (!traits(kind_).data) return;
  for (int i = 0; i < 40; ++i) world_.target().wait_success(kNoToken);
  EXPECT_EQ(world_.target().leftovers(), 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Refusal, Access,
    testing::Combine(testing::Values(Kind::kWrite, Kind::kWritev, Kind::kWritemsg,
                                     Kind::kInjectWrite, Kind::kWritedata, Kind::kInjectWritedata,
                                     Kind::kRead, Kind::kReadv, Kind::kReadmsg),
                     testing::Values(kLevels[0], kLevels[3]), both_process_counts()),
    transfer_name);

}  // namespace
}  // namespace weft::conformance
