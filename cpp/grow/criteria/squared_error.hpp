// Squared error around the mean. A score is the sum over both sides of (sum of values)^2 / weight.
#pragma once

#include <limits>

#include "grow/criteria/value_sums.hpp"

namespace oldgrowth {

class SquaredErrorStats : public ValueSums {
 public:
  using ValueSums::ValueSums;

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
