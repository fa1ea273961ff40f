// SPDX-License-Identifier: BSD-2-Clause
// Does ibv_exp_reg_shared_mr(3) map the same memory, with keys and rights of its own?
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <string>

#include "test_support.h"

namespace weft::verbs {
namespace {

constexpr std::size_t kLength = 2 * 4096;
constexpr std::uint64_t kReads = IBV_EXP_ACCESS_SHARED_MR_USER_READ;
constexpr std::uint64_t kReadsAndWrites = kReads | IBV_EXP_ACCESS_SHARED_MR_USER_WRITE;
constexpr std::uint64_t kNoRdma = IBV_EXP_ACCESS_NO_RDMA;

// How this process maps that address: "rw-s", or nothing.
std::string mapping_of(const void* address) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::size_t dash = 0;
    const std::uintptr_t first = std::stoul(line, &dash, 16);
    const std::uintptr_t end = std::stoul(line.substr(dash + 1), nullptr, 16);
    if (wanted >= first && wanted < end) return line.substr(line.find(' ') + 1, 4);
  }
  return "";
}

class AttachedRegion : public VerbsTest {
 protected:
  void SetUp() override {
    VerbsTest::SetUp();
    creator_ = create(kReadsAndWrites);
    ASSERT_NE(creator_, nullptr);
  }
  void TearDown() override {
    if (creator_ != nullptr) {
      EXPECT_EQ(ibv_dereg_mr(creator_), 0);
    }
    VerbsTest::TearDown();
  }
  ibv_mr* create(std::uint64_t grants) {
    ibv_exp_reg_mr_in in{};
    in.pd = pd_;
    in.length = kLength;
    in.exp_access = IBV_EXP_ACCESS_LOCAL_WRITE | IBV_EXP_ACCESS_ALLOCATE_MR | grants;
    return ibv_exp_reg_mr(&in);
  }
  ibv_mr* attach(std::uint64_t access, void* address = nullptr) {
    ibv_exp_reg_shared_mr_in in{creator_->handle, pd_, address, access, 0};
    errno = 0;
    return ibv_exp_reg_shared_mr(&in);
  }
  void destroy_creator() {
    EXPECT_EQ(ibv_dereg_mr(creator_), 0);
    creator_ = nullptr;
  }
  void expect_refused(std::uint64_t access, int error) {
    EXPECT_EQ(attach(access), nullptr) << access;
    EXPECT_EQ(errno, error) << access;
  }
  static volatile unsigned char* bytes(ibv_mr* region) {
    return static_cast<volatile unsigned char*>(region->addr);
  }

  ibv_mr* creator_ = nullptr;
};

TEST_F(AttachedRegion, IsTheSameMemoryWithKeysOfItsOwn) {
  ibv_mr* const region = attach(IBV_EXP_ACCESS_LOCAL_WRITE);
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(region->length, kLength);
  EXPECT_EQ(region->pd, pd_);
  EXPECT_NE(region->addr, creator_->addr);
  EXPECT_NE(region->lkey, creator_->lkey);
  EXPECT_NE(region->rkey, creator_->rkey);
  EXPECT_NE(region->lkey, 0U);
  bytes(region)[kLength - 1] = 5;
  EXPECT_EQ(bytes(creator_)[kLength - 1], 5);
  bytes(creator_)[0] = 6;
  EXPECT_EQ(bytes(region)[0], 6);
  EXPECT_EQ(ibv_dereg_mr(region), 0);
}

TEST_F(AttachedRegion, IsWritableWhereARightNeedsThat) {
  constexpr std::uint64_t kLocal = IBV_EXP_ACCESS_LOCAL_WRITE;
  for (const std::uint64_t access : {kLocal, kLocal | IBV_EXP_ACCESS_REMOTE_WRITE,
                                     kLocal | IBV_EXP_ACCESS_REMOTE_ATOMIC, kLocal | kNoRdma}) {
    ibv_mr* const region = attach(access);
    ASSERT_NE(region, nullptr) << access;
    EXPECT_EQ(mapping_of(region->addr), "rw-s") << access;
    EXPECT_EQ(ibv_dereg_mr(region), 0);
  }
}

TEST_F(AttachedRegion, IsReadOnlyElse) {
  for (const std::uint64_t access :
       {std::uint64_t{0}, std::uint64_t{IBV_EXP_ACCESS_REMOTE_READ}, kNoRdma}) {
    ibv_mr* const region = attach(access);
    ASSERT_NE(region, nullptr) << access;
    EXPECT_EQ(mapping_of(region->addr), "r--s") << access;
    EXPECT_EQ(ibv_dereg_mr(region), 0);
  }
}

TEST_F(AttachedRegion, GainsNoRightToWriteWhereItIsMappedReadOnly) {
  ibv_mr* const region = attach(IBV_EXP_ACCESS_REMOTE_READ);
  ASSERT_NE(region, nullptr);
  const auto change = [&](int access) {
    errno = 0;
    return ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, access);
  };
  EXPECT_EQ(change(IBV_ACCESS_LOCAL_WRITE), IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(errno, EACCES);
  EXPECT_EQ(change(0), 0);
  EXPECT_EQ(ibv_dereg_mr(region), 0);
}

TEST_F(AttachedRegion, WithoutRdmaIsOnlyMapped) {
  ibv_mr* const region = attach(kNoRdma | IBV_EXP_ACCESS_LOCAL_WRITE);
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(region->lkey, 0U);
  EXPECT_EQ(region->rkey, 0U);
  EXPECT_EQ(region->handle, 0U);
  EXPECT_EQ(region->pd, pd_);
  EXPECT_EQ(region->length, kLength);
  bytes(region)[1] = 7;
  EXPECT_EQ(bytes(creator_)[1], 7);
  weft_exp_mr_memory described{};
  EXPECT_EQ(weft_exp_query_mr_memory(region, &described), 0);
  EXPECT_EQ(ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_PD, pd_, nullptr, 0, 0),
            IBV_REREG_MR_ERR_INPUT);
  void* const address = region->addr;
  EXPECT_EQ(ibv_dereg_mr(region), 0);
  EXPECT_EQ(mapping_of(address), "");
}

TEST_F(AttachedRegion, LiesAtTheHintWhereThatIsFree) {
  // Far from where the kernel would map something else in its place.
  void* const far = reinterpret_cast<void*>(0x2000'0000'0000);
  void* const hole = ::mmap(far, kLength, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(hole, MAP_FAILED);
  ibv_mr* const elsewhere = attach(0, hole);
  ASSERT_NE(elsewhere, nullptr);
  EXPECT_NE(elsewhere->addr, hole);
  ASSERT_EQ(::munmap(hole, kLength), 0);
  ibv_mr* const there = attach(0, hole);
  ASSERT_NE(there, nullptr);
  EXPECT_EQ(there->addr, hole);
  EXPECT_EQ(ibv_dereg_mr(there), 0);
  EXPECT_EQ(ibv_dereg_mr(elsewhere), 0);
}

TEST_F(AttachedRegion, OutlivesItsCreator) {
  ibv_mr* const region = attach(0);
  ASSERT_NE(region, nullptr);
  bytes(creator_)[3] = 9;
  destroy_creator();
  EXPECT_EQ(bytes(region)[3], 9);
  EXPECT_EQ(ibv_dereg_mr(region), 0);
}

TEST_F(AttachedRegion, IsNotMadeOnceTheCreatorIsGone) {
  ibv_exp_reg_shared_mr_in in{creator_->handle, pd_, nullptr, 0, 0};
  destroy_creator();
  errno = 0;
  EXPECT_EQ(ibv_exp_reg_shared_mr(&in), nullptr);
  EXPECT_EQ(errno, ENOENT);
}

TEST_F(AttachedRegion, IsNotMadeOnceTheCreatorHasMoved) {
  static std::byte other[64];
  ASSERT_EQ(ibv_rereg_mr(creator_, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, other, sizeof other,
                         IBV_ACCESS_LOCAL_WRITE),
            0);
  expect_refused(0, ENOENT);
}

TEST_F(AttachedRegion, NeedsAnIdThatThereIs) {
  for (const std::uint32_t id : {std::uint32_t{0}, creator_->handle + 1}) {
    ibv_exp_reg_shared_mr_in in{id, pd_, nullptr, 0, 0};
    errno = 0;
    EXPECT_EQ(ibv_exp_reg_shared_mr(&in), nullptr);
    EXPECT_EQ(errno, ENOENT);
  }
}

TEST_F(AttachedRegion, RefusesEveryBitOfTheMask) {
  for (const std::uint32_t mask : {1U, 1U << 31}) {
    ibv_exp_reg_shared_mr_in in{creator_->handle, pd_, nullptr, 0, mask};
    errno = 0;
    EXPECT_EQ(ibv_exp_reg_shared_mr(&in), nullptr);
    EXPECT_EQ(errno, EINVAL);
  }
}

TEST_F(AttachedRegion, IsNotSharedOn) {
  for (unsigned bit = 6; bit < 12; ++bit) expect_refused(IBV_EXP_START_FLAG << bit, EINVAL);
  expect_refused(IBV_EXP_ACCESS_ALLOCATE_MR, EINVAL);
}

TEST_F(AttachedRegion, RefusesRightsAsTheCreatorsVerb) {
  expect_refused(IBV_EXP_ACCESS_RESERVED, EINVAL);
  expect_refused(IBV_EXP_ACCESS_REMOTE_WRITE, EINVAL);
  expect_refused(IBV_EXP_ACCESS_REMOTE_ATOMIC, EINVAL);
  expect_refused(IBV_EXP_ACCESS_PHYSICAL_ADDR, EOPNOTSUPP);
  expect_refused(IBV_EXP_ACCESS_TUNNELED_ATOMIC, EOPNOTSUPP);
}

TEST_F(AttachedRegion, NeedsADomain) {
  ibv_exp_reg_shared_mr_in in{creator_->handle, nullptr, nullptr, 0, 0};
  errno = 0;
  EXPECT_EQ(ibv_exp_reg_shared_mr(&in), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

// A child lets go of what is its parent's, and the parent's region stays.
TEST_F(AttachedRegion, StaysWhenAForkedChildDeregistersIt) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);
    ::_exit(ibv_dereg_mr(creator_) == 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ibv_mr* const region = attach(0);
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(ibv_dereg_mr(region), 0);
}

TEST_F(AttachedRegion, IsNotRegisteredByAForkedChildInItsParentsDomain) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);
    ::_exit(attach(0) == nullptr && errno == EPERM && create(kReads) == nullptr && errno == EPERM
                ? 0
                : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace weft::verbs
