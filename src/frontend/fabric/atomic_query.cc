// SPDX-License-Identifier: BSD-2-Clause
// Which atomic operations does weft offer, and what do libfabric's words for them mean?
// fi_atomic(3)
#include "atomic_query.h"

#include <rdma/fi_errno.h>

#include "c_enum.h"
#include "memory/atomic_kernels.h"

namespace weft::fabric {
namespace {

static_assert(FI_MIN == static_cast<int>(AtomicOp::kMin) &&
              FI_MAX == static_cast<int>(AtomicOp::kMax) &&
              FI_SUM == static_cast<int>(AtomicOp::kSum) &&
              FI_PROD == static_cast<int>(AtomicOp::kProduct) &&
              FI_LOR == static_cast<int>(AtomicOp::kLogicalOr) &&
              FI_LAND == static_cast<int>(AtomicOp::kLogicalAnd) &&
              FI_BOR == static_cast<int>(AtomicOp::kBitOr) &&
              FI_BAND == static_cast<int>(AtomicOp::kBitAnd) &&
              FI_LXOR == static_cast<int>(AtomicOp::kLogicalXor) &&
              FI_BXOR == static_cast<int>(AtomicOp::kBitXor) &&
              FI_ATOMIC_READ == static_cast<int>(AtomicOp::kRead) &&
              FI_ATOMIC_WRITE == static_cast<int>(AtomicOp::kWrite) &&
              FI_CSWAP == static_cast<int>(AtomicOp::kSwapIfEqual) &&
              FI_CSWAP_NE == static_cast<int>(AtomicOp::kSwapIfNotEqual) &&
              FI_CSWAP_LE == static_cast<int>(AtomicOp::kSwapIfLessOrEqual) &&
              FI_CSWAP_LT == static_cast<int>(AtomicOp::kSwapIfLess) &&
              FI_CSWAP_GE == static_cast<int>(AtomicOp::kSwapIfGreaterOrEqual) &&
              FI_CSWAP_GT == static_cast<int>(AtomicOp::kSwapIfGreater) &&
              FI_MSWAP == static_cast<int>(AtomicOp::kMaskedSwap) &&
              FI_ATOMIC_OP_LAST == kAtomicOps);
static_assert(FI_INT8 == static_cast<int>(AtomicType::kInt8) &&
              FI_UINT8 == static_cast<int>(AtomicType::kUint8) &&
              FI_INT16 == static_cast<int>(AtomicType::kInt16) &&
              FI_UINT16 == static_cast<int>(AtomicType::kUint16) &&
              FI_INT32 == static_cast<int>(AtomicType::kInt32) &&
              FI_UINT32 == static_cast<int>(AtomicType::kUint32) &&
              FI_INT64 == static_cast<int>(AtomicType::kInt64) &&
              FI_UINT64 == static_cast<int>(AtomicType::kUint64) &&
              FI_FLOAT == static_cast<int>(AtomicType::kFloat) &&
              FI_DOUBLE == static_cast<int>(AtomicType::kDouble) &&
              FI_FLOAT_COMPLEX == static_cast<int>(AtomicType::kFloatComplex) &&
              FI_DOUBLE_COMPLEX == static_cast<int>(AtomicType::kDoubleComplex) &&
              FI_LONG_DOUBLE == static_cast<int>(AtomicType::kLongDouble) &&
              FI_LONG_DOUBLE_COMPLEX == static_cast<int>(AtomicType::kLongDoubleComplex) &&
              FI_INT128 == static_cast<int>(AtomicType::kInt128) &&
              FI_UINT128 == static_cast<int>(AtomicType::kUint128));

int valid(AtomicForm form, const fi_datatype& type, const fi_op& op, std::size_t* count) {
  if (count == nullptr) return -FI_EINVAL;
  const Result<AtomicAction> action = action_of(form, number_of(type), number_of(op));
  if (!action) return -action.error().code;
  *count = kMaxAtomicBytes / size_of(action.value().type);
  return 0;
}

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
  if (const int refused = valid(form, type, op, &attributes->count)) return refused;
  attributes->size = size_of(static_cast<AtomicType>(number_of(type)));
  return 0;
}

int atomic_valid(fid_ep*, fi_datatype type, fi_op op, std::size_t* count) {
  return valid(AtomicForm::kBase, type, op, count);
}

int fetch_atomic_valid(fid_ep*, fi_datatype type, fi_op op, std::size_t* count) {
  return valid(AtomicForm::kFetch, type, op, count);
}

int compare_atomic_valid(fid_ep*, fi_datatype type, fi_op op, std::size_t* count) {
  return valid(AtomicForm::kCompare, type, op, count);
}

}  // namespace weft::fabric
