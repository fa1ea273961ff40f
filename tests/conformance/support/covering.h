// SPDX-License-Identifier: BSD-2-Clause
// Which points of a matrix are enough for every pair of values to meet?
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace weft::conformance {

// A point: the number of its value in each dimension.
using Choice = std::vector<std::size_t>;

// A value of a dimension.
struct Value {
  std::size_t dimension = 0;
  std::size_t number = 0;
};

struct Matrix {
  std::vector<std::size_t> sizes;  // how many values each dimension has
  // Whether two values of different dimensions make sense together; symmetric. A point whose pairs
  // all do is a point of the matrix.
  std::function<bool(Value, Value)> meet;

  bool contains(const Choice& choice) const;
};

// Points such that every pair of values that any point has is in one of these. The same ones at
// each call.
std::vector<Choice> pairwise_points(const Matrix& matrix);
// Every point.
std::vector<Choice> all_points(const Matrix& matrix);
// Those of the two that WEFT_TEST_MATRIX asks for: every point if it is "full".
std::vector<Choice> chosen_points(const Matrix& matrix);
// The pairs of values that some point of the matrix has, but none of `choices`.
std::vector<std::pair<Value, Value>> missing_pairs(const Matrix& matrix,
                                                   const std::vector<Choice>& choices);

}  // namespace weft::conformance
