// SPDX-License-Identifier: BSD-2-Clause
// Which atomic operations does weft offer, and what do libfabric's words for them mean?
// fi_atomic(3)
#include "atomic_query.h"

#include <rdma/fi_errno.h>

#include "c_enum.h"
#include "memory/atomic_kernels.h"

namespace weft::fabric {
namespace {

// Whether both sides have the same number for the same thing.
template <class Word>
constexpr bool same(int libfabric, Word ours) {
  return libfabric == static_cast<int>(ours);
}

constexpr bool same_operations() {
  using enum AtomicOp;
  return same(FI_MIN, kMin) && same(FI_MAX, kMax) && same(FI_SUM, kSum) &&
         same(FI_PROD, kProduct) && same(FI_LOR, kLogicalOr) && same(FI_LAND, kLogicalAnd) &&
         same(FI_BOR, kBitOr) && same(FI_BAND, kBitAnd) && same(FI_LXOR, kLogicalXor) &&
         same(FI_BXOR, kBitXor) && same(FI_ATOMIC_READ, kRead) && same(FI_ATOMIC_WRITE, kWrite) &&
         same(FI_CSWAP, kSwapIfEqual) && same(FI_CSWAP_NE, kSwapIfNotEqual) &&
         same(FI_CSWAP_LE, kSwapIfLessOrEqual) && same(FI_CSWAP_LT, kSwapIfLess) &&
         same(FI_CSWAP_GE, kSwapIfGreaterOrEqual) && same(FI_CSWAP_GT, kSwapIfGreater) &&
         same(FI_MSWAP, kMaskedSwap) && FI_ATOMIC_OP_LAST == kAtomicOps;
}
static_assert(same_operations());

constexpr bool same_types() {
  using enum AtomicType;
  return same(FI_INT8, kInt8) && same(FI_UINT8, kUint8) && same(FI_INT16, kInt16) &&
         same(FI_UINT16, kUint16) && same(FI_INT32, kInt32) && same(FI_UINT32, kUint32) &&
         same(FI_INT64, kInt64) && same(FI_UINT64, kUint64) && same(FI_FLOAT, kFloat) &&
         same(FI_DOUBLE, kDouble) && same(FI_FLOAT_COMPLEX, kFloatComplex) &&
         same(FI_DOUBLE_COMPLEX, kDoubleComplex) && same(FI_LONG_DOUBLE, kLongDouble) &&
         same(FI_LONG_DOUBLE_COMPLEX, kLongDoubleComplex) && same(FI_INT128, kInt128) &&
         same(FI_UINT128, kUint128);
}
static_assert(same_types());

}  // namespace

Result<AtomicAction> action_of(AtomicForm form, int type, int op) {
  constexpr int kTypes = kAtomicTypes;
  constexpr int kOps = kAtomicOps;
  if (type >= 0 && type < kTypes && op >= 0 && op < kOps) {
    const AtomicAction action{form, static_cast<AtomicOp>(op), static_cast<AtomicType>(type)};
    if (memory::meaningful(action)) return action;
  }
  return Error{FI_EOPNOTSUPP, {}};
}

int check_atomic(AtomicForm form, const fi_datatype& type, const fi_op& op, std::size_t* count) {
  if (count == nullptr) return -FI_EINVAL;
  const Result<AtomicAction> action = action_of(form, number_of(type), number_of(op));
  if (!action) return -action.error().code;
  *count = kMaxAtomicBytes / size_of(action.value().type);
  return 0;
}

int query_atomic(const fi_datatype& type, const fi_op& op, fi_atomic_attr* attributes,
                 std::uint64_t flags) {
  if (attributes == nullptr) return -FI_EINVAL;
  if ((flags & FI_TAGGED) != 0) return -FI_EOPNOTSUPP;  // no tagged buffer is a target
  AtomicForm form = AtomicForm::kBase;
  if (flags == FI_FETCH_ATOMIC) {
    form = AtomicForm::kFetch;
  } else if (flags == FI_COMPARE_ATOMIC) {
    form = AtomicForm::kCompare;
  } else if (flags != 0) {
    return -FI_EBADFLAGS;
  }
  if (const int refused = check_atomic(form, type, op, &attributes->count)) return refused;
  attributes->size = size_of(static_cast<AtomicType>(number_of(type)));
  return 0;
}

}  // namespace weft::fabric
