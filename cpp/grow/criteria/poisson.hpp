// Poisson deviance, for values that are not negative. A score is the sum over both sides of sum * log(mean). As in
// scikit-learn, a split is refused if all values of a side are zero: the deviance of a row from a mean of zero is
// infinite.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "grow/criteria/value_sums.hpp"

namespace oldgrowth {

class PoissonStats : public ValueSums<false> {
  using Base = ValueSums<false>;

 public:
  static constexpr bool kRefuses = true;
  // Rows of positive values are counted: a sum of zeros that is a difference of sums is not exactly zero.
  struct Bin : Base::Bin {
    std::uint32_t positive;
  };

  using Base::Base;

  static double impurity(const std::vector<double>& values, const std::vector<double>& weights) {
    double weight = 0, sum = 0, own = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      weight += weights[i];
      sum += weights[i] * values[i];
      own += weights[i] * sum_log(values[i], 1);
    }
    return (own - sum_log(sum, weight)) / weight;
  }
  static double impurity_unit(double target_scale) { return target_scale; }

  void clear() {
    Base::clear();
    positive_ = 0;
  }
  void add(std::uint32_t payload) {
    Base::add(payload);
    positive_ += is_positive(payload);
  }
  void close() { parent_ = sum_log(sum_, weight_); }

  void all_right() {
    Base::all_right();
    left_positive_ = 0;
  }
  void move(std::uint32_t payload) {
    Base::move(payload);
    left_positive_ += is_positive(payload);
  }
  void move(const Bin* bin) {
    Base::move(bin);
    left_positive_ += bin->positive;
  }
  void fill(Bin* bin, std::uint32_t payload) const {
    Base::fill(bin, payload);
    bin->positive += is_positive(payload);
  }
  static void merge(Bin& to, const Bin& from) {
    Base::merge(to, from);
    to.positive += from.positive;
  }
  static std::uint32_t rows(const Bin* bin, std::size_t) { return bin->rows; }

  bool allowed() const { return left_positive_ > 0 && left_positive_ < positive_; }
  double score() const {
    const double left = left_positive_ > 0 ? sum_log(left_sum_, left_weight_) : 0.0;
    const double right = left_positive_ < positive_ ? sum_log(sum_ - left_sum_, weight_ - left_weight_) : 0.0;
    return left + right;
  }
  bool may_exceed(double) const { return true; }
  double decrease(double score) const { return score - parent_; }
  double highest_score() const { return std::numeric_limits<double>::infinity(); }

 private:
  static double sum_log(double sum, double weight) { return sum == 0 ? 0.0 : sum * std::log(sum / weight); }
  std::uint32_t is_positive(std::uint32_t payload) const { return targets_->values[payload] > 0; }

  std::uint32_t positive_ = 0, left_positive_ = 0;
  double parent_ = 0;  // the score of the node without a split
};

struct PoissonDeviance {
  static constexpr const char* kNames[] = {"poisson"};
  template <bool counts>
  using Stats = PoissonStats;
};

}  // namespace oldgrowth
