// SPDX-License-Identifier: BSD-2-Clause
// How are the points of a matrix found, each of which brings as many new pairs together as it can?
#include "covering.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>

namespace weft::conformance {
namespace {

constexpr int kTries = 12;  // random points of which the best is taken
constexpr std::size_t kOpen = static_cast<std::size_t>(-1);  // a dimension without a value yet

// Completes a partial point by values for which `better` is largest; depth first, so that one is
// found if there is any.
class Completion {
 public:
  Completion(const Matrix& matrix, std::mt19937& random) : matrix_(matrix), random_(random) {
    for (std::size_t d = 0; d < matrix.sizes.size(); ++d) order_.push_back(d);
  }

  template <class Gain>
  bool complete(Choice& choice, Gain gain) {
    std::shuffle(order_.begin(), order_.end(), random_);
    return go_on(choice, 0, gain);
  }

 private:
  bool fits(const Choice& choice, Value value) const {
    for (std::size_t d = 0; d < choice.size(); ++d) {
      if (d != value.dimension && choice[d] != kOpen && !matrix_.meet({d, choice[d]}, value)) {
        return false;
      }
    }
    return true;
  }

  template <class Gain>
  bool go_on(Choice& choice, std::size_t at, Gain& gain) {
    if (at == order_.size()) return true;
    const std::size_t dimension = order_[at];
    if (choice[dimension] != kOpen) return go_on(choice, at + 1, gain);
    std::vector<std::pair<std::size_t, std::size_t>> candidates;  // gain, number
    for (std::size_t number = 0; number < matrix_.sizes[dimension]; ++number) {
      const Value value{dimension, number};
      if (fits(choice, value)) candidates.emplace_back(gain(choice, value), number);
    }
    std::shuffle(candidates.begin(), candidates.end(), random_);
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    for (const auto& candidate : candidates) {
      choice[dimension] = candidate.second;
      if (go_on(choice, at + 1, gain)) return true;
    }
    choice[dimension] = kOpen;
    return false;
  }

  const Matrix& matrix_;
  std::mt19937& random_;
  std::vector<std::size_t> order_;
};

// Which pairs have not met yet.
class Pairs {
 public:
  explicit Pairs(const Matrix& matrix) : matrix_(matrix) {
    for (const std::size_t size : matrix.sizes) {
      first_.push_back(values_);
      values_ += size;
    }
    apart_.resize(values_ * values_);
    for_each([&](Value a, Value b) { set(a, b, matrix.meet(a, b)); });
  }

  bool apart(Value a, Value b) const { return apart_[at(a) * values_ + at(b)]; }
  void set(Value a, Value b, bool apart) {
    apart_[at(a) * values_ + at(b)] = apart;
    apart_[at(b) * values_ + at(a)] = apart;
  }
  // How many partners `value` would meet for the first time.
  std::size_t gain(const Choice& choice, Value value) const {
    std::size_t count = 0;
    for (std::size_t d = 0; d < choice.size(); ++d) {
      if (d != value.dimension && choice[d] != kOpen) count += apart({d, choice[d]}, value);
    }
    return count;
  }
  std::size_t gain(const Choice& choice) const {
    std::size_t count = 0;
    for (std::size_t d = 0; d < choice.size(); ++d) count += gain(choice, {d, choice[d]});
    return count;
  }
  void join(const Choice& choice) {
    for (std::size_t a = 0; a < choice.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) set({a, choice[a]}, {b, choice[b]}, false);
    }
  }
  template <class Body>
  void for_each(Body body) const {
    for (std::size_t a = 0; a < matrix_.sizes.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        for (std::size_t i = 0; i < matrix_.sizes[a]; ++i) {
          for (std::size_t j = 0; j < matrix_.sizes[b]; ++j) body(Value{a, i}, Value{b, j});
        }
      }
    }
  }

 private:
  std::size_t at(Value value) const { return first_[value.dimension] + value.number; }

  const Matrix& matrix_;
  std::vector<std::size_t> first_;
  std::size_t values_ = 0;
  std::vector<char> apart_;
};

Choice open_choice(const Matrix& matrix) { return Choice(matrix.sizes.size(), kOpen); }

// A point in which these two meet; nothing when there is none.
template <class Gain>
std::optional<Choice> point_with(const Matrix& matrix, Value a, Value b, std::mt19937& random,
                                 Gain gain) {
  Choice choice = open_choice(matrix);
  choice[a.dimension] = a.number;
  choice[b.dimension] = b.number;
  if (!Completion(matrix, random).complete(choice, gain)) return std::nullopt;
  return choice;
}

}  // namespace

bool Matrix::contains(const Choice& choice) const {
  for (std::size_t a = 0; a < choice.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      if (!meet({a, choice[a]}, {b, choice[b]})) return false;
    }
  }
  return true;
}

std::vector<Choice> pairwise_points(const Matrix& matrix) {
  std::mt19937 random(1);
  Pairs pairs(matrix);
  std::vector<Choice> points;
  const auto gain = [&](const Choice& choice, Value value) { return pairs.gain(choice, value); };
  pairs.for_each([&](Value a, Value b) {
    if (!pairs.apart(a, b)) return;
    std::optional<Choice> best;
    for (int i = 0; i < kTries; ++i) {
      auto point = point_with(matrix, a, b, random, gain);
      if (!point) break;
      if (!best || pairs.gain(*point) > pairs.gain(*best)) best = std::move(point);
    }
    if (!best) return;
    pairs.join(*best);
    points.push_back(std::move(*best));
  });
  return points;
}

std::vector<Choice> all_points(const Matrix& matrix) {
  std::vector<Choice> points;
  Choice choice(matrix.sizes.size(), 0);
  for (;;) {
    if (matrix.contains(choice)) points.push_back(choice);
    std::size_t d = 0;
    while (d < choice.size() && ++choice[d] == matrix.sizes[d]) choice[d++] = 0;
    if (d == choice.size()) return points;
  }
}

std::vector<Choice> chosen_points(const Matrix& matrix) {
  const char* const chosen = std::getenv("WEFT_TEST_MATRIX");
  const bool full = chosen != nullptr && std::strcmp(chosen, "full") == 0;
  return full ? all_points(matrix) : pairwise_points(matrix);
}

std::vector<std::pair<Value, Value>> missing_pairs(const Matrix& matrix,
                                                   const std::vector<Choice>& choices) {
  Pairs pairs(matrix);
  for (const Choice& choice : choices) pairs.join(choice);
  std::mt19937 random(1);
  std::vector<std::pair<Value, Value>> missing;
  pairs.for_each([&](Value a, Value b) {
    const auto none = [](const Choice&, Value) { return std::size_t{0}; };
    if (pairs.apart(a, b) && point_with(matrix, a, b, random, none)) missing.emplace_back(a, b);
  });
  return missing;
}

}  // namespace weft::conformance
