// SPDX-License-Identifier: BSD-2-Clause
// What does an atomic operation make of the elements that it finds? fi_atomic(3)
#include "memory/atomic_kernels.h"

#include <cfloat>
#include <complex>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace weft::memory {
namespace {

using Int128 = __int128;
using Uint128 = unsigned __int128;

// Standard traits do not know 128-bit integers in strict mode.
template <class T>
inline constexpr bool kInteger =
    std::is_integral_v<T> || std::is_same_v<T, Int128> || std::is_same_v<T, Uint128>;
template <class T>
inline constexpr bool kOrdered = kInteger<T> || std::is_floating_point_v<T>;

// An unsigned type in which sums and products of T wrap around without promotion to int.
template <class T>
using Wrapping = std::conditional_t<(sizeof(T) > sizeof(std::uint64_t)), Uint128, std::uint64_t>;

template <class T>
T sum(T a, T b) {
  if constexpr (kInteger<T>) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  } else {
    return a + b;
  }
}

template <class T>
T product(T a, T b) {
  if constexpr (kInteger<T>) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  } else {
    return a * b;
  }
}

template <class T>
bool truth(T value) {
  return value != T{};
}

// What a kernel sees of one element.
template <class T>
struct Element {
  T target;
  T operand;
  T compare;

  T swap_if(bool swaps) const { return swaps ? operand : target; }
};

// The value that the target gets. Only for what is meaningful.
template <AtomicOp kOp, class T>
T result(const Element<T>& e) {
  if constexpr (kOp == AtomicOp::kMin) return e.swap_if(e.operand < e.target);
  if constexpr (kOp == AtomicOp::kMax) return e.swap_if(e.operand > e.target);
  if constexpr (kOp == AtomicOp::kSum) return sum(e.target, e.operand);
  if constexpr (kOp == AtomicOp::kProduct) return product(e.target, e.operand);
  if constexpr (kOp == AtomicOp::kLogicalOr) return T(truth(e.target) || truth(e.operand));
  if constexpr (kOp == AtomicOp::kLogicalAnd) return T(truth(e.target) && truth(e.operand));
  if constexpr (kOp == AtomicOp::kLogicalXor) return T(truth(e.target) != truth(e.operand));
  if constexpr (kOp == AtomicOp::kBitOr) return static_cast<T>(e.target | e.operand);
  if constexpr (kOp == AtomicOp::kBitAnd) return static_cast<T>(e.target & e.operand);
  if constexpr (kOp == AtomicOp::kBitXor) return static_cast<T>(e.target ^ e.operand);
  if constexpr (kOp == AtomicOp::kRead) return e.target;
  if constexpr (kOp == AtomicOp::kWrite) return e.operand;
  if constexpr (kOp == AtomicOp::kSwapIfEqual) return e.swap_if(e.compare == e.target);
  if constexpr (kOp == AtomicOp::kSwapIfNotEqual) return e.swap_if(e.compare != e.target);
  if constexpr (kOp == AtomicOp::kSwapIfLessOrEqual) return e.swap_if(e.compare <= e.target);
  if constexpr (kOp == AtomicOp::kSwapIfLess) return e.swap_if(e.compare < e.target);
  if constexpr (kOp == AtomicOp::kSwapIfGreaterOrEqual) return e.swap_if(e.compare >= e.target);
  if constexpr (kOp == AtomicOp::kSwapIfGreater) return e.swap_if(e.compare > e.target);
  if constexpr (kOp == AtomicOp::kMaskedSwap) {
    return static_cast<T>((e.operand & e.compare) | (e.target & static_cast<T>(~e.compare)));
  }
}

// Of a long double only the bytes that have a meaning: the padding stays as it is.
constexpr std::size_t kLongDoubleBytes = LDBL_MANT_DIG == 64 ? 10 : sizeof(long double);

template <class T>
void store(std::byte* to, const T& value) {
  if constexpr (std::is_same_v<T, long double>) {
    std::memcpy(to, &value, kLongDoubleBytes);
  } else if constexpr (std::is_same_v<T, std::complex<long double>>) {
    store(to, value.real());
    store(to + sizeof(long double), value.imag());
  } else {
    std::memcpy(to, &value, sizeof value);
  }
}

constexpr bool needs_bits(AtomicOp op) {
  return op == AtomicOp::kBitOr || op == AtomicOp::kBitAnd || op == AtomicOp::kBitXor ||
         op == AtomicOp::kMaskedSwap;
}

constexpr bool needs_order(AtomicOp op) {
  return op == AtomicOp::kMin || op == AtomicOp::kMax ||
         (op >= AtomicOp::kSwapIfLessOrEqual && op <= AtomicOp::kSwapIfGreater);
}

template <AtomicOp kOp, class T>
constexpr bool possible() {
  return (kInteger<T> || !needs_bits(kOp)) && (kOrdered<T> || !needs_order(kOp));
}

using Kernel = void (*)(std::byte*, const std::byte*, const std::byte*, std::size_t);

template <AtomicOp kOp, class T>
void run(std::byte* target, const std::byte* operand, const std::byte* compare,
         std::size_t length) {
  for (std::size_t at = 0; at < length; at += sizeof(T)) {
    Element<T> element{};
    std::memcpy(&element.target, target + at, sizeof(T));
    if constexpr (kOp != AtomicOp::kRead) std::memcpy(&element.operand, operand + at, sizeof(T));
    if constexpr (kOp >= AtomicOp::kSwapIfEqual) {
      std::memcpy(&element.compare, compare + at, sizeof(T));
    }
    store(target + at, result<kOp>(element));
  }
}

template <AtomicOp kOp, class T>
constexpr Kernel kernel() {
  if constexpr (possible<kOp, T>()) {
    return run<kOp, T>;
  } else {
    return nullptr;
  }
}

struct Row {
  Kernel of_type[kAtomicTypes];
};

// In the order of AtomicType.
template <AtomicOp kOp>
constexpr Row row() {
  return {{kernel<kOp, std::int8_t>(), kernel<kOp, std::uint8_t>(), kernel<kOp, std::int16_t>(),
           kernel<kOp, std::uint16_t>(), kernel<kOp, std::int32_t>(), kernel<kOp, std::uint32_t>(),
           kernel<kOp, std::int64_t>(), kernel<kOp, std::uint64_t>(), kernel<kOp, float>(),
           kernel<kOp, double>(), kernel<kOp, std::complex<float>>(),
           kernel<kOp, std::complex<double>>(), kernel<kOp, long double>(),
           kernel<kOp, std::complex<long double>>(), kernel<kOp, Int128>(),
           kernel<kOp, Uint128>()}};
}

// In the order of AtomicOp.
constexpr Row kKernels[kAtomicOps] = {row<AtomicOp::kMin>(),
                                      row<AtomicOp::kMax>(),
                                      row<AtomicOp::kSum>(),
                                      row<AtomicOp::kProduct>(),
                                      row<AtomicOp::kLogicalOr>(),
                                      row<AtomicOp::kLogicalAnd>(),
                                      row<AtomicOp::kBitOr>(),
                                      row<AtomicOp::kBitAnd>(),
                                      row<AtomicOp::kLogicalXor>(),
                                      row<AtomicOp::kBitXor>(),
                                      row<AtomicOp::kRead>(),
                                      row<AtomicOp::kWrite>(),
                                      row<AtomicOp::kSwapIfEqual>(),
                                      row<AtomicOp::kSwapIfNotEqual>(),
                                      row<AtomicOp::kSwapIfLessOrEqual>(),
                                      row<AtomicOp::kSwapIfLess>(),
                                      row<AtomicOp::kSwapIfGreaterOrEqual>(),
                                      row<AtomicOp::kSwapIfGreater>(),
                                      row<AtomicOp::kMaskedSwap>()};

Kernel kernel_of(const AtomicAction& action) {
  const auto op = static_cast<std::size_t>(action.op);
  const auto type = static_cast<std::size_t>(action.type);
  return op < kAtomicOps && type < kAtomicTypes ? kKernels[op].of_type[type] : nullptr;
}

}  // namespace

bool meaningful(const AtomicAction& action) {
  const bool swaps = action.op >= AtomicOp::kSwapIfEqual;
  switch (action.form) {
    case AtomicForm::kBase:
      return !swaps && action.op != AtomicOp::kRead && kernel_of(action) != nullptr;
    case AtomicForm::kFetch:
      return !swaps && kernel_of(action) != nullptr;
    case AtomicForm::kCompare:
      return swaps && kernel_of(action) != nullptr;
  }
  return false;
}

Access rights_for(const AtomicAction& action) {
  if (!action.fetches()) return Access::kRemoteWrite;
  if (action.op == AtomicOp::kRead) return Access::kRemoteRead;
  return Access::kRemoteRead | Access::kRemoteWrite;
}

void apply(const AtomicAction& action, std::byte* target, const std::byte* operand,
           const std::byte* compare, std::size_t length) {
  kernel_of(action)(target, operand, compare, length);
}

}  // namespace weft::memory
