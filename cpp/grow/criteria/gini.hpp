// Gini impurity. A score is
//
//   sum over classes of (left in class * right weight - left weight * right in class)^2 / (left weight * right weight),
//
// the weighted decrease times the node's weight: it does not lose small gains in large sums. With whole weights it is
// an exact quotient.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "grow/counted.hpp"
#include "grow/criteria/class_totals.hpp"

namespace oldgrowth {

template <bool counts>
class GiniStats : public ClassTotals<counts> {
  using Base = ClassTotals<counts>;

 public:
  static constexpr bool kCountedSearch = counts;
  using typename Base::Bin;
  using typename Base::Sum;

  explicit GiniStats(std::uint32_t n_classes) : Base(n_classes) {}

  void close() {
    Base::close();
    squares_ = 0;
    for (const std::uint32_t k : present_) squares_ += total_[k] * total_[k];
    if constexpr (counts) close_node();
    // Then every sum below is a whole number that a double holds exactly, whatever the order.
    if constexpr (!counts) exact_ = whole_ && squares_ * weight_ * weight_ < static_cast<double>(1LL << 53);
  }

  void all_right() {
    Base::all_right();
    left_squares_ = 0;
    right_squares_ = squares_;
  }
  void move(std::uint32_t payload) {
    const std::uint32_t k = this->class_of(payload);
    const Sum w = this->weight_of(payload);
    left_squares_ += w * (2 * left_[k] + w);
    right_squares_ -= w * (2 * (total_[k] - left_[k]) - w);
    this->move_class(k, w);
  }
  void move(const Bin* bins) {
    left_weight_ = left_squares_ = right_squares_ = 0;
    for (std::size_t k = 0; k < total_.size(); ++k) {
      left_[k] += this->sum_of(bins[k]);
      add_class(k);
    }
  }
  void sum_left() {
    left_weight_ = left_squares_ = right_squares_ = 0;
    for (const std::uint32_t k : present_) add_class(k);
  }

  double score() const {
    const Sum wl = left_weight_, wr = weight_ - left_weight_;
    if constexpr (counts) {
      using Wide = __int128;
      const Wide apart = weight_ * (static_cast<Wide>(left_squares_) * wr + static_cast<Wide>(right_squares_) * wl) -
                         static_cast<Wide>(squares_) * wl * wr;
      return static_cast<double>(apart) / static_cast<double>(wl * wr);
    } else if (exact_) {
      return (weight_ * (left_squares_ * wr + right_squares_ * wl) - squares_ * wl * wr) / (wl * wr);
    } else {
      double sum = 0;
      for (const std::uint32_t k : present_) {
        const double apart = left_[k] * wr - wl * (total_[k] - left_[k]);
        sum += apart * apart;
      }
      return sum / (wl * wr);
    }
  }
  // Spares most divisions and, with weights that are not whole, most sums over the classes. The margins cover the
  // rounding; that of sums of weights grows with the rows.
  bool may_exceed(double limit) const {
    if (std::isinf(limit)) return true;
    const auto wl = static_cast<double>(left_weight_), wr = static_cast<double>(weight_ - left_weight_);
    const double squares = (limit + static_cast<double>(squares_)) / static_cast<double>(weight_);
    const double rounding = counts || exact_ ? 0.0 : 1e-10 * static_cast<double>(squares_) * this->weight();
    return static_cast<double>(left_squares_) * wr + static_cast<double>(right_squares_) * wl + rounding >=
           squares * (1 - 1e-12) * (wl * wr);
  }
  double decrease(double score) const { return score / this->weight(); }
  double highest_score() const { return static_cast<double>(weight_ * weight_ - squares_); }

  // The node for the vector kernels, or null if it is too large for them.
  const CountedNode* counted_node() const { return fits_vectors_ ? &node_ : nullptr; }

 private:
  void add_class(std::size_t k) {
    const Sum l = left_[k], r = total_[k] - l;
    left_weight_ += l;
    left_squares_ += l * l;
    right_squares_ += r * r;
  }

  using Base::left_, Base::left_weight_, Base::present_, Base::total_, Base::weight_, Base::whole_;

  void close_node() {
    fits_vectors_ = present_.size() <= kVectorClasses && weight_ <= kVectorWeight;
    if (!fits_vectors_) return;
    node_.weight = static_cast<std::int32_t>(weight_);
    node_.n_classes = present_.size();
    for (std::size_t s = 0; s < present_.size(); ++s) {
      node_.classes[s] = present_[s];
      node_.totals[s] = static_cast<std::int32_t>(total_[present_[s]]);
      node_.rows[s] = this->counted_[present_[s]] >> 32;
    }
  }

  Sum squares_ = 0, left_squares_ = 0, right_squares_ = 0;  // sums of the squared totals
  bool exact_ = false;
  bool fits_vectors_ = false;
  CountedNode node_;
};

struct Gini {
  static constexpr const char* kNames[] = {"gini"};
  template <bool counts>
  using Stats = GiniStats<counts>;
};

}  // namespace oldgrowth
