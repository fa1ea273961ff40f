// SPDX-License-Identifier: BSD-2-Clause
// What does a refresh of a region open, and what does it refuse? (fi_mr(3), fi_mr_refresh)
#include <sys/mman.h>
#include <unistd.h>

#include <array>

#include "support/own_region.h"

namespace weft::conformance {
namespace {

class Refresh : public OwnRegionTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(world_.ok());
    if (required(FI_MR_RAW)) GTEST_SKIP() << "peers need the raw key";
  }

  Fid<fid_mr> ready_region() {
    Fid<fid_mr> mr = reg();
    make_ready(mr.get());
    return mr;
  }
  int refresh(fid_mr* mr, std::size_t first, std::size_t count) {
    const iovec range{page(first), count * page_size()};
    return fi_mr_refresh(mr, &range, 1, 0);
  }
};

TEST_P(Refresh, LeavesTheRegionEnabled) {
  const Fid<fid_mr> mr = ready_region();
  const std::uint64_t key = fi_mr_key(mr.get());
  expect_granted(key);
  EXPECT_EQ(fi_mr_refresh(mr.get(), nullptr, 0, 0), 0);
  expect_granted(key);
  const std::array<iovec, 2> ranges{iovec{page(1), 10}, iovec{page(3), page_size()}};
  EXPECT_EQ(fi_mr_refresh(mr.get(), ranges.data(), ranges.size(), 0), 0);
  expect_granted(key, 0, kPages * page_size());
}

// They are refused for that time, and not held up.
TEST_P(Refresh, PeersThatAccessTheRegionMeanwhileGoOn) {
  const Fid<fid_mr> mr = ready_region();
  const std::uint64_t base =
      required(FI_MR_VIRT_ADDR) ? reinterpret_cast<std::uint64_t>(page(0)) : 0;
  constexpr std::size_t kRounds = 40;
  constexpr std::size_t kAtOnce = 8;
  for (std::size_t round = 0; round < kRounds && !HasFailure(); ++round) {
    std::array<Token, kAtOnce> tokens{};
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      tokens[i] = world_.target().post({.kind = i % 2 == 0 ? Kind::kWrite : Kind::kRead,
                                        .length = i < 4 ? 64 : 7 * page_size(),
                                        .seed = 1,
                                        .peer = world_.to_initiator(),
                                        .remote_address = base,
                                        .key = fi_mr_key(mr.get())});
    }
    EXPECT_EQ(fi_mr_refresh(mr.get(), nullptr, 0, 0), 0);
    for (const Token token : tokens) {
      const auto c = world_.target().wait(token);
      ASSERT_TRUE(c.has_value());
      if (c->err == 0) continue;
      EXPECT_EQ(c->err, FI_EACCES);
      EXPECT_EQ(c->prov_errno, kDisabledRegion);
    }
  }
  expect_granted(fi_mr_key(mr.get()));
}

TEST_P(Refresh, OfBytesOutsideTheRegionIsRefused) {
  const Fid<fid_mr> mr = ready_region();
  const auto of = [&](std::uint8_t* base, std::size_t length) {
    const std::array<iovec, 2> ranges{iovec{page(0), 8}, iovec{base, length}};
    return fi_mr_refresh(mr.get(), ranges.data(), ranges.size(), 0);
  };
  EXPECT_EQ(of(page(0) - 1, 8), -FI_EINVAL);
  EXPECT_EQ(of(page(kPages) - 1, 2), -FI_EINVAL);
  EXPECT_EQ(of(page(kPages), 1), -FI_EINVAL);
  EXPECT_EQ(of(page(1), ~std::size_t{0}), -FI_EINVAL);
  EXPECT_EQ(of(page(kPages) - 1, 1), 0);
  EXPECT_EQ(fi_mr_refresh(mr.get(), nullptr, 1, 0), -FI_EINVAL);
  EXPECT_EQ(fi_mr_refresh(mr.get(), nullptr, 0, 1), -FI_EBADFLAGS);
  EXPECT_EQ(fi_control(&mr->fid, FI_REFRESH, nullptr), -FI_EINVAL);
}

// FI_MR_MMU_NOTIFY.
TEST_P(Refresh, OpensMemoryThatWasNotMappedBefore) {
  if (!required(FI_MR_MMU_NOTIFY)) GTEST_SKIP() << "memory is open when it is mapped";
  map(2, 2, PROT_NONE);
  map(5, 1, PROT_NONE);
  const Fid<fid_mr> mr = ready_region();
  const std::uint64_t key = fi_mr_key(mr.get());
  const std::size_t size = page_size();
  const auto expect_closed = [&](std::size_t first, std::size_t count) {
    expect_refused(key, kNotRefreshed, first * size, count * size);
  };
  expect_granted(key, 0, 2 * size);
  expect_granted(key, 4 * size, size);
  expect_closed(2, 1);
  expect_closed(1, 2);
  expect_refused(key, kNotRefreshed, 4 * size - 1, 1);
  map(2, 2, PROT_READ | PROT_WRITE);
  map(5, 1, PROT_READ | PROT_WRITE);
  expect_closed(2, 2);
  expect_closed(5, 1);
  EXPECT_EQ(refresh(mr.get(), 2, 1), 0);
  expect_granted(key, 0, 3 * size);
  expect_closed(3, 1);
  EXPECT_EQ(*page(3), 0) << "a refused access has written";
  EXPECT_EQ(fi_mr_refresh(mr.get(), nullptr, 0, 0), 0);
  expect_granted(key, 0, kPages * size);
}

TEST_P(Refresh, ClosesMemoryThatIsNoLongerMapped) {
  if (!required(FI_MR_MMU_NOTIFY)) GTEST_SKIP() << "memory is open when it is mapped";
  const Fid<fid_mr> mr = ready_region();
  const std::uint64_t key = fi_mr_key(mr.get());
  map(1, 1, PROT_NONE);
  ASSERT_EQ(mprotect(page(3), page_size(), PROT_READ), 0);
  EXPECT_EQ(fi_mr_refresh(mr.get(), nullptr, 0, 0), 0);
  expect_granted(key, 0, page_size());
  expect_refused(key, kNotRefreshed, page_size());
  expect_refused(key, kNotRefreshed, 3 * page_size());
  map(1, 1, PROT_READ | PROT_WRITE);
  EXPECT_EQ(refresh(mr.get(), 1, 1), 0);
  expect_granted(key, 0, 2 * page_size());
}

TEST_P(Refresh, OpensARegionOfWhichNothingWasMapped) {
  if (!required(FI_MR_MMU_NOTIFY)) GTEST_SKIP() << "memory is open when it is mapped";
  map(0, kPages, PROT_NONE);
  const Fid<fid_mr> mr = ready_region();
  const std::uint64_t key = fi_mr_key(mr.get());
  expect_refused(key, kNotRefreshed);
  map(0, kPages, PROT_READ | PROT_WRITE);
  expect_refused(key, kNotRefreshed);
  EXPECT_EQ(fi_mr_refresh(mr.get(), nullptr, 0, 0), 0);
  expect_granted(key, 0, kPages * page_size());
}

// A page that may only be read serves regions that peers only read.
TEST_P(Refresh, OpensMemoryWithTheProtectionThatTheRightsNeed) {
  if (!required(FI_MR_MMU_NOTIFY)) GTEST_SKIP() << "memory is open when it is mapped";
  ASSERT_EQ(mprotect(page(0), kPages * page_size(), PROT_READ), 0);
  const auto reg_for = [&](std::uint64_t access) {
    auto mr = open_fid<fid_mr>([&](fid_mr** out) {
      return fi_mr_reg(domain(), page(0), kPages * page_size(), access, 0, Endpoint::next_key(), 0,
                       out, nullptr);
    });
    make_ready(mr.get());
    EXPECT_EQ(fi_mr_refresh(mr.get(), nullptr, 0, 0), 0);
    return mr;
  };
  const Fid<fid_mr> readable = reg_for(FI_REMOTE_READ);
  const Fid<fid_mr> writable = reg_for(FI_REMOTE_WRITE);
  const auto access = [&](Kind kind, const Fid<fid_mr>& mr) {
    const auto base = reinterpret_cast<std::uint64_t>(page(0));
    return world_.target().post({.kind = kind,
                                 .length = 64,
                                 .peer = world_.to_initiator(),
                                 .remote_address = required(FI_MR_VIRT_ADDR) ? base : 0,
                                 .key = fi_mr_key(mr.get())});
  };
  world_.target().wait_success(access(Kind::kRead, readable));
  const auto refused = world_.target().wait_error(access(Kind::kWrite, writable), FI_EACCES);
  EXPECT_EQ(refused.prov_errno, kNotRefreshed);
}

INSTANTIATE_TEST_SUITE_P(Regions, Refresh, every_placement(), placement_name);

// A region that a domain requires to be refreshed, every second page of which cannot be accessed.
TEST(RefreshedParts, MoreThanARegionHasAreRefused) {
  Options options;
  options.mr_mode = kRequirableModes;
  const Domain domain(options);
  ASSERT_TRUE(domain.ok());
  if (domain.info()->domain_attr->mr_mode != FI_MR_MMU_NOTIFY) GTEST_SKIP() << "no parts";
  constexpr std::size_t kMost = 1024;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t length = (kMost + 1) * page;
  void* const memory =
      mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* const bytes = static_cast<std::uint8_t*>(memory);
  fid_mr* mr = nullptr;
  const auto reg = [&](std::size_t size) {
    return fi_mr_reg(domain.get(), memory, size, FI_REMOTE_WRITE, 0, Endpoint::next_key(), 0, &mr,
                     nullptr);
  };
  ASSERT_EQ(reg(length), 0);
  for (std::size_t i = 1; i <= kMost; i += 2)
    ASSERT_EQ(mprotect(bytes + i * page, page, PROT_NONE), 0);
  EXPECT_EQ(fi_mr_refresh(mr, nullptr, 0, 0), -FI_ENOSPC);
  EXPECT_EQ(fi_close(&mr->fid), 0);
  EXPECT_EQ(reg(length), -FI_ENOSPC);
  EXPECT_EQ(reg(length - page), 0);
  EXPECT_EQ(fi_close(&mr->fid), 0);
  EXPECT_EQ(munmap(memory, length), 0);
}

}  // namespace
}  // namespace weft::conformance
