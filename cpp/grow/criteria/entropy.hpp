// Entropy in bits. A score is the sum of x log2(x) over the classes of both sides, less that of their weights.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "grow/criteria/class_totals.hpp"

namespace oldgrowth {

template <bool counts>
class EntropyStats : public ClassTotals<counts> {
  using Base = ClassTotals<counts>;

 public:
  using typename Base::Sum;

  explicit EntropyStats(std::uint32_t n_classes) : Base(n_classes), table_(counts ? 4096 : 0) {
    for (std::size_t i = 0; i < table_.size(); ++i) table_[i] = exact(static_cast<double>(i));
  }

  void close() {
    Base::close();
    double sum = 0;
    for (const std::uint32_t k : present_) sum += x_log2_x(total_[k]);
    parent_ = sum - x_log2_x(weight_);
  }

  double score() const {
    const Sum wl = left_weight_, wr = weight_ - left_weight_;
    double sum = -x_log2_x(wl) - x_log2_x(wr);
    for (const std::uint32_t k : present_) sum += x_log2_x(left_[k]) + x_log2_x(total_[k] - left_[k]);
    return sum;
  }
  bool may_exceed(double) const { return true; }
  double decrease(double score) const { return score - parent_; }
  double highest_score() const { return 0.0; }

 private:
  using Base::left_, Base::left_weight_, Base::present_, Base::total_, Base::weight_;

  static double exact(double x) { return x > 0 ? x * std::log2(x) : 0.0; }
  double x_log2_x(Sum x) const {
    if (counts && x < static_cast<Sum>(table_.size())) return table_[static_cast<std::size_t>(x)];
    return exact(static_cast<double>(x));
  }

  std::vector<double> table_;  // x log2(x) of small whole numbers
  double parent_ = 0;          // the score of the node without a split
};

struct Entropy {
  static constexpr const char* kNames[] = {"entropy", "log_loss"};
  template <bool counts>
  using Stats = EntropyStats<counts>;
};

}  // namespace oldgrowth
