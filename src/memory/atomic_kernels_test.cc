// SPDX-License-Identifier: BSD-2-Clause
// Does every operation on every type do what fi_atomic(3) says?
#include "memory/atomic_kernels.h"

#include <gtest/gtest.h>

#include <complex>
#include <cstring>
#include <limits>
#include <vector>

namespace weft::memory {
namespace {

using Bytes = std::vector<std::byte>;

constexpr AtomicForm kForms[] = {AtomicForm::kBase, AtomicForm::kFetch, AtomicForm::kCompare};

AtomicForm form_of(AtomicOp op) {
  return op >= AtomicOp::kSwapIfEqual ? AtomicForm::kCompare : AtomicForm::kFetch;
}

// The manual page's formulas for small numbers, which mean the same in every type.
int expected(AtomicOp op, int t, int o, int c) {
  switch (op) {
    case AtomicOp::kMin:
      return o < t ? o : t;
    case AtomicOp::kMax:
      return o > t ? o : t;
    case AtomicOp::kSum:
      return t + o;
    case AtomicOp::kProduct:
      return t * o;
    case AtomicOp::kLogicalOr:
      return (t || o) ? 1 : 0;
    case AtomicOp::kLogicalAnd:
      return (t && o) ? 1 : 0;
    case AtomicOp::kBitOr:
      return t | o;
    case AtomicOp::kBitAnd:
      return t & o;
    case AtomicOp::kLogicalXor:
      return ((t && !o) || (!t && o)) ? 1 : 0;
    case AtomicOp::kBitXor:
      return t ^ o;
    case AtomicOp::kRead:
      return t;
    case AtomicOp::kWrite:
      return o;
    case AtomicOp::kSwapIfEqual:
      return c == t ? o : t;
    case AtomicOp::kSwapIfNotEqual:
      return c != t ? o : t;
    case AtomicOp::kSwapIfLessOrEqual:
      return c <= t ? o : t;
    case AtomicOp::kSwapIfLess:
      return c < t ? o : t;
    case AtomicOp::kSwapIfGreaterOrEqual:
      return c >= t ? o : t;
    case AtomicOp::kSwapIfGreater:
      return c > t ? o : t;
    case AtomicOp::kMaskedSwap:
      return (o & c) | (t & ~c);
  }
  return -1;
}

template <class T>
void put(Bytes& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}
template <class T>
T get(const Bytes& bytes, std::size_t at = 0) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// The result for one element, which lies at an odd address.
template <class T>
T result_of(AtomicOp op, AtomicType type, T target, T operand, T compare = T{}) {
  Bytes t(sizeof(T) + 1);
  Bytes o(sizeof(T) + 1);
  Bytes c(sizeof(T) + 1);
  put(t, 1, target);
  put(o, 1, operand);
  put(c, 1, compare);
  apply({form_of(op), op, type}, t.data() + 1, o.data() + 1, c.data() + 1, sizeof(T));
  return get<T>(t, 1);
}

template <class T>
void check_small_numbers(AtomicType type) {
  ASSERT_EQ(size_of(type), sizeof(T));
  for (std::size_t number = 0; number < kAtomicOps; ++number) {
    const auto op = static_cast<AtomicOp>(number);
    if (!meaningful({form_of(op), op, type})) continue;
    for (const int t : {0, 1, 3, 6, 10}) {
      for (const int o : {0, 1, 5, 6, 9}) {
        for (const int c : {0, 1, 3, 5, 6}) {
          const T value = result_of(op, type, T(t), T(o), T(c));
          EXPECT_TRUE(value == T(expected(op, t, o, c)))
              << "operation " << number << " type " << static_cast<int>(type) << ": " << t << ", "
              << o << ", " << c;
        }
      }
    }
  }
}

TEST(AtomicKernels, EveryOperationOnEveryTypeFollowsTheManualPage) {
  check_small_numbers<std::int8_t>(AtomicType::kInt8);
  check_small_numbers<std::uint8_t>(AtomicType::kUint8);
  check_small_numbers<std::int16_t>(AtomicType::kInt16);
  check_small_numbers<std::uint16_t>(AtomicType::kUint16);
  check_small_numbers<std::int32_t>(AtomicType::kInt32);
  check_small_numbers<std::uint32_t>(AtomicType::kUint32);
  check_small_numbers<std::int64_t>(AtomicType::kInt64);
  check_small_numbers<std::uint64_t>(AtomicType::kUint64);
  check_small_numbers<float>(AtomicType::kFloat);
  check_small_numbers<double>(AtomicType::kDouble);
  check_small_numbers<std::complex<float>>(AtomicType::kFloatComplex);
  check_small_numbers<std::complex<double>>(AtomicType::kDoubleComplex);
  check_small_numbers<long double>(AtomicType::kLongDouble);
  check_small_numbers<std::complex<long double>>(AtomicType::kLongDoubleComplex);
  check_small_numbers<__int128>(AtomicType::kInt128);
  check_small_numbers<unsigned __int128>(AtomicType::kUint128);
}

TEST(AtomicKernels, AnOperationHasTheFormsThatTheManualPageNames) {
  for (const AtomicForm form : kForms) {
    const auto has = [&](AtomicOp op) { return meaningful({form, op, AtomicType::kInt32}); };
    EXPECT_EQ(has(AtomicOp::kSum), form != AtomicForm::kCompare);
    EXPECT_EQ(has(AtomicOp::kWrite), form != AtomicForm::kCompare);
    EXPECT_EQ(has(AtomicOp::kRead), form == AtomicForm::kFetch);
    EXPECT_EQ(has(AtomicOp::kSwapIfEqual), form == AtomicForm::kCompare);
    EXPECT_EQ(has(AtomicOp::kMaskedSwap), form == AtomicForm::kCompare);
  }
}

// Which of the 19 operations each kind of type has.
TEST(AtomicKernels, FloatingPointNumbersHaveNoBitsAndComplexOnesNoOrder) {
  const auto count = [](AtomicType type) {
    int possible = 0;
    for (std::size_t number = 0; number < kAtomicOps; ++number) {
      const auto op = static_cast<AtomicOp>(number);
      possible += meaningful({form_of(op), op, type}) ? 1 : 0;
    }
    return possible;
  };
  for (const auto type : {AtomicType::kInt8, AtomicType::kUint64, AtomicType::kInt128}) {
    EXPECT_EQ(count(type), 19);
  }
  for (const auto type : {AtomicType::kFloat, AtomicType::kDouble, AtomicType::kLongDouble}) {
    EXPECT_EQ(count(type), 19 - 4);
    EXPECT_FALSE(meaningful({AtomicForm::kFetch, AtomicOp::kBitAnd, type}));
    EXPECT_FALSE(meaningful({AtomicForm::kCompare, AtomicOp::kMaskedSwap, type}));
  }
  for (const auto type : {AtomicType::kFloatComplex, AtomicType::kLongDoubleComplex}) {
    EXPECT_EQ(count(type), 19 - 4 - 6);
    EXPECT_FALSE(meaningful({AtomicForm::kBase, AtomicOp::kMin, type}));
    EXPECT_FALSE(meaningful({AtomicForm::kCompare, AtomicOp::kSwapIfLess, type}));
    EXPECT_TRUE(meaningful({AtomicForm::kCompare, AtomicOp::kSwapIfNotEqual, type}));
  }
}

TEST(AtomicKernels, NumbersThatNameNothingAreNotMeaningful) {
  for (const int number : {19, 20, 100, 255}) {
    const auto op = static_cast<AtomicOp>(number);
    for (const AtomicForm form : kForms) {
      EXPECT_FALSE(meaningful({form, op, AtomicType::kInt8})) << number;
    }
    const auto type = static_cast<AtomicType>(number);
    EXPECT_FALSE(meaningful({AtomicForm::kBase, AtomicOp::kSum, type})) << number;
    EXPECT_EQ(size_of(type), 0u);
    const auto form = static_cast<AtomicForm>(number);
    EXPECT_FALSE(meaningful({form, AtomicOp::kSum, AtomicType::kInt8})) << number;
  }
}

template <class T>
void check_wrapping(AtomicType type) {
  constexpr T kMost = std::numeric_limits<T>::max();
  constexpr T kLeast = std::numeric_limits<T>::min();
  EXPECT_EQ(result_of<T>(AtomicOp::kSum, type, kMost, 1), kLeast);
  EXPECT_EQ(result_of<T>(AtomicOp::kSum, type, kLeast, static_cast<T>(-1)), kMost);
  EXPECT_EQ(result_of<T>(AtomicOp::kProduct, type, kMost, kMost), static_cast<T>(1));
}

TEST(AtomicKernels, IntegersWrapAround) {
  check_wrapping<std::int8_t>(AtomicType::kInt8);
  check_wrapping<std::uint8_t>(AtomicType::kUint8);
  check_wrapping<std::int16_t>(AtomicType::kInt16);
  check_wrapping<std::uint16_t>(AtomicType::kUint16);
  check_wrapping<std::int32_t>(AtomicType::kInt32);
  check_wrapping<std::uint32_t>(AtomicType::kUint32);
  check_wrapping<std::int64_t>(AtomicType::kInt64);
  check_wrapping<std::uint64_t>(AtomicType::kUint64);
  const auto most = static_cast<__int128>(~static_cast<unsigned __int128>(0) >> 1);
  EXPECT_TRUE(result_of<__int128>(AtomicOp::kSum, AtomicType::kInt128, most, 1) == -most - 1);
  EXPECT_TRUE(result_of<__int128>(AtomicOp::kProduct, AtomicType::kInt128, most, most) == 1);
}

TEST(AtomicKernels, SignDecidesTheOrder) {
  EXPECT_EQ(result_of<std::int8_t>(AtomicOp::kMin, AtomicType::kInt8, 1, -1), -1);
  EXPECT_EQ(result_of<std::uint8_t>(AtomicOp::kMin, AtomicType::kUint8, 1, 0xff), 1);
  EXPECT_EQ(result_of<std::int64_t>(AtomicOp::kMax, AtomicType::kInt64, 1, -1), 1);
  EXPECT_EQ(result_of<std::uint64_t>(AtomicOp::kMax, AtomicType::kUint64, 1, ~0ull), ~0ull);
  EXPECT_EQ(result_of<std::int32_t>(AtomicOp::kSwapIfLess, AtomicType::kInt32, 5, 7, -1), 7);
  EXPECT_EQ(result_of<std::uint32_t>(AtomicOp::kSwapIfLess, AtomicType::kUint32, 5, 7, ~0u), 5u);
}

TEST(AtomicKernels, ComplexNumbersAreMultipliedAndComparedAsSuch) {
  using Complex = std::complex<double>;
  constexpr auto kType = AtomicType::kDoubleComplex;
  const Complex value = result_of<Complex>(AtomicOp::kProduct, kType, {1, 2}, {3, 4});
  EXPECT_EQ(value, Complex(-5, 10));
  const auto swap = [](Complex compare) {
    return result_of<Complex>(AtomicOp::kSwapIfEqual, kType, {1, 2}, {9, 9}, compare);
  };
  EXPECT_EQ(swap({1, 2}), Complex(9, 9));
  EXPECT_EQ(swap({1, 3}), Complex(1, 2));
  EXPECT_EQ(result_of<Complex>(AtomicOp::kLogicalAnd, kType, {0, 2}, {3, 0}), Complex(1, 0));
}

TEST(AtomicKernels, NanIsNeverEqualOrLess) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr auto kType = AtomicType::kDouble;
  EXPECT_EQ(result_of(AtomicOp::kMin, kType, 1.0, nan), 1.0);
  EXPECT_EQ(result_of(AtomicOp::kSwapIfEqual, kType, 1.0, 2.0, nan), 1.0);
  EXPECT_EQ(result_of(AtomicOp::kSwapIfNotEqual, kType, 1.0, 2.0, nan), 2.0);
}

TEST(AtomicKernels, EveryElementIsTakenOnItsOwn) {
  constexpr std::size_t kCount = 512;
  Bytes target(kCount * 8);
  Bytes operand(kCount * 8);
  for (std::size_t i = 0; i < kCount; ++i) {
    put<std::uint64_t>(target, 8 * i, ~0ull - i / 2);
    put<std::uint64_t>(operand, 8 * i, i);
  }
  apply({AtomicForm::kBase, AtomicOp::kSum, AtomicType::kUint64}, target.data(), operand.data(),
        nullptr, kCount * 8);
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(get<std::uint64_t>(target, 8 * i), ~0ull - i / 2 + i) << i;
  }
}

TEST(AtomicKernels, ThePaddingOfALongDoubleStaysAsItWas) {
  if (std::numeric_limits<long double>::digits != 64) GTEST_SKIP() << "it has none here";
  Bytes target(2 * sizeof(long double), std::byte{0x5a});
  Bytes operand(2 * sizeof(long double), std::byte{0});
  put(operand, 0, 1.5L);
  put(operand, sizeof(long double), 2.5L);
  apply({AtomicForm::kBase, AtomicOp::kWrite, AtomicType::kLongDoubleComplex}, target.data(),
        operand.data(), nullptr, 2 * sizeof(long double));
  for (const std::size_t part : {std::size_t{0}, sizeof(long double)}) {
    for (std::size_t i = 10; i < sizeof(long double); ++i) {
      EXPECT_EQ(target[part + i], std::byte{0x5a}) << part + i;
    }
    EXPECT_EQ(0, std::memcmp(target.data() + part, operand.data() + part, 10));
  }
}

TEST(AtomicKernels, RightsAreThoseOfReadingAndWriting) {
  const auto rights = [](AtomicForm form, AtomicOp op) {
    return rights_for({form, op, AtomicType::kInt8});
  };
  const Access both = Access::kRemoteRead | Access::kRemoteWrite;
  EXPECT_EQ(rights(AtomicForm::kBase, AtomicOp::kSum), Access::kRemoteWrite);
  EXPECT_EQ(rights(AtomicForm::kFetch, AtomicOp::kSum), both);
  EXPECT_EQ(rights(AtomicForm::kFetch, AtomicOp::kRead), Access::kRemoteRead);
  EXPECT_EQ(rights(AtomicForm::kCompare, AtomicOp::kSwapIfEqual), both);
}

}  // namespace
}  // namespace weft::memory
