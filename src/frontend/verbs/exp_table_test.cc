// SPDX-License-Identifier: BSD-2-Clause
// Do the experimental verbs find their table, and answer ENOSYS where there is none?
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "test_support.h"

namespace weft::verbs {
namespace {

// The context of some libibverbs, with memory in front of it that is no table of Weft.
class SomeLibrary : public testing::Test {
 protected:
  SomeLibrary() {
    std::memset(memory_.front, 0xEE, sizeof memory_.front);
    memory_.verbs.sz = sizeof memory_.verbs;
    context()->abi_compat = __VERBS_ABI_IS_EXTENDED;
    pd_.context = mr_.context = context();
    in_.pd = shared_in_.pd = &pd_;
  }
  ibv_context* context() { return &memory_.verbs.context; }

  // Puts a table in front of the context that is `size` bytes long and says so.
  verbs_context_exp& put_table(std::size_t size) {
    memory_.verbs._ABI_placeholder3 = WEFT_VERBS_CONTEXT_EXP;
    const std::size_t end = sizeof memory_.front + sizeof memory_.verbs - memory_.verbs.sz;
    auto* const table = reinterpret_cast<verbs_context_exp*>(memory_.front + end) - 1;
    table->sz = size;
    return *table;
  }

  void expect_no_table() {
    errno = 0;
    EXPECT_EQ(ibv_exp_reg_mr(&in_), nullptr);
    EXPECT_EQ(errno, ENOSYS);
    errno = 0;
    EXPECT_EQ(ibv_exp_reg_shared_mr(&shared_in_), nullptr);
    EXPECT_EQ(errno, ENOSYS);
    EXPECT_EQ(ibv_exp_query_device(context(), &attributes_), ENOSYS);
    EXPECT_EQ(weft_exp_query_mr_memory(&mr_, &described_), ENOSYS);
  }

  struct {
    std::byte front[512];
    verbs_context verbs;
  } memory_{};
  ibv_pd pd_{};
  ibv_mr mr_{};
  ibv_exp_reg_mr_in in_{};
  ibv_exp_reg_shared_mr_in shared_in_{};
  ibv_exp_device_attr attributes_{};
  weft_exp_mr_memory described_{};
};

TEST_F(SomeLibrary, WithoutATableAnswersEnosys) { expect_no_table(); }

TEST_F(SomeLibrary, OfMellanoxHasATableOfAnotherLayout) {
  memory_.verbs._ABI_placeholder3 = 1ULL << 62;
  expect_no_table();
}

TEST_F(SomeLibrary, BeforeTheExtendedInterfaceHasNoTable) {
  put_table(sizeof(verbs_context_exp));
  context()->abi_compat = nullptr;
  expect_no_table();
}

TEST_F(SomeLibrary, WithAShorterTableHasOnlyTheLastCalls) {
  static ibv_mr made;
  put_table(2 * sizeof(void*)).exp_reg_mr = [](ibv_exp_reg_mr_in*) { return &made; };
  EXPECT_EQ(ibv_exp_reg_mr(&in_), &made);
  errno = 0;
  EXPECT_EQ(ibv_exp_reg_shared_mr(&shared_in_), nullptr);
  EXPECT_EQ(errno, ENOSYS);
  EXPECT_EQ(ibv_exp_query_device(context(), &attributes_), ENOSYS);
}

TEST_F(SomeLibrary, WithAnEmptyPlaceInItsTableDoesNotHaveThatCall) {
  put_table(sizeof(verbs_context_exp)) = {};
  put_table(sizeof(verbs_context_exp));
  expect_no_table();
}

TEST_F(SomeLibrary, WithLongerTablesHasTheCallsAtTheSameDistanceFromTheEnd) {
  static ibv_mr made;
  memory_.verbs.sz += 64;
  put_table(sizeof(verbs_context_exp) + 64).exp_reg_mr = [](ibv_exp_reg_mr_in*) { return &made; };
  EXPECT_EQ(ibv_exp_reg_mr(&in_), &made);
}

TEST_F(SomeLibrary, IsNotAskedForCallsThatWeftLeavesOut) {
  ibv_exp_prefetch_attr prefetch{};
  EXPECT_EQ(ibv_exp_prefetch_mr(&mr_, &prefetch), ENOSYS);
  EXPECT_EQ(ibv_exp_rereg_mr(&mr_, IBV_EXP_REREG_MR_CHANGE_PD, &pd_, nullptr, 0, 0, nullptr),
            ENOSYS);
  EXPECT_EQ(ibv_exp_setenv(context(), "MLX_MR_ALLOC_TYPE", "ALL", 1), ENOSYS);
  EXPECT_EQ(ibv_exp_use_priv_env(context()), ENOSYS);
}

class OwnLibrary : public VerbsTest {};

TEST_F(OwnLibrary, HasTheTableAndNeverTheBitOfMellanox) {
  const verbs_context_exp* const table = verbs_get_exp_ctx(context_);
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->sz, sizeof *table);
  EXPECT_EQ(verbs_get_exp_ctx_op(context_, query_mr_memory), table);
  EXPECT_EQ(verbs_get_ctx(context_)->_ABI_placeholder3 & (1ULL << 62), 0U);
}

TEST_F(OwnLibrary, RefusesNullPointers) {
  errno = 0;
  EXPECT_EQ(ibv_exp_reg_mr(nullptr), nullptr);
  EXPECT_EQ(errno, EINVAL);
  errno = 0;
  EXPECT_EQ(ibv_exp_reg_shared_mr(nullptr), nullptr);
  EXPECT_EQ(errno, EINVAL);
  ibv_exp_device_attr attributes{};
  EXPECT_EQ(ibv_exp_query_device(nullptr, &attributes), EINVAL);
  EXPECT_EQ(ibv_exp_query_device(context_, nullptr), EINVAL);
  weft_exp_mr_memory described{};
  EXPECT_EQ(weft_exp_query_mr_memory(nullptr, &described), EINVAL);
}

TEST_F(OwnLibrary, TellsOfTheDeviceWhatThePlainVerbTells) {
  ibv_device_attr plain{};
  ASSERT_EQ(ibv_query_device(context_, &plain), 0);
  ibv_exp_device_attr attributes{};
  ASSERT_EQ(ibv_exp_query_device(context_, &attributes), 0);
  EXPECT_STREQ(attributes.fw_ver, plain.fw_ver);
  EXPECT_EQ(attributes.node_guid, plain.node_guid);
  EXPECT_EQ(attributes.max_mr_size, plain.max_mr_size);
  EXPECT_EQ(attributes.max_qp_wr, plain.max_qp_wr);
  EXPECT_EQ(attributes.max_sge, plain.max_sge);
  EXPECT_EQ(attributes.exp_atomic_cap, IBV_EXP_ATOMIC_HCA);
  EXPECT_EQ(attributes.max_pkeys, plain.max_pkeys);
  EXPECT_EQ(attributes.phys_port_cnt, plain.phys_port_cnt);
  EXPECT_EQ(attributes.reserved, 0);
  EXPECT_EQ(attributes.comp_mask, 0U);
}

TEST_F(OwnLibrary, IsNotAskedForGroupsThatTheHeaderDoesNotHave) {
  for (const std::uint32_t bit :
       {std::uint32_t{IBV_EXP_DEVICE_ATTR_RESERVED}, std::uint32_t{1} << 31}) {
    ibv_exp_device_attr attributes{};
    attributes.comp_mask = IBV_EXP_DEVICE_ATTR_ODP | bit;
    EXPECT_EQ(ibv_exp_query_device(context_, &attributes), EINVAL);
  }
}

TEST_F(OwnLibrary, TellsWhichGroupsOfItsAnswerAreValid) {
  ibv_exp_device_attr attributes{};
  attributes.comp_mask = IBV_EXP_DEVICE_ATTR_RESERVED - 1;
  attributes.max_dct = 47;
  ASSERT_EQ(ibv_exp_query_device(context_, &attributes), 0);
  EXPECT_EQ(attributes.comp_mask, IBV_EXP_DEVICE_ATTR_WITH_TIMESTAMP_MASK |
                                      IBV_EXP_DEVICE_ATTR_WITH_HCA_CORE_CLOCK |
                                      IBV_EXP_DEVICE_ATTR_EXP_CAP_FLAGS | IBV_EXP_DEVICE_ATTR_ODP);
  EXPECT_EQ(attributes.max_dct, 47);
  EXPECT_EQ(attributes.timestamp_mask, UINT64_MAX);
  EXPECT_EQ(attributes.hca_core_clock, 1'000'000U);
  EXPECT_EQ(attributes.odp_caps.general_odp_caps, IBV_EXP_ODP_SUPPORT);
  EXPECT_EQ(attributes.odp_caps.per_transport_caps.rc_odp_caps,
            IBV_EXP_ODP_SUPPORT_SEND | IBV_EXP_ODP_SUPPORT_RECV | IBV_EXP_ODP_SUPPORT_WRITE |
                IBV_EXP_ODP_SUPPORT_READ | IBV_EXP_ODP_SUPPORT_ATOMIC |
                IBV_EXP_ODP_SUPPORT_SRQ_RECV);
  EXPECT_EQ(attributes.odp_caps.per_transport_caps.dc_odp_caps, 0U);
}

TEST_F(OwnLibrary, SaysThatItAllocatesAndSharesMemory) {
  ibv_device_attr plain{};
  ASSERT_EQ(ibv_query_device(context_, &plain), 0);
  ibv_exp_device_attr attributes{};
  attributes.comp_mask = IBV_EXP_DEVICE_ATTR_EXP_CAP_FLAGS;
  ASSERT_EQ(ibv_exp_query_device(context_, &attributes), 0);
  EXPECT_EQ(attributes.comp_mask, IBV_EXP_DEVICE_ATTR_EXP_CAP_FLAGS);
  EXPECT_EQ(attributes.exp_device_cap_flags, plain.device_cap_flags | IBV_EXP_DEVICE_ODP |
                                                 IBV_EXP_DEVICE_MR_ALLOCATE |
                                                 IBV_EXP_DEVICE_SHARED_MR);
}

}  // namespace
}  // namespace weft::verbs
