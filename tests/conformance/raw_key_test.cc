// SPDX-License-Identifier: BSD-2-Clause
// Do raw keys lead to the region that they name, and only while they are mapped? (fi_mr(3))
#include <algorithm>
#include <array>
#include <cstring>

#include "support/atomic.h"
#include "support/placements.h"

namespace weft::conformance {
namespace {

constexpr int kNotMapped = (1 << 16) + 32;  // prov_errno (docs/user/reasons.md)

Options any_contract() {
  Options options;
  options.caps |= FI_ATOMIC;
  options.mr_mode = kRequirableModes;
  return options;
}

class RawKeys : public PlacementTest {
 protected:
  RawKeys() : world_(GetParam(), any_contract()) {}

  fid_domain* domain() { return world_.endpoint().domain()->get(); }
  bool required() { return (world_.endpoint().info()->domain_attr->mr_mode & FI_MR_RAW) != 0; }
  std::uint64_t map(Region region) {
    std::uint64_t key = 0;
    EXPECT_EQ(
        fi_mr_map_raw(domain(), region.raw_base, region.raw_key.data(), region.raw_size, &key, 0),
        0);
    return key;
  }
  Operation operation(Kind kind, const Region& region, std::uint64_t key) {
    return {.kind = kind,
            .length = 64,
            .seed = 5,
            .peer = world_.to_target(),
            .data = 9,
            .remote_address = region.raw_base,
            .key = key};
  }
  void expect_not_mapped(const Region& region, std::uint64_t key) {
    for (const Kind kind : {Kind::kWrite, Kind::kRead, Kind::kWritemsg, Kind::kWritedata}) {
      const Token token = world_.initiator().post(operation(kind, region, key));
      const Completion c = world_.initiator().wait_error(token, FI_EACCES);
      EXPECT_EQ(c.prov_errno, kNotMapped) << traits(kind).name;
      world_.exchange();
    }
    const auto injected = world_.initiator().try_post(operation(Kind::kInjectWrite, region, key));
    EXPECT_EQ(injected.rc, -FI_EACCES);
    world_.target().expect_region_blank(region, 0, region.length);
  }

  World world_;
};

TEST_P(RawKeys, LeadToTheRegion) {
  ASSERT_TRUE(world_.ok());
  const Region region = world_.target().expose({});
  ASSERT_NE(region.raw_size, 0u);
  EXPECT_EQ(region.raw_base, region.base);
  EXPECT_EQ(region.raw_size, world_.endpoint().info()->domain_attr->mr_key_size);
  const std::uint64_t key = map(region);
  world_.initiator().wait_success(world_.initiator().post(operation(Kind::kWrite, region, key)));
  const Token read = world_.initiator().post(operation(Kind::kRead, region, key));
  world_.initiator().wait_success(read);
  world_.initiator().expect_data(read, 5, 64);
  EXPECT_EQ(fi_mr_unmap_key(domain(), key), 0);
}

TEST_P(RawKeys, DifferFromTheKeysThatTheyAreMappedTo) {
  ASSERT_TRUE(world_.ok());
  const Region region = world_.target().expose({});
  if (!required()) {
    const std::uint64_t key = map(region);
    EXPECT_EQ(key, region.key);
    EXPECT_EQ(fi_mr_unmap_key(domain(), key), 0);
    return;
  }
  EXPECT_EQ(region.key, FI_KEY_NOTAVAIL);
  std::uint64_t first_bytes = 0;
  std::memcpy(&first_bytes, region.raw_key.data(), sizeof first_bytes);
  expect_not_mapped(region, first_bytes);
}

TEST_P(RawKeys, AreOfNoUseBeforeAndAfterTheirMapping) {
  ASSERT_TRUE(world_.ok());
  if (!required()) GTEST_SKIP() << "keys need no mapping here";
  const Region region = world_.target().expose({});
  const std::uint64_t key = map(region);
  EXPECT_EQ(map(region), key) << "mapped twice";
  EXPECT_EQ(fi_mr_unmap_key(domain(), key), 0);
  const Token token = world_.initiator().post(operation(Kind::kRead, region, key));
  world_.initiator().wait_success(token);
  EXPECT_EQ(fi_mr_unmap_key(domain(), key), 0);
  expect_not_mapped(region, key);
  EXPECT_EQ(map(region), key);
  world_.initiator().wait_success(world_.initiator().post(operation(Kind::kWrite, region, key)));
  EXPECT_EQ(world_.target().close_region(region), 0);
  const Token closed = world_.initiator().post(operation(Kind::kWrite, region, key));
  world_.initiator().wait_error(closed, FI_EACCES);
  EXPECT_EQ(fi_mr_unmap_key(domain(), key), 0);
}

TEST_P(RawKeys, UnmappedOnesChangeNothingByAtomicOperations) {
  ASSERT_TRUE(world_.ok());
  if (!required()) GTEST_SKIP() << "keys need no mapping here";
  const Region region = world_.target().expose({});
  std::mt19937_64 random(1);
  for (const Form form : {Form::kBase, Form::kFetch, Form::kCompare}) {
    Atomic atomic;
    atomic.form = form;
    atomic.op = form == Form::kCompare ? FI_CSWAP : FI_SUM;
    atomic.fill(random);
    atomic.peer = world_.to_target();
    atomic.address = region.base;
    atomic.key = 12345;
    fi_context2 context{};
    EXPECT_EQ(issue(world_.ep(), atomic, &context), 0);
    std::optional<Completion> c;
    world_.pump().until([&] { return (c = world_.endpoint().take(&context)).has_value(); });
    ASSERT_TRUE(c);
    EXPECT_EQ(c->err, FI_EACCES);
    EXPECT_EQ(c->prov_errno, kNotMapped);
  }
  world_.exchange();
  world_.target().expect_region_blank(region, 0, region.length);
}

TEST_P(RawKeys, EveryByteOfThemCounts) {
  ASSERT_TRUE(world_.ok());
  const Region region = world_.target().expose({.seed = 3});
  for (std::size_t i = 0; i < region.raw_size; ++i) {
    Region wrong = region;
    wrong.raw_key[i] ^= 0x40;
    const std::uint64_t key = map(wrong);
    const Token token = world_.initiator().post(operation(Kind::kWrite, region, key));
    world_.initiator().wait_error(token, FI_EACCES);
    EXPECT_EQ(fi_mr_unmap_key(domain(), key), 0);
  }
  world_.exchange();
  world_.target().expect_region(region, 3, 0, region.length);
}

INSTANTIATE_TEST_SUITE_P(Regions, RawKeys, every_placement(), placement_name);

// Arguments of the calls, on one domain.
class RawKeyCalls : public testing::Test {
 protected:
  RawKeyCalls() : domain_(any_contract()) {}

  Fid<fid_mr> reg(std::uint64_t access) {
    return open_fid<fid_mr>([&](fid_mr** out) {
      return fi_mr_reg(domain_.get(), memory_, sizeof memory_, access, 0, Endpoint::next_key(), 0,
                       out, nullptr);
    });
  }
  std::size_t size() const { return domain_.info()->domain_attr->mr_key_size; }

  Domain domain_;
  char memory_[64]{};
  std::uint64_t base_ = 77;
  std::uint8_t raw_[64]{};
};

TEST_F(RawKeyCalls, TellTheSizeWhereTheRoomIsTooSmall) {
  ASSERT_TRUE(domain_.ok());
  const Fid<fid_mr> mr = reg(FI_REMOTE_WRITE);
  for (std::size_t room = 0; room < size(); ++room) {
    std::size_t told = room;
    EXPECT_EQ(fi_mr_raw_attr(mr.get(), &base_, room == 0 ? nullptr : raw_, &told, 0),
              -FI_ETOOSMALL);
    EXPECT_EQ(told, size());
  }
  EXPECT_EQ(base_, 77u);
  EXPECT_TRUE(std::all_of(raw_, raw_ + 64, [](std::uint8_t byte) { return byte == 0; }));
  std::size_t told = sizeof raw_;
  EXPECT_EQ(fi_mr_raw_attr(mr.get(), &base_, raw_, &told, 0), 0);
  EXPECT_EQ(told, size());
  EXPECT_NE(base_, 77u);
}

TEST_F(RawKeyCalls, RefuseMeaninglessArguments) {
  ASSERT_TRUE(domain_.ok());
  const Fid<fid_mr> mr = reg(FI_REMOTE_READ);
  std::size_t told = sizeof raw_;
  EXPECT_EQ(fi_mr_raw_attr(mr.get(), nullptr, raw_, &told, 0), -FI_EINVAL);
  EXPECT_EQ(fi_mr_raw_attr(mr.get(), &base_, nullptr, &told, 0), -FI_EINVAL);
  EXPECT_EQ(fi_mr_raw_attr(mr.get(), &base_, raw_, nullptr, 0), -FI_EINVAL);
  EXPECT_EQ(fi_mr_raw_attr(mr.get(), &base_, raw_, &told, 1), -FI_EBADFLAGS);
  EXPECT_EQ(fi_control(&mr->fid, FI_GET_RAW_MR, nullptr), -FI_EINVAL);
  std::uint64_t key = 0;
  EXPECT_EQ(fi_mr_map_raw(domain_.get(), 0, nullptr, size(), &key, 0), -FI_EINVAL);
  EXPECT_EQ(fi_mr_map_raw(domain_.get(), 0, raw_, size(), nullptr, 0), -FI_EINVAL);
  EXPECT_EQ(fi_mr_map_raw(domain_.get(), 0, raw_, size(), &key, 1), -FI_EBADFLAGS);
  for (const std::size_t wrong : {std::size_t{0}, size() - 1, size() + 1}) {
    EXPECT_EQ(fi_mr_map_raw(domain_.get(), 0, raw_, wrong, &key, 0), -FI_EINVAL) << wrong;
  }
  EXPECT_EQ(fi_control(&domain_.get()->fid, FI_MAP_RAW_MR, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_control(&domain_.get()->fid, FI_UNMAP_KEY, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_mr_unmap_key(domain_.get(), 4711), -FI_EINVAL);
}

TEST_F(RawKeyCalls, ARegionThatNoPeerMayAccessHasNone) {
  ASSERT_TRUE(domain_.ok());
  const Fid<fid_mr> mr = reg(FI_SEND | FI_RECV);
  std::size_t told = sizeof raw_;
  EXPECT_EQ(fi_mr_raw_attr(mr.get(), &base_, raw_, &told, 0), -FI_ENOKEY);
}

TEST_F(RawKeyCalls, DoNotComeFromTheRequestedKey) {
  ASSERT_TRUE(domain_.ok());
  if ((domain_.info()->domain_attr->mr_mode & FI_MR_RAW) == 0) GTEST_SKIP() << "they are the key";
  for (const std::uint64_t wanted : {std::uint64_t{7}, FI_KEY_NOTAVAIL}) {
    std::array<std::array<std::uint8_t, 64>, 2> raw{};
    std::array<Fid<fid_mr>, 2> regions;
    for (std::size_t i = 0; i < regions.size(); ++i) {
      regions[i] = open_fid<fid_mr>([&](fid_mr** out) {
        return fi_mr_reg(domain_.get(), memory_, sizeof memory_, FI_REMOTE_READ, 0, wanted, 0, out,
                         nullptr);
      });
      ASSERT_NE(regions[i], nullptr);
      std::size_t told = raw[i].size();
      EXPECT_EQ(fi_mr_raw_attr(regions[i].get(), &base_, raw[i].data(), &told, 0), 0);
    }
    EXPECT_NE(raw[0], raw[1]);
  }
}

TEST_F(RawKeyCalls, ADomainWithMappedKeysIsBusy) {
  ASSERT_TRUE(domain_.ok());
  fid_domain* domain = nullptr;
  ASSERT_EQ(fi_domain(domain_.fabric(), domain_.info(), &domain, nullptr), 0);
  raw_[0] = 1;
  std::uint64_t key = 0;
  std::uint64_t again = 0;
  ASSERT_EQ(fi_mr_map_raw(domain, 0, raw_, size(), &key, 0), 0);
  ASSERT_EQ(fi_mr_map_raw(domain, 0, raw_, size(), &again, 0), 0);
  EXPECT_EQ(key, again);
  EXPECT_EQ(fi_close(&domain->fid), -FI_EBUSY);
  EXPECT_EQ(fi_mr_unmap_key(domain, key), 0);
  EXPECT_EQ(fi_close(&domain->fid), -FI_EBUSY);
  EXPECT_EQ(fi_mr_unmap_key(domain, key), 0);
  EXPECT_EQ(fi_mr_unmap_key(domain, key), -FI_EINVAL);
  EXPECT_EQ(fi_close(&domain->fid), 0);
}

}  // namespace
}  // namespace weft::conformance
