// Squared error around the mean. A score is the sum over both sides of (sum of values)^2 / weight.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "grow/criteria/value_sums.hpp"

namespace oldgrowth {

class SquaredErrorStats : public ValueSums<true> {
 public:
  using ValueSums::ValueSums;

  static double impurity(const std::vector<double>& values, const std::vector<double>& weights) {
    double weight = 0, sum = 0, squares = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double from_first = values[i] - values[0];
      weight += weights[i];
      sum += weights[i] * from_first;
      squares += weights[i] * from_first * from_first;
    }
    return squares / weight - (sum / weight) * (sum / weight);
  }
  static double impurity_unit(double target_scale) { return target_scale * target_scale; }

  double score() const {
    const double right_sum = sum_ - left_sum_;
    return left_sum_ * left_sum_ / left_weight_ + right_sum * right_sum / (weight_ - left_weight_);
  }
  bool may_exceed(double) const { return true; }
  double decrease(double score) const { return score - sum_ * sum_ / weight_; }
  double highest_score() const { return std::numeric_limits<double>::infinity(); }
};

struct SquaredError {
  static constexpr const char* kNames[] = {"squared_error"};
  template <bool counts>
  using Stats = SquaredErrorStats;
};

}  // namespace oldgrowth
