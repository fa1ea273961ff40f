// SPDX-License-Identifier: BSD-2-Clause
// How does a test make an atomic call, and what does the manual page say must come of it?
// (fi_atomic(3))
#include "atomic.h"

#include <complex>
#include <cstring>

namespace weft::conformance {
namespace {

// The manual page's formulas; buf and cmp are this side's, addr is the target's. Integers of 128
// bits hold what those of 64 bits overflow to.
template <class T>
T logical(fi_op op, T addr, T buf) {
  const bool a = addr != T{};
  const bool b = buf != T{};
  if (op == FI_LOR) return T(a || b);
  if (op == FI_LAND) return T(a && b);
  return T((a && !b) || (!a && b));
}

template <class T>
T swapped(fi_op op, T addr, T buf, T cmp) {
  return (op == FI_CSWAP ? cmp == addr : cmp != addr) ? buf : addr;
}

template <class T>
T any_type(fi_op op, T addr, T buf, T cmp) {
  switch (static_cast<int>(op)) {
    case FI_LOR:
    case FI_LAND:
    case FI_LXOR:
      return logical(op, addr, buf);
    case FI_ATOMIC_WRITE:
      return buf;
    case FI_CSWAP:
    case FI_CSWAP_NE:
      return swapped(op, addr, buf, cmp);
    default:
      return addr;
  }
}

template <class T>
T ordered_type(fi_op op, T addr, T buf, T cmp) {
  switch (static_cast<int>(op)) {
    case FI_MIN:
      return buf < addr ? buf : addr;
    case FI_MAX:
      return buf > addr ? buf : addr;
    case FI_CSWAP_LE:
      return cmp <= addr ? buf : addr;
    case FI_CSWAP_LT:
      return cmp < addr ? buf : addr;
    case FI_CSWAP_GE:
      return cmp >= addr ? buf : addr;
    case FI_CSWAP_GT:
      return cmp > addr ? buf : addr;
    default:
      return any_type(op, addr, buf, cmp);
  }
}

template <class T>
struct Number {
  static T after(fi_op op, T addr, T buf, T cmp) {
    if (op == FI_SUM) return addr + buf;
    if (op == FI_PROD) return addr * buf;
    return ordered_type(op, addr, buf, cmp);
  }
  static T random(std::mt19937_64& random) { return static_cast<T>(random() % 9) / 2; }
};

template <class T>
struct Number<std::complex<T>> {
  using C = std::complex<T>;
  static C after(fi_op op, C addr, C buf, C cmp) {
    if (op == FI_SUM) return addr + buf;
    if (op == FI_PROD) return addr * buf;
    return any_type(op, addr, buf, cmp);
  }
  static C random(std::mt19937_64& random) {
    return {static_cast<T>(random() % 3), static_cast<T>(random() % 3)};
  }
};

template <class T>
struct Integer {
  using Wide = unsigned __int128;
  static T after(fi_op op, T addr, T buf, T cmp) {
    const auto a = static_cast<Wide>(addr);
    const auto b = static_cast<Wide>(buf);
    const auto c = static_cast<Wide>(cmp);
    switch (static_cast<int>(op)) {
      case FI_SUM:
        return static_cast<T>(a + b);
      case FI_PROD:
        return static_cast<T>(a * b);
      case FI_BOR:
        return static_cast<T>(a | b);
      case FI_BAND:
        return static_cast<T>(a & b);
      case FI_BXOR:
        return static_cast<T>(a ^ b);
      case FI_MSWAP:
        return static_cast<T>((b & c) | (a & ~c));
      default:
        return ordered_type(op, addr, buf, cmp);
    }
  }
  static T random(std::mt19937_64& random) {
    if (random() % 2 == 0) return static_cast<T>(random() % 4);
    return static_cast<T>(static_cast<Wide>(random()) << 64 | random());
  }
};

template <>
struct Number<std::int8_t> : Integer<std::int8_t> {};
template <>
struct Number<std::uint8_t> : Integer<std::uint8_t> {};
template <>
struct Number<std::int16_t> : Integer<std::int16_t> {};
template <>
struct Number<std::uint16_t> : Integer<std::uint16_t> {};
template <>
struct Number<std::int32_t> : Integer<std::int32_t> {};
template <>
struct Number<std::uint32_t> : Integer<std::uint32_t> {};
template <>
struct Number<std::int64_t> : Integer<std::int64_t> {};
template <>
struct Number<std::uint64_t> : Integer<std::uint64_t> {};
template <>
struct Number<__int128> : Integer<__int128> {};
template <>
struct Number<unsigned __int128> : Integer<unsigned __int128> {};

// Calls `body` with a value of the C++ type that `type` names.
template <class Body>
auto with_type(fi_datatype type, Body body) {
  switch (static_cast<int>(type)) {
    case FI_INT8:
      return body(std::int8_t{});
    case FI_UINT8:
      return body(std::uint8_t{});
    case FI_INT16:
      return body(std::int16_t{});
    case FI_UINT16:
      return body(std::uint16_t{});
    case FI_INT32:
      return body(std::int32_t{});
    case FI_UINT32:
      return body(std::uint32_t{});
    case FI_INT64:
      return body(std::int64_t{});
    case FI_UINT64:
      return body(std::uint64_t{});
    case FI_FLOAT:
      return body(float{});
    case FI_DOUBLE:
      return body(double{});
    case FI_FLOAT_COMPLEX:
      return body(std::complex<float>{});
    case FI_DOUBLE_COMPLEX:
      return body(std::complex<double>{});
    case FI_LONG_DOUBLE:
      return body(0.0L);
    case FI_LONG_DOUBLE_COMPLEX:
      return body(std::complex<long double>{});
    case FI_INT128:
      return body(static_cast<__int128>(0));
    default:
      return body(static_cast<unsigned __int128>(0));
  }
}

template <class T>
T at(const Bytes& bytes, std::size_t i) {
  T value{};
  if (bytes.size() >= (i + 1) * sizeof(T)) {
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  }
  return value;
}

ssize_t issue_plain(fid_ep* ep, Atomic& a, void* context) {
  const void* operand = a.operand.empty() ? nullptr : a.operand.data();
  switch (a.form) {
    case Form::kBase:
      return fi_atomic(ep, operand, a.count, nullptr, a.peer, a.address, a.key, a.type, a.op,
                       context);
    case Form::kFetch:
      return fi_fetch_atomic(ep, operand, a.count, nullptr, a.result.data(), nullptr, a.peer,
                             a.address, a.key, a.type, a.op, context);
    case Form::kCompare:
      return fi_compare_atomic(ep, operand, a.count, nullptr, a.compare.data(), nullptr,
                               a.result.data(), nullptr, a.peer, a.address, a.key, a.type, a.op,
                               context);
  }
  return -FI_EINVAL;
}

ssize_t issue_vector(fid_ep* ep, Atomic& a, void* context) {
  Pieces& o = a.operand_pieces;
  Pieces& c = a.compare_pieces;
  Pieces& r = a.result_pieces;
  switch (a.form) {
    case Form::kBase:
      return fi_atomicv(ep, o.list, nullptr, o.count, a.peer, a.address, a.key, a.type, a.op,
                        context);
    case Form::kFetch:
      return fi_fetch_atomicv(ep, o.list, nullptr, o.count, r.list, nullptr, r.count, a.peer,
                              a.address, a.key, a.type, a.op, context);
    case Form::kCompare:
      return static_cast<ssize_t>(fi_compare_atomicv(ep, o.list, nullptr, o.count, c.list, nullptr,
                                                     c.count, r.list, nullptr, r.count, a.peer,
                                                     a.address, a.key, a.type, a.op, context));
  }
  return -FI_EINVAL;
}

ssize_t issue_message(fid_ep* ep, Atomic& a, void* context) {
  const std::size_t first = a.count / 2;  // elsewhere than the buffers are cut
  const fi_rma_ioc target[] = {{a.address, first, a.key},
                               {a.address + first * element_size(a.type), a.count - first, a.key}};
  Pieces& r = a.result_pieces;
  fi_msg_atomic message{};
  message.msg_iov = a.operand_pieces.list;
  message.iov_count = a.operand_pieces.count;
  message.addr = a.peer;
  message.rma_iov = first == 0 ? target + 1 : target;
  message.rma_iov_count = first == 0 ? 1 : 2;
  message.datatype = a.type;
  message.op = a.op;
  message.context = context;
  message.data = a.data;
  switch (a.form) {
    case Form::kBase:
      return fi_atomicmsg(ep, &message, a.flags);
    case Form::kFetch:
      return fi_fetch_atomicmsg(ep, &message, r.list, nullptr, r.count, a.flags);
    case Form::kCompare:
      return fi_compare_atomicmsg(ep, &message, a.compare_pieces.list, nullptr,
                                  a.compare_pieces.count, r.list, nullptr, r.count, a.flags);
  }
  return -FI_EINVAL;
}

}  // namespace

void Pieces::split(const Bytes& whole, std::size_t elements, std::size_t size) {
  const auto middle =
      whole.begin() + static_cast<std::ptrdiff_t>(whole.empty() ? 0 : (elements + 1) / 2 * size);
  parts[0].assign(whole.begin(), middle);
  parts[1].assign(middle, whole.end());
  count = 0;
  for (Bytes& part : parts) {
    if (!part.empty()) list[count++] = {part.data(), part.size() / size};
  }
}

void Pieces::join(Bytes& whole) const {
  whole = parts[0];
  whole.insert(whole.end(), parts[1].begin(), parts[1].end());
}

std::size_t element_size(fi_datatype type) {
  return with_type(type, [](auto value) { return sizeof value; });
}

const char* form_name(Form form) {
  return form == Form::kBase ? "base" : form == Form::kFetch ? "fetch" : "compare";
}

std::uint64_t query_flag(Form form) {
  return form == Form::kBase ? 0 : form == Form::kFetch ? FI_FETCH_ATOMIC : FI_COMPARE_ATOMIC;
}

bool makes_sense(Form form, fi_datatype type, fi_op op) {
  const bool swaps = op >= FI_CSWAP;
  if (swaps != (form == Form::kCompare)) return false;
  if (op == FI_ATOMIC_READ && form != Form::kFetch) return false;
  const bool complex =
      type == FI_FLOAT_COMPLEX || type == FI_DOUBLE_COMPLEX || type == FI_LONG_DOUBLE_COMPLEX;
  const bool real = type == FI_FLOAT || type == FI_DOUBLE || type == FI_LONG_DOUBLE;
  if (op == FI_BOR || op == FI_BAND || op == FI_BXOR || op == FI_MSWAP) return !complex && !real;
  const bool compares = op == FI_MIN || op == FI_MAX || (op >= FI_CSWAP_LE && op <= FI_CSWAP_GT);
  return !(complex && compares);
}

Bytes random_elements(fi_datatype type, std::size_t count, std::mt19937_64& random) {
  return with_type(type, [&](auto sample) {
    using T = decltype(sample);
    Bytes bytes(count * sizeof(T));
    for (std::size_t i = 0; i < count; ++i) {
      const T value = Number<T>::random(random);
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
    return bytes;
  });
}

void Atomic::fill(std::mt19937_64& random) {
  operand.clear();
  compare.clear();
  result.clear();
  if (op != FI_ATOMIC_READ) operand = random_elements(type, count, random);
  if (form == Form::kCompare) compare = random_elements(type, count, random);
  if (form != Form::kBase) result.assign(bytes(), 0xcd);
}

ssize_t issue(fid_ep* ep, Atomic& a, void* context) {
  if (a.shape == Shape::kPlain) return issue_plain(ep, a, context);
  if (a.shape == Shape::kInject) {
    return fi_inject_atomic(ep, a.operand.data(), a.count, a.peer, a.address, a.key, a.type, a.op);
  }
  const std::size_t size = element_size(a.type);
  a.operand_pieces.split(a.operand, a.count, size);
  a.compare_pieces.split(a.compare, a.count, size);
  a.result_pieces.split(a.result, a.count, size);
  return a.shape == Shape::kVector ? issue_vector(ep, a, context) : issue_message(ep, a, context);
}

void collect(Atomic& a) {
  if (a.shape == Shape::kVector || a.shape == Shape::kMessage) a.result_pieces.join(a.result);
}

Bytes outcome(const Atomic& a, const Bytes& before) {
  return with_type(a.type, [&](auto sample) {
    using T = decltype(sample);
    Bytes after = before;
    for (std::size_t i = 0; i < a.count; ++i) {
      const T value =
          Number<T>::after(a.op, at<T>(before, i), at<T>(a.operand, i), at<T>(a.compare, i));
      std::memcpy(after.data() + i * sizeof(T), &value, sizeof(T));
    }
    return after;
  });
}

bool same_elements(fi_datatype type, const Bytes& a, const Bytes& b) {
  return with_type(type, [&](auto sample) {
    using T = decltype(sample);
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size() / sizeof(T); ++i) {
      if (!(at<T>(a, i) == at<T>(b, i))) return false;
    }
    return true;
  });
}

}  // namespace weft::conformance
