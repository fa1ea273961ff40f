// SPDX-License-Identifier: BSD-2-Clause
// Are regions closed until they are bound and enabled, where that is required? (fi_mr(3))
#include <cstring>

#include "support/own_region.h"

namespace weft::conformance {
namespace {

Fid<fid_cntr> open_counter(fid_domain* domain) {
  fi_cntr_attr attributes{};
  return open_fid<fid_cntr>(
      [&](fid_cntr** out) { return fi_cntr_open(domain, &attributes, out, nullptr); });
}

// FI_MR_RMA_EVENT.
class CountedRegions : public OwnRegionTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(world_.ok());
    if (!required(FI_MR_RMA_EVENT)) GTEST_SKIP() << "regions are enabled from the beginning";
    if (required(FI_MR_RAW)) GTEST_SKIP() << "peers need the raw key";
  }
};

TEST_P(CountedRegions, AreClosedUntilTheyAreEnabled) {
  const Fid<fid_cntr> counter = open_counter(domain());
  const std::uint64_t chosen = Endpoint::next_key();
  const Fid<fid_mr> mr = reg(FI_RMA_EVENT, chosen);
  // With FI_MR_ENDPOINT there is no key before it is enabled, but a peer may guess one.
  const std::uint64_t key = required(FI_MR_ENDPOINT) ? chosen : fi_mr_key(mr.get());
  if (required(FI_MR_ENDPOINT) && required(FI_MR_PROV_KEY)) GTEST_SKIP() << "not to be guessed";
  expect_refused(key, kDisabledRegion);
  EXPECT_EQ(fi_mr_bind(mr.get(), &counter->fid, FI_REMOTE_WRITE), 0);
  expect_refused(key, kDisabledRegion);
  EXPECT_EQ(*page(0), 0);
  make_ready(mr.get());
  EXPECT_EQ(fi_mr_key(mr.get()), key);
  expect_granted(key);
  EXPECT_TRUE(world_.pump().until([&] { return fi_cntr_read(counter.get()) == 1; }));
  const Fid<fid_cntr> late = open_counter(domain());
  EXPECT_EQ(fi_mr_bind(mr.get(), &late->fid, FI_REMOTE_READ), -FI_EOPBADSTATE);
}

TEST_P(CountedRegions, AreThoseWithTheFlagOnly) {
  const Fid<fid_cntr> counter = open_counter(domain());
  const Fid<fid_mr> mr = reg();
  EXPECT_EQ(fi_mr_bind(mr.get(), &counter->fid, FI_REMOTE_WRITE), -FI_EINVAL);
  if (!required(FI_MR_ENDPOINT)) expect_granted(fi_mr_key(mr.get()));
  make_ready(mr.get());
  expect_granted(fi_mr_key(mr.get()));
  EXPECT_EQ(fi_cntr_read(counter.get()), 0u);
}

INSTANTIATE_TEST_SUITE_P(Regions, CountedRegions, every_placement(), placement_name);

// FI_MR_ENDPOINT.
class BoundRegions : public OwnRegionTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(world_.ok());
    if (!required(FI_MR_ENDPOINT)) GTEST_SKIP() << "regions serve all endpoints";
    if (required(FI_MR_RAW)) GTEST_SKIP() << "peers need the raw key";
  }
};

TEST_P(BoundRegions, HaveNoKeyAndAreClosedUntilTheyAreEnabled) {
  const std::uint64_t key = Endpoint::next_key();
  const Fid<fid_mr> mr = reg(0, key);
  std::uint64_t base = 0;
  std::uint8_t raw[64];
  std::size_t size = sizeof raw;
  EXPECT_EQ(fi_mr_enable(mr.get()), -FI_EINVAL) << "it is not bound";
  for (const bool bound : {false, true}) {
    if (bound) {
      EXPECT_EQ(fi_mr_bind(mr.get(), &world_.ep()->fid, 0), 0);
    }
    EXPECT_EQ(fi_mr_key(mr.get()), FI_KEY_NOTAVAIL);
    EXPECT_EQ(fi_mr_raw_attr(mr.get(), &base, raw, &size, 0), -FI_EOPBADSTATE);
    if (!required(FI_MR_PROV_KEY)) expect_refused(key, kDisabledRegion);  // else it is unknown
  }
  EXPECT_EQ(fi_mr_enable(mr.get()), 0);
  EXPECT_NE(fi_mr_key(mr.get()), FI_KEY_NOTAVAIL);
  EXPECT_EQ(fi_mr_raw_attr(mr.get(), &base, raw, &size, 0), 0);
  expect_granted(fi_mr_key(mr.get()));
}

TEST_P(BoundRegions, AreReachedThroughTheirEndpointOnly) {
  const Fid<fid_ep> other = other_endpoint(true);
  const Fid<fid_mr> theirs = reg();
  ASSERT_EQ(fi_mr_bind(theirs.get(), &other->fid, 0), 0);
  ASSERT_EQ(fi_mr_enable(theirs.get()), 0);
  expect_refused(fi_mr_key(theirs.get()), kOtherEndpoint);
  EXPECT_EQ(*page(0), 0);
  const Fid<fid_mr> mine = reg();
  make_ready(mine.get());
  expect_granted(fi_mr_key(mine.get()));
}

TEST_P(BoundRegions, AreBoundToOneEnabledEndpointOfTheirDomain) {
  const Fid<fid_mr> mr = reg();
  const Fid<fid_ep> disabled = other_endpoint(false);
  const Fid<fid_ep> second = other_endpoint(true);
  const auto bind = [&](fid* object, std::uint64_t flags = 0) {
    return fi_mr_bind(mr.get(), object, flags);
  };
  EXPECT_EQ(bind(&disabled->fid), -FI_EINVAL);
  EXPECT_EQ(bind(&world_.ep()->fid, FI_REMOTE_WRITE), -FI_EBADFLAGS);
  EXPECT_EQ(bind(&world_.endpoint().cq()->fid), -FI_EINVAL);
  EXPECT_EQ(bind(&world_.ep()->fid), 0);
  EXPECT_EQ(bind(&world_.ep()->fid), -FI_EINVAL) << "bound twice";
  EXPECT_EQ(bind(&second->fid), -FI_EINVAL);
  EXPECT_EQ(fi_mr_enable(mr.get()), 0);
  EXPECT_EQ(bind(&second->fid), -FI_EOPBADSTATE);
  Options options;
  options.mr_mode = kRequirableModes;
  const Domain stranger(options);
  auto foreign = open_fid<fid_mr>([&](fid_mr** out) {
    return fi_mr_reg(stranger.get(), page(0), 8, FI_REMOTE_READ, 0, Endpoint::next_key(), 0, out,
                     nullptr);
  });
  EXPECT_EQ(fi_mr_bind(foreign.get(), &world_.ep()->fid, 0), -FI_EINVAL);
}

TEST_P(BoundRegions, KeepTheirEndpointBusy) {
  Fid<fid_ep> other = other_endpoint(true);
  Fid<fid_mr> mr = reg();
  EXPECT_EQ(fi_mr_bind(mr.get(), &other->fid, 0), 0);
  EXPECT_EQ(fi_close(&other->fid), -FI_EBUSY);
  EXPECT_EQ(fi_mr_enable(mr.get()), 0);
  EXPECT_EQ(fi_close(&other->fid), -FI_EBUSY);
  mr.reset();
  EXPECT_EQ(fi_close(&other.release()->fid), 0);
}

INSTANTIATE_TEST_SUITE_P(Regions, BoundRegions, every_placement(), placement_name);

// fi_mr(3): the endpoint through which a region is accessed needs FI_RMA_EVENT.
TEST(UncountedAccess, GoesThroughAnEndpointWithoutRmaEvents) {
  Options options;
  options.caps |= FI_RMA_EVENT;
  options.mr_mode = kRequirableModes;
  const auto domain = std::make_shared<Domain>(options);
  ASSERT_TRUE(domain->ok());
  if ((domain->info()->domain_attr->mr_mode & (FI_MR_ENDPOINT | FI_MR_RAW)) != 0) GTEST_SKIP();
  Endpoint counting(domain, options);
  domain->info()->caps &= ~FI_RMA_EVENT;
  Endpoint plain(domain, options);
  ASSERT_TRUE(counting.ok() && plain.ok());
  Pump pump;
  pump.add(&counting);
  pump.add(&plain);
  char memory[64]{};
  const Fid<fid_cntr> counter = open_counter(domain->get());
  const auto mr = open_fid<fid_mr>([&](fid_mr** out) {
    return fi_mr_reg(domain->get(), memory, sizeof memory, FI_REMOTE_WRITE, 0, Endpoint::next_key(),
                     FI_RMA_EVENT, out, nullptr);
  });
  ASSERT_EQ(fi_mr_bind(mr.get(), &counter->fid, FI_REMOTE_WRITE), 0);
  ASSERT_EQ(fi_mr_enable(mr.get()), 0);
  const bool by_address = (domain->info()->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
  const auto write = [&](Endpoint& target) {
    const fi_addr_t peer = counting.insert(target.name());
    fi_context2 context{};
    ssize_t rc = -FI_EAGAIN;
    pump.until([&] {
      rc = fi_write(counting.ep(), "weft", 4, nullptr, peer,
                    by_address ? reinterpret_cast<std::uint64_t>(memory) : 0, fi_mr_key(mr.get()),
                    &context);
      return rc != -FI_EAGAIN;
    });
    EXPECT_EQ(rc, 0);
    std::optional<Completion> c;
    EXPECT_TRUE(pump.until([&] { return (c = counting.take(&context)).has_value(); }));
    EXPECT_EQ(c.value_or(Completion{.err = 1}).err, 0);
  };
  write(plain);
  EXPECT_STREQ(memory, "weft");
  write(counting);
  EXPECT_TRUE(pump.until([&] { return fi_cntr_read(counter.get()) != 0; }));
  pump.settle();
  EXPECT_EQ(fi_cntr_read(counter.get()), 1u);
}

}  // namespace
}  // namespace weft::conformance
