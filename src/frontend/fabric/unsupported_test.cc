// SPDX-License-Identifier: BSD-2-Clause
// Does every operation that weft does not offer say so, whatever its signature?
#include "unsupported.h"

#include <gtest/gtest.h>

#include <cstring>

namespace weft::fabric {
namespace {

template <class Table>
std::size_t null_entries(const Table& table) {
  static_assert(sizeof(Table) % sizeof(void*) == 0);
  std::size_t nulls = 0;
  for (std::size_t at = sizeof(std::size_t); at < sizeof table; at += sizeof(void*)) {
    void* entry = nullptr;
    std::memcpy(&entry, reinterpret_cast<const char*>(&table) + at, sizeof entry);
    nulls += entry == nullptr;
  }
  return nulls;
}

template <class Table>
class TableOf : public testing::Test {};
using Complete = testing::Types<fi_ops, fi_ops_fabric, fi_ops_domain, fi_ops_mr, fi_ops_ep,
                                fi_ops_cm, fi_ops_msg, fi_ops_tagged, fi_ops_rma, fi_ops_atomic,
                                fi_ops_collective, fi_ops_cntr>;
TYPED_TEST_SUITE(TableOf, Complete);

TYPED_TEST(TableOf, HasItsOwnSizeAndNoNullEntry) {
  const auto table = unsupported_operations<TypeParam>();
  EXPECT_EQ(table.size, sizeof(TypeParam));
  EXPECT_EQ(null_entries(table), 0U);
}

TEST(TablesWithTexts, LeaveOnlyThoseNull) {
  EXPECT_EQ(null_entries(unsupported_operations<fi_ops_av>()), 1U);
  EXPECT_EQ(unsupported_operations<fi_ops_av>().straddr, nullptr);
  EXPECT_EQ(null_entries(unsupported_operations<fi_ops_cq>()), 1U);
  EXPECT_EQ(unsupported_operations<fi_ops_cq>().strerror, nullptr);
  EXPECT_EQ(null_entries(unsupported_operations<fi_ops_eq>()), 1U);
  EXPECT_EQ(unsupported_operations<fi_ops_eq>().strerror, nullptr);
}

TEST(Unsupported, ReturnsEnosysInEveryReturnType) {
  EXPECT_EQ(unsupported_operations<fi_ops>().close(nullptr), -FI_ENOSYS);
  EXPECT_EQ(
      unsupported_operations<fi_ops_rma>().read(nullptr, nullptr, 0, nullptr, 0, 0, 0, nullptr),
      -FI_ENOSYS);
  EXPECT_EQ(unsupported_operations<fi_ops_cm>().join(nullptr, nullptr, 0, nullptr, nullptr),
            -FI_ENOSYS);
}

TEST(Unsupported, CountsNothing) {
  EXPECT_EQ(unsupported_operations<fi_ops_cntr>().read(nullptr), 0U);
}

TEST(Refused, ReturnsEperm) {
  EXPECT_EQ(all_answering<fi_ops>(kRefused).close(nullptr), -FI_EPERM);
}

}  // namespace
}  // namespace weft::fabric
