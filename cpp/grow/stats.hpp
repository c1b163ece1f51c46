// What a split search knows of a node's targets, and how it scores "these rows left, those right".
//
// Both kinds have the same face: add() rows to the node, all_right(), then move() rows to the left one by
// one or bin by bin, and ask for score(). A score only ranks the splits of one node; decrease() turns it
// into the weighted impurity decrease  W*I(node) - Wl*I(left) - Wr*I(right).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "grow/counted.hpp"

namespace oldgrowth {

enum class Criterion : std::uint8_t { gini, entropy, squared_error };

// The targets of a block's rows. Rows of weight zero do not take part.
struct Targets {
  std::vector<std::uint32_t> classes;
  std::vector<double> values;
  std::vector<double> weights;  // empty when the payloads carry small whole weights
};

// In counting mode a payload is (class << 4) | weight; else it is the row's place in its block.
inline constexpr std::uint32_t kWeightBits = 4;
inline constexpr std::uint32_t kWeightMask = (1U << kWeightBits) - 1;
inline constexpr std::uint32_t kMaxCountedClasses = 1U << (16 - kWeightBits);

inline double x_log2_x(double x) { return x > 0 ? x * std::log2(x) : 0.0; }

// Classes, with small whole weights carried in the payload, or any weights looked up. A gini score is
//
//   sum over classes of (left in class * right weight - left weight * right in class)^2 / (left weight * right weight),
//
// the weighted decrease times the node's weight: it does not lose small gains in large sums. Of whole weights it is an
// exact quotient.
template <bool counts, Criterion criterion>
class ClassStats {
 public:
  static constexpr bool kCounts = counts;
  static constexpr bool kClassification = true;
  static constexpr bool kCountedGini = counts && criterion == Criterion::gini;  // has the fast way of counted.hpp
  struct WeightedBin {
    double weight;
    std::uint32_t rows;
  };
  using Bin = std::conditional_t<counts, std::uint64_t, WeightedBin>;  // counted: rows << 32 | weight
  using Sum = std::conditional_t<counts, std::int64_t, double>;

  explicit ClassStats(std::uint32_t n_classes)
      : counted_(counts ? n_classes : 0),
        total_(n_classes),
        left_(n_classes),
        log_table_(counts && criterion == Criterion::entropy ? 4096 : 0) {
    for (std::size_t i = 0; i < log_table_.size(); ++i) log_table_[i] = x_log2_x(static_cast<double>(i));
  }

  void use(const Targets& targets) { targets_ = &targets; }
  std::size_t bins_per_code() const { return total_.size(); }

  void clear() {
    std::fill(counted_.begin(), counted_.end(), 0);
    if constexpr (!counts) std::fill(total_.begin(), total_.end(), 0.0);
    weight_ = 0;
    whole_ = true;
  }
  void add(std::uint32_t payload) {
    if constexpr (counts) {
      counted_[class_of(payload)] += (1ULL << 32) | (payload & kWeightMask);
    } else {
      const double w = weight_of(payload);
      total_[class_of(payload)] += w;
      weight_ += w;
      whole_ = whole_ && w == std::floor(w);
    }
  }
  // After the last add(): what does not change while splits are tried.
  void close() {
    present_.clear();
    squares_ = 0;
    if constexpr (counts)
      for (std::size_t k = 0; k < counted_.size(); ++k) weight_ += total_[k] = sum_of(counted_[k]);
    for (std::uint32_t k = 0; k < total_.size(); ++k) {
      if (total_[k] > 0) present_.push_back(k);
      squares_ += total_[k] * total_[k];
    }
    if constexpr (criterion == Criterion::entropy) parent_ = logs() - x_log2_x_fast(weight_);
    if constexpr (kCountedGini) close_node();
    // Then every sum below is a whole number that a double holds, whatever the order.
    if constexpr (!counts)
      exact_ = whole_ && static_cast<double>(squares_) * weight() * weight() < static_cast<double>(1LL << 53);
  }
  bool pure() const { return present_.size() <= 1; }
  double weight() const { return static_cast<double>(weight_); }
  double left_weight() const { return static_cast<double>(left_weight_); }

  void all_right() {
    std::fill(left_.begin(), left_.end(), Sum{0});
    left_weight_ = 0;
    left_squares_ = 0;
    right_squares_ = squares_;
  }
  void move(std::uint32_t payload) {
    const std::uint32_t k = class_of(payload);
    const Sum w = weight_of(payload);
    if constexpr (criterion == Criterion::gini) {
      left_squares_ += w * (2 * left_[k] + w);
      right_squares_ -= w * (2 * (total_[k] - left_[k]) - w);
    }
    left_[k] += w;
    left_weight_ += w;
  }
  void move(const Bin* bins) {
    left_weight_ = left_squares_ = right_squares_ = 0;
    for (std::size_t k = 0; k < total_.size(); ++k) {
      const Sum l = left_[k] += sum_of(bins[k]), r = total_[k] - l;
      left_weight_ += l;
      left_squares_ += l * l;
      right_squares_ += r * r;
    }
  }
  void fill(Bin* bins, std::uint32_t payload) const {
    Bin& bin = bins[class_of(payload)];
    if constexpr (counts) {
      bin += (1ULL << 32) | (payload & kWeightMask);
    } else {
      bin.weight += weight_of(payload);
      ++bin.rows;
    }
  }
  static void merge(Bin& to, const Bin& from) {
    if constexpr (counts) {
      to += from;
    } else {
      to.weight += from.weight;
      to.rows += from.rows;
    }
  }
  static std::uint32_t rows(const Bin* bins, std::size_t n) {
    std::uint64_t rows = 0;
    for (std::size_t k = 0; k < n; ++k) {
      if constexpr (counts)
        rows += bins[k];
      else
        rows += static_cast<std::uint64_t>(bins[k].rows) << 32;
    }
    return static_cast<std::uint32_t>(rows >> 32);
  }

  double score() const {
    const Sum wl = left_weight_, wr = weight_ - left_weight_;
    if constexpr (criterion == Criterion::entropy) {
      double sum = -x_log2_x_fast(wl) - x_log2_x_fast(wr);
      for (const std::uint32_t k : present_) sum += x_log2_x_fast(left_[k]) + x_log2_x_fast(total_[k] - left_[k]);
      return sum;
    } else if constexpr (counts) {
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
  // Whether the score can be higher than `limit`: spares most divisions, and of weights that are not whole most sums
  // over the classes. The margins cover the rounding; that of sums of weights grows with the rows.
  bool may_exceed(double limit) const {
    if (criterion != Criterion::gini || std::isinf(limit)) return true;
    const auto wl = static_cast<double>(left_weight_), wr = static_cast<double>(weight_ - left_weight_);
    const double squares = (limit + static_cast<double>(squares_)) / static_cast<double>(weight_);
    const double rounding = counts || exact_ ? 0.0 : 1e-10 * static_cast<double>(squares_) * weight();
    return static_cast<double>(left_squares_) * wr + static_cast<double>(right_squares_) * wl + rounding >=
           squares * (1 - 1e-12) * (wl * wr);
  }
  double decrease(double score) const { return criterion == Criterion::gini ? score / weight() : score - parent_; }
  // No split of this node can score higher.
  double highest_score() const {
    return criterion == Criterion::gini ? static_cast<double>(weight_ * weight_ - squares_) : 0.0;
  }
  // The node for the vector kernels, or none if it is too large for them.
  const CountedNode* counted_node() const { return fits_vectors_ ? &node_ : nullptr; }

  std::uint32_t only_class() const { return present_.front(); }
  std::size_t n_classes() const { return total_.size(); }
  double total(std::size_t k) const { return static_cast<double>(total_[k]); }
  double share(std::size_t k) const { return static_cast<double>(total_[k]) / weight(); }

  std::uint32_t class_of(std::uint32_t payload) const {
    return counts ? payload >> kWeightBits : targets_->classes[payload];
  }
  Sum weight_of(std::uint32_t payload) const {
    if constexpr (counts)
      return payload & kWeightMask;
    else
      return targets_->weights[payload];
  }

 private:
  static double sum_of(const WeightedBin& bin) { return bin.weight; }
  static std::int64_t sum_of(std::uint64_t bin) { return static_cast<std::uint32_t>(bin); }

  double x_log2_x_fast(Sum x) const {
    if (counts && x < static_cast<Sum>(log_table_.size())) return log_table_[static_cast<std::size_t>(x)];
    return x_log2_x(static_cast<double>(x));
  }
  double logs() const {
    double sum = 0;
    for (const Sum w : total_) sum += x_log2_x_fast(w);
    return sum;
  }

  void close_node() {
    fits_vectors_ = present_.size() <= kVectorClasses && weight_ <= kVectorWeight;
    if (!fits_vectors_) return;
    node_.weight = static_cast<std::int32_t>(weight_);
    node_.n_classes = present_.size();
    for (std::size_t s = 0; s < present_.size(); ++s) {
      node_.classes[s] = present_[s];
      node_.totals[s] = static_cast<std::int32_t>(total_[present_[s]]);
      node_.rows[s] = counted_[present_[s]] >> 32;
    }
  }

  const Targets* targets_ = nullptr;
  std::vector<std::uint64_t> counted_;
  std::vector<Sum> total_, left_;
  std::vector<std::uint32_t> present_;  // the classes of this node
  std::vector<double> log_table_;
  Sum weight_ = 0, left_weight_ = 0;
  Sum squares_ = 0, left_squares_ = 0, right_squares_ = 0;
  bool fits_vectors_ = false;
  bool whole_ = true, exact_ = false;  // of weights that are looked up
  CountedNode node_;
  double parent_ = 0;
};

// A numeric target and the squared error. Sums are taken from the node's first value on, so that a large
// common offset costs no precision.
class ValueStats {
 public:
  static constexpr bool kCounts = false;
  static constexpr bool kClassification = false;
  static constexpr bool kCountedGini = false;
  struct Bin {
    double weight, sum;
    std::uint32_t rows;
  };

  explicit ValueStats(std::uint32_t) {}
  void use(const Targets& targets) { targets_ = &targets; }
  std::size_t bins_per_code() const { return 1; }

  void clear() {
    weight_ = sum_ = 0;
    lowest_ = std::numeric_limits<double>::infinity();
    highest_ = -lowest_;
  }
  void add(std::uint32_t payload) {
    const double y = targets_->values[payload], w = targets_->weights[payload];
    if (weight_ == 0) shift_ = y;
    weight_ += w;
    sum_ += w * (y - shift_);
    lowest_ = std::min(lowest_, y);
    highest_ = std::max(highest_, y);
  }
  void close() {}
  bool pure() const { return lowest_ == highest_; }
  double weight() const { return weight_; }
  double left_weight() const { return left_weight_; }
  double mean() const { return pure() ? lowest_ : shift_ + sum_ / weight_; }

  void all_right() { left_weight_ = left_sum_ = 0; }
  void move(std::uint32_t payload) {
    left_weight_ += targets_->weights[payload];
    left_sum_ += targets_->weights[payload] * (targets_->values[payload] - shift_);
  }
  void move(const Bin* bin) {
    left_weight_ += bin->weight;
    left_sum_ += bin->sum;
  }
  void fill(Bin* bin, std::uint32_t payload) const {
    bin->weight += targets_->weights[payload];
    bin->sum += targets_->weights[payload] * (targets_->values[payload] - shift_);
    ++bin->rows;
  }
  static void merge(Bin& to, const Bin& from) {
    to.weight += from.weight;
    to.sum += from.sum;
    to.rows += from.rows;
  }
  static std::uint32_t rows(const Bin* bin, std::size_t) { return bin->rows; }

  double score() const {
    const double right_sum = sum_ - left_sum_;
    return left_sum_ * left_sum_ / left_weight_ + right_sum * right_sum / (weight_ - left_weight_);
  }
  bool may_exceed(double) const { return true; }
  double decrease(double score) const { return score - sum_ * sum_ / weight_; }
  double highest_score() const { return std::numeric_limits<double>::infinity(); }

 private:
  const Targets* targets_ = nullptr;
  double weight_ = 0, sum_ = 0, shift_ = 0, lowest_ = 0, highest_ = 0;
  double left_weight_ = 0, left_sum_ = 0;
};

}  // namespace oldgrowth
