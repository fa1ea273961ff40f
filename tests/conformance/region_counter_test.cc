// SPDX-License-Identifier: BSD-2-Clause
// Does a counter that is bound to a memory region count what peers do with it? (fi_mr(3))
#include "support/atomic.h"
#include "support/placements.h"

namespace weft::conformance {
namespace {

// Nothing else polls, except to make a connection: reading the counter has to update it, and
// is all that a writer may need of the target (fi_domain(3), FI_PROGRESS_MANUAL).
Options counted_regions(Placement placement) {
  Options options;
  options.caps |= FI_RMA_EVENT | FI_ATOMIC;
  options.left_alone =
      placement != Placement::kConnected && placement != Placement::kConnectedProcesses;
  return options;
}

class RegionCounter : public PlacementTest {
 protected:
  RegionCounter() : world_(GetParam(), counted_regions(GetParam())) {}

  Operation rma(Kind kind, const Region& region, std::size_t length) {
    return {.kind = kind,
            .length = length,
            .seed = 1,
            .peer = world_.to_target(),
            .remote_address = region.base,
            .key = region.key};
  }
  void access(const Operation& operation) {
    const Token token = world_.initiator().post(operation);
    if (!traits(operation.kind).inject) world_.initiator().wait_success(token);
  }
  void access(Kind kind, const Region& region, std::size_t length) {
    access(rma(kind, region, length));
  }

  World world_;
};

TEST_P(RegionCounter, EachRegionCountsItsWrites) {
  ASSERT_TRUE(world_.ok());
  const RegionSpec spec{.length = 100000, .counts = FI_REMOTE_WRITE};
  const Region first = world_.target().expose(spec);
  const Region second = world_.target().expose(spec);
  const Region plain = world_.target().expose({.length = 100000});
  std::uint64_t writes = 0;
  for (const std::size_t length : {0u, 8u, 2000u, 100000u}) {
    for (const Kind kind :
         {Kind::kWrite, Kind::kWritev, Kind::kWritemsg, Kind::kInjectWrite, Kind::kWritedata}) {
      access(kind, first, traits(kind).inject ? 8 : length);
      world_.target().expect_counted(first, ++writes);
    }
    access(Kind::kRead, first, length);
    access(Kind::kWrite, plain, length);
  }
  world_.target().expect_counted(second, 0);
  access(Kind::kWrite, second, 8);
  world_.target().expect_counted(second, 1);
  world_.target().expect_counted(first, writes);
}

TEST_P(RegionCounter, ReadsCountWhereThatWasAskedFor) {
  ASSERT_TRUE(world_.ok());
  const Region reads = world_.target().expose({.length = 100000, .counts = FI_REMOTE_READ});
  const Region both =
      world_.target().expose({.length = 100000, .counts = FI_REMOTE_READ | FI_REMOTE_WRITE});
  for (const std::size_t length : {8u, 100000u}) {
    access(Kind::kRead, reads, length);
    access(Kind::kWrite, reads, length);
    access(Kind::kRead, both, length);
    access(Kind::kWrite, both, length);
  }
  world_.target().expect_counted(reads, 2);
  world_.target().expect_counted(both, 4);
}

TEST_P(RegionCounter, AWriteToTwoRegionsCountsOnceInEach) {
  ASSERT_TRUE(world_.ok());
  const Region first = world_.target().expose({.counts = FI_REMOTE_WRITE});
  const Region second = world_.target().expose({.counts = FI_REMOTE_WRITE});
  // The same address means something else in the other region, unless it is an offset.
  if ((world_.endpoint().info()->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0) GTEST_SKIP();
  Operation write = rma(Kind::kWritemsg, first, 64);
  write.split_remote = true;
  write.second_key = second.key;
  access(write);
  world_.target().expect_counted(first, 1);
  world_.target().expect_counted(second, 1);
  write.second_key = first.key;
  access(write);
  world_.target().expect_counted(first, 2);
}

TEST_P(RegionCounter, ARefusedWriteCountsNowhere) {
  ASSERT_TRUE(world_.ok());
  const Region region = world_.target().expose({.length = 64, .counts = FI_REMOTE_WRITE});
  const Token refused = world_.initiator().post(rma(Kind::kWrite, region, 65));
  world_.initiator().wait_error(refused, FI_EACCES);
  access(Kind::kWrite, region, 64);
  world_.target().expect_counted(region, 1);
}

// A fetching one reads and, unless it only reads, modifies.
TEST_P(RegionCounter, AtomicOperationsCountAsWhatTheyDo) {
  ASSERT_TRUE(world_.ok());
  const Region writes = world_.target().expose({.counts = FI_REMOTE_WRITE});
  const Region reads = world_.target().expose({.counts = FI_REMOTE_READ});
  std::mt19937_64 random(1);
  const auto run = [&](Form form, fi_op op, const Region& region) {
    Atomic atomic;
    atomic.form = form;
    atomic.op = op;
    atomic.fill(random);
    atomic.peer = world_.to_target();
    atomic.address = region.base;
    atomic.key = region.key;
    ssize_t rc = -FI_EAGAIN;
    world_.pump().until([&] {
      rc = issue(world_.ep(), atomic, nullptr);
      return rc != -FI_EAGAIN;
    });
    EXPECT_EQ(rc, 0);
    world_.initiator().wait_success(kNoToken);
  };
  for (const Region& region : {writes, reads}) {
    run(Form::kBase, FI_SUM, region);
    run(Form::kFetch, FI_SUM, region);
    run(Form::kFetch, FI_ATOMIC_READ, region);
    run(Form::kCompare, FI_CSWAP, region);
  }
  world_.target().expect_counted(writes, 3);
  world_.target().expect_counted(reads, 3);
}

TEST_P(RegionCounter, WritesInAnyNumberAreAllCounted) {
  ASSERT_TRUE(world_.ok());
  const Region region = world_.target().expose({.counts = FI_REMOTE_WRITE});
  constexpr std::uint64_t kWrites = 5000;
  std::uint64_t begun = 0;
  while (begun < kWrites && !HasFailure()) {
    const std::uint64_t until = begun + 250;  // fewer than may be told of at a time
    while (begun < until) {
      access(Kind::kWrite, region, 8);
      ++begun;
    }
    world_.target().expect_counted(region, begun);
  }
}

INSTANTIATE_TEST_SUITE_P(Counters, RegionCounter, every_placement(), placement_name);

// One endpoint, a region of it and a counter.
class RegionBinding : public testing::Test {
 protected:
  RegionBinding() : world_(Placement::kSelf, counted_regions(Placement::kSelf)) {}

  fid_domain* domain() { return world_.endpoint().domain()->get(); }
  Fid<fid_mr> region(std::uint64_t flags = 0) {
    return open_fid<fid_mr>([&](fid_mr** out) {
      return fi_mr_reg(domain(), buffer_, sizeof buffer_, FI_REMOTE_WRITE | FI_REMOTE_READ, 0,
                       Endpoint::next_key(), flags, out, nullptr);
    });
  }
  static Fid<fid_cntr> counter(fid_domain* domain) {
    fi_cntr_attr attributes{};
    attributes.wait_obj = FI_WAIT_UNSPEC;
    return open_fid<fid_cntr>(
        [&](fid_cntr** out) { return fi_cntr_open(domain, &attributes, out, nullptr); });
  }

  World world_;
  char buffer_[64]{};
};

TEST_F(RegionBinding, MeaninglessBindingsAreRefused) {
  ASSERT_TRUE(world_.ok());
  const Fid<fid_cntr> mine = counter(domain());
  const Fid<fid_mr> mr = region();
  EXPECT_EQ(fi_mr_bind(mr.get(), &mine->fid, 0), -FI_EBADFLAGS);
  EXPECT_EQ(fi_mr_bind(mr.get(), &mine->fid, FI_WRITE), -FI_EBADFLAGS);
  EXPECT_EQ(fi_mr_bind(mr.get(), &world_.endpoint().cq()->fid, 0), -FI_EINVAL);
  EXPECT_EQ(fi_mr_bind(mr.get(), nullptr, 0), -FI_EINVAL);
  EXPECT_EQ(fi_mr_bind(mr.get(), &world_.ep()->fid, 0), 0) << "regions serve all endpoints";
  EXPECT_EQ(fi_mr_bind(mr.get(), &world_.ep()->fid, FI_REMOTE_WRITE), -FI_EBADFLAGS);
  EXPECT_EQ(fi_mr_bind(mr.get(), &mine->fid, FI_REMOTE_WRITE), 0);
  EXPECT_EQ(fi_mr_bind(mr.get(), &mine->fid, FI_REMOTE_WRITE), -FI_EINVAL) << "there is one";
  EXPECT_EQ(fi_mr_bind(mr.get(), &mine->fid, FI_REMOTE_READ), 0);
  const World other(Placement::kSelf, counted_regions(Placement::kSelf));
  const Fid<fid_cntr> theirs = counter(const_cast<World&>(other).endpoint().domain()->get());
  const Fid<fid_mr> second = region();
  EXPECT_EQ(fi_mr_bind(second.get(), &theirs->fid, FI_REMOTE_WRITE), -FI_EINVAL);
  EXPECT_EQ(fi_mr_bind(second.get(), &const_cast<World&>(other).ep()->fid, 0), -FI_EINVAL);
}

// fi_mr(3): -FI_ENOSYS where events of accesses to regions are not reported.
TEST(RegionBindingWithoutEvents, ACounterIsRefused) {
  Options options;
  options.caps = FI_MSG | FI_RMA;
  World world(Placement::kSelf, options);
  ASSERT_TRUE(world.ok());
  fid_domain* const domain = world.endpoint().domain()->get();
  char buffer[64]{};
  const auto mr = open_fid<fid_mr>([&](fid_mr** out) {
    return fi_mr_reg(domain, buffer, sizeof buffer, FI_REMOTE_WRITE, 0, Endpoint::next_key(), 0,
                     out, nullptr);
  });
  fi_cntr_attr attributes{};
  auto counter = open_fid<fid_cntr>(
      [&](fid_cntr** out) { return fi_cntr_open(domain, &attributes, out, nullptr); });
  EXPECT_EQ(fi_mr_bind(mr.get(), &counter->fid, FI_REMOTE_WRITE), -FI_ENOSYS);
  EXPECT_EQ(fi_close(&counter.release()->fid), 0) << "it is not in use";
}

TEST_F(RegionBinding, NothingIsBoundOnceTheRegionIsEnabled) {
  ASSERT_TRUE(world_.ok());
  const Fid<fid_cntr> mine = counter(domain());
  const Fid<fid_mr> mr = region(FI_RMA_EVENT);
  EXPECT_EQ(fi_mr_bind(mr.get(), &mine->fid, FI_REMOTE_WRITE), 0);
  EXPECT_EQ(fi_mr_enable(mr.get()), 0);
  EXPECT_EQ(fi_mr_bind(mr.get(), &mine->fid, FI_REMOTE_READ), -FI_EOPBADSTATE);
}

TEST_F(RegionBinding, ACounterIsBusyUntilItsRegionIsClosed) {
  ASSERT_TRUE(world_.ok());
  Fid<fid_cntr> mine = counter(domain());
  Fid<fid_mr> mr = region();
  ASSERT_EQ(fi_mr_bind(mr.get(), &mine->fid, FI_REMOTE_WRITE), 0);
  EXPECT_EQ(fi_close(&mine->fid), -FI_EBUSY);
  mr.reset();
  EXPECT_EQ(fi_close(&mine.release()->fid), 0);
}

// The key is given out again, with another counter.
TEST_F(RegionBinding, ARegionOfTheSameKeyHasNothingOfItsPredecessors) {
  ASSERT_TRUE(world_.ok());
  const std::uint64_t key = Endpoint::next_key();
  const Fid<fid_cntr> first = counter(domain());
  const Fid<fid_cntr> second = counter(domain());
  for (fid_cntr* const bound : {first.get(), second.get()}) {
    fid_mr* mr = nullptr;
    ASSERT_EQ(
        fi_mr_reg(domain(), buffer_, sizeof buffer_, FI_REMOTE_WRITE, 0, key, 0, &mr, nullptr), 0);
    ASSERT_EQ(fi_mr_bind(mr, &bound->fid, FI_REMOTE_WRITE), 0);
    const Token write = world_.initiator().post(
        {.kind = Kind::kWrite, .length = 8, .peer = world_.to_target(), .key = key});
    world_.initiator().wait_success(write);
    EXPECT_TRUE(world_.pump().until([&] { return fi_cntr_read(bound) == 1; }));
    EXPECT_EQ(fi_close(&mr->fid), 0);
  }
  EXPECT_EQ(fi_cntr_read(first.get()), 1u);
}

// Asleep on nothing but the counter of a region, which another process writes to.
TEST(RegionCounterWait, ASleeperIsWokenByAWriteToTheRegion) {
  for (const Placement placement : {Placement::kTwoProcesses, Placement::kConnectedProcesses}) {
    Options options = counted_regions(placement);
    options.left_alone = false;  // the writer may have to poll until it is done
    World world(placement, options);
    ASSERT_TRUE(world.ok());
    char buffer[8]{};
    fid_mr* mr = nullptr;
    ASSERT_EQ(fi_mr_reg(world.endpoint().domain()->get(), buffer, sizeof buffer, FI_REMOTE_WRITE, 0,
                        Endpoint::next_key(), 0, &mr, nullptr),
              0);
    fi_cntr_attr attributes{};
    attributes.wait_obj = FI_WAIT_UNSPEC;
    const auto cntr = open_fid<fid_cntr>([&](fid_cntr** out) {
      return fi_cntr_open(world.endpoint().domain()->get(), &attributes, out, nullptr);
    });
    ASSERT_EQ(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
    Request request;
    request.what = Request::What::kPost;
    request.operation = {.kind = Kind::kWrite,
                         .length = 8,
                         .seed = 5,
                         .peer = world.to_initiator(),
                         .key = fi_mr_key(mr),
                         .delay_us = 50000};
    world.remote().start(request);
    EXPECT_EQ(fi_cntr_wait(cntr.get(), 1, static_cast<int>(patience().count())), 0);
    world.target().wait_success(world.remote().finish().value);
    EXPECT_EQ(fi_close(&mr->fid), 0);
  }
}

}  // namespace
}  // namespace weft::conformance
