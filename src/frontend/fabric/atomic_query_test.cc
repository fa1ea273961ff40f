// SPDX-License-Identifier: BSD-2-Clause
// Does weft say which atomic operations it has, and refuse all others?
#include "atomic_query.h"

#include <gtest/gtest.h>
#include <rdma/fi_errno.h>

#include <cstring>

namespace weft::fabric {
namespace {

int query(fi_datatype type, fi_op op, std::uint64_t flags, fi_atomic_attr& attributes) {
  return query_atomic(type, op, &attributes, flags);
}

TEST(QueryAtomic, SaysHowManyElementsOneCallTakesAndHowLargeTheyAre) {
  fi_atomic_attr attributes{};
  EXPECT_EQ(query(FI_UINT64, FI_SUM, 0, attributes), 0);
  EXPECT_EQ(attributes.size, 8u);
  EXPECT_EQ(attributes.count, 512u);
  EXPECT_EQ(query(FI_LONG_DOUBLE_COMPLEX, FI_CSWAP, FI_COMPARE_ATOMIC, attributes), 0);
  EXPECT_EQ(attributes.size, 2 * sizeof(long double));
  EXPECT_EQ(attributes.count, 4096 / (2 * sizeof(long double)));
  EXPECT_EQ(query(FI_UINT128, FI_ATOMIC_READ, FI_FETCH_ATOMIC, attributes), 0);
  EXPECT_EQ(attributes.size, 16u);
}

TEST(QueryAtomic, RefusesWhatAFormDoesNotHave) {
  fi_atomic_attr attributes{};
  EXPECT_EQ(query(FI_UINT64, FI_ATOMIC_READ, 0, attributes), -FI_EOPNOTSUPP);
  EXPECT_EQ(query(FI_UINT64, FI_CSWAP, 0, attributes), -FI_EOPNOTSUPP);
  EXPECT_EQ(query(FI_UINT64, FI_CSWAP, FI_FETCH_ATOMIC, attributes), -FI_EOPNOTSUPP);
  EXPECT_EQ(query(FI_UINT64, FI_SUM, FI_COMPARE_ATOMIC, attributes), -FI_EOPNOTSUPP);
  EXPECT_EQ(query(FI_FLOAT, FI_BOR, 0, attributes), -FI_EOPNOTSUPP);
  EXPECT_EQ(query(FI_DOUBLE_COMPLEX, FI_MIN, 0, attributes), -FI_EOPNOTSUPP);
}

TEST(QueryAtomic, RefusesNumbersThatNameNothing) {
  fi_atomic_attr attributes{};
  for (const int number : {-1, 19, 256, 257, 512, 0x7fffffff}) {
    fi_op op{};
    std::memcpy(&op, &number, sizeof op);
    EXPECT_EQ(query_atomic(FI_UINT64, op, &attributes, 0), -FI_EOPNOTSUPP) << number;
    fi_datatype type{};
    std::memcpy(&type, &number, sizeof type);
    EXPECT_EQ(query_atomic(type, FI_SUM, &attributes, 0), -FI_EOPNOTSUPP) << number;
  }
}

TEST(QueryAtomic, RefusesFlagsThatMeanNothingTogether) {
  fi_atomic_attr attributes{};
  EXPECT_EQ(query(FI_UINT64, FI_SUM, FI_TAGGED, attributes), -FI_EOPNOTSUPP);
  EXPECT_EQ(query(FI_UINT64, FI_SUM, FI_TAGGED | FI_FETCH_ATOMIC, attributes), -FI_EOPNOTSUPP);
  EXPECT_EQ(query(FI_UINT64, FI_SUM, FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC, attributes),
            -FI_EBADFLAGS);
  EXPECT_EQ(query(FI_UINT64, FI_SUM, FI_INJECT, attributes), -FI_EBADFLAGS);
  EXPECT_EQ(query_atomic(FI_UINT64, FI_SUM, nullptr, 0), -FI_EINVAL);
}

TEST(AtomicValid, AgreesWithTheQueryOfEachForm) {
  const struct {
    int (*valid)(fid_ep*, fi_datatype, fi_op, std::size_t*);
    std::uint64_t flags;
  } forms[] = {{atomic_valid<AtomicForm::kBase>, 0},
               {atomic_valid<AtomicForm::kFetch>, FI_FETCH_ATOMIC},
               {atomic_valid<AtomicForm::kCompare>, FI_COMPARE_ATOMIC}};
  for (const auto& form : forms) {
    for (int type = 0; type < FI_DATATYPE_LAST + 3; ++type) {
      for (int op = 0; op < FI_ATOMIC_OP_LAST + 1; ++op) {
        fi_atomic_attr attributes{};
        std::size_t count = 0;
        const auto t = static_cast<fi_datatype>(type);
        const auto o = static_cast<fi_op>(op);
        EXPECT_EQ(form.valid(nullptr, t, o, &count), query(t, o, form.flags, attributes));
        EXPECT_EQ(count, attributes.count);
      }
    }
    EXPECT_EQ(form.valid(nullptr, FI_UINT64, FI_SUM, nullptr), -FI_EINVAL);
  }
}

}  // namespace
}  // namespace weft::fabric
