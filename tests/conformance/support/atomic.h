// SPDX-License-Identifier: BSD-2-Clause
// How does a test make an atomic call, and what does the manual page say must come of it?
// (fi_atomic(3))
#pragma once

#include <rdma/fi_atomic.h>

#include <cstdint>
#include <random>
#include <vector>

#include "fid.h"

namespace weft::conformance {

enum class Form : std::uint8_t { kBase, kFetch, kCompare };
// Which of the calls of a form.
enum class Shape : std::uint8_t { kPlain, kVector, kMessage, kInject };
inline constexpr Form kForms[] = {Form::kBase, Form::kFetch, Form::kCompare};

inline constexpr int kTypeNumbers = FI_UINT128 + 1;
inline constexpr int kOpNumbers = FI_MSWAP + 1;

using Bytes = std::vector<std::uint8_t>;

// Bytes of one element.
std::size_t element_size(fi_datatype type);
const char* form_name(Form form);
// FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC or 0.
std::uint64_t query_flag(Form form);
// What the manual page allows: form and operation fit, bits for integers only, no order for complex
// numbers.
bool makes_sense(Form form, fi_datatype type, fi_op op);

// A buffer in two pieces that are not neighbours.
struct Pieces {
  Bytes parts[2];
  fi_ioc list[2]{};
  std::size_t count = 0;

  void split(const Bytes& whole, std::size_t elements, std::size_t size);
  void join(Bytes& whole) const;
};

// One call with its buffers, which must stay where they are until it has completed.
struct Atomic {
  Form form = Form::kFetch;
  Shape shape = Shape::kPlain;
  fi_datatype type = FI_UINT64;
  fi_op op = FI_SUM;
  std::size_t count = 1;
  Bytes operand;
  Bytes compare;
  Bytes result;
  fi_addr_t peer = FI_ADDR_UNSPEC;
  std::uint64_t address = 0;
  std::uint64_t key = 0;
  std::uint64_t flags = 0;  // of kMessage
  std::uint64_t data = 0;   // of kMessage

  Pieces operand_pieces{};
  Pieces compare_pieces{};
  Pieces result_pieces{};

  // Gives the buffers their size and random contents of the type.
  void fill(std::mt19937_64& random);
  std::size_t bytes() const { return count * element_size(type); }
};

// Random elements of a type: small numbers, so that comparisons come out either way, and for
// integers any number now and then.
Bytes random_elements(fi_datatype type, std::size_t count, std::mt19937_64& random);

// Makes the call; kVector and kMessage cut each buffer into two pieces, and kMessage the target,
// too.
ssize_t issue(fid_ep* ep, Atomic& atomic, void* context);
// The call has completed: `result` is what came.
void collect(Atomic& atomic);

// What the target must hold after the call when it held `before`.
Bytes outcome(const Atomic& atomic, const Bytes& before);
// Whether two lists of elements are the same, padding aside.
bool same_elements(fi_datatype type, const Bytes& a, const Bytes& b);

}  // namespace weft::conformance
