// SPDX-License-Identifier: BSD-2-Clause
// Which atomic operations are there, on which types? fi_atomic(3)
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft {

// What happens to one element of the target. The numbers are libfabric's (fi_op), which its front
// end asserts.
enum class AtomicOp : std::uint8_t {
  kMin = 0,
  kMax = 1,
  kSum = 2,
  kProduct = 3,
  kLogicalOr = 4,
  kLogicalAnd = 5,
  kBitOr = 6,
  kBitAnd = 7,
  kLogicalXor = 8,
  kBitXor = 9,
  kRead = 10,
  kWrite = 11,
  kSwapIfEqual = 12,  // the target becomes the operand if `compare == target`, and so on
  kSwapIfNotEqual = 13,
  kSwapIfLessOrEqual = 14,
  kSwapIfLess = 15,
  kSwapIfGreaterOrEqual = 16,
  kSwapIfGreater = 17,
  kMaskedSwap = 18,
};
inline constexpr std::size_t kAtomicOps = 19;

// What an element is; libfabric's numbers (fi_datatype), too. Complex: real, then imaginary part.
enum class AtomicType : std::uint8_t {
  kInt8 = 0,
  kUint8 = 1,
  kInt16 = 2,
  kUint16 = 3,
  kInt32 = 4,
  kUint32 = 5,
  kInt64 = 6,
  kUint64 = 7,
  kFloat = 8,
  kDouble = 9,
  kFloatComplex = 10,
  kDoubleComplex = 11,
  kLongDouble = 12,
  kLongDoubleComplex = 13,
  kInt128 = 14,
  kUint128 = 15,
};
inline constexpr std::size_t kAtomicTypes = 16;

// What an operation brings and takes: an operand; the initial value in return, too; and values to
// compare with, besides.
enum class AtomicForm : std::uint8_t { kBase = 0, kFetch = 1, kCompare = 2 };
inline constexpr std::size_t kAtomicForms = 3;

// One operation on elements of one type.
struct AtomicAction {
  AtomicForm form = AtomicForm::kBase;
  AtomicOp op = AtomicOp::kSum;
  AtomicType type = AtomicType::kUint64;

  constexpr bool fetches() const { return form != AtomicForm::kBase; }
  constexpr bool compares() const { return form == AtomicForm::kCompare; }
  constexpr bool has_operand() const { return op != AtomicOp::kRead; }
};

// Bytes of one element; 0 for what is no type.
constexpr std::size_t size_of(AtomicType type) {
  constexpr std::size_t kSizes[kAtomicTypes] = {
      1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16, sizeof(long double), 2 * sizeof(long double), 16, 16};
  const auto number = static_cast<std::size_t>(type);
  return number < kAtomicTypes ? kSizes[number] : 0;
}

// Bytes that one operation can change at most, all elements together.
inline constexpr std::size_t kMaxAtomicBytes = 4096;

}  // namespace weft
