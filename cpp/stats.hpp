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

#include "counted.hpp"

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

// Classes, with small whole weights carried in the payload, or any weights looked up. Sums of whole numbers
// are exact in a double, so counting needs no other type.
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

  explicit ClassStats(std::uint32_t n_classes)
      : counted_(counts ? n_classes : 0),
        total_(n_classes),
        left_(n_classes),
        log_table_(counts && criterion == Criterion::entropy ? 4096 : 0) {
    for (std::size_t i = 0; i < log_table_.size(); ++i) log_table_[i] = x_log2_x(static_cast<double>(i));
  }

  void use(const Targets& targets) { targets_ = &targets; }
  void set_unit_weights(bool unit) { unit_weights_ = unit; }
  bool unit_weights() const { return unit_weights_; }  // all rows of the tree weigh one
  std::size_t bins_per_code() const { return total_.size(); }

  void clear() {
    std::fill(counted_.begin(), counted_.end(), 0);
    std::fill(total_.begin(), total_.end(), 0.0);
    weight_ = 0;
  }
  void add(std::uint32_t payload) {
    if constexpr (counts) {
      counted_[class_of(payload)] += (1ULL << 32) | (payload & kWeightMask);
    } else {
      total_[class_of(payload)] += weight_of(payload);
      weight_ += weight_of(payload);
    }
  }
  // After the last add(): what does not change while splits are tried.
  void close() {
    classes_present_ = 0;
    squares_ = 0;
    for (std::size_t k = 0; k < counted_.size(); ++k) weight_ += total_[k] = weight_of(counted_[k]);
    for (const double w : total_) {
      classes_present_ += w > 0;
      squares_ += w * w;
    }
    parent_ = criterion == Criterion::entropy ? logs() - x_log2_x_fast(weight_) : squares_ / weight_;
    if constexpr (kCountedGini) close_node();
  }
  bool pure() const { return classes_present_ <= 1; }
  double weight() const { return weight_; }
  double left_weight() const { return left_weight_; }

  void all_right() {
    std::fill(left_.begin(), left_.end(), 0.0);
    left_weight_ = 0;
    left_squares_ = 0;
    right_squares_ = squares_;
  }
  void move(std::uint32_t payload) {
    const std::uint32_t k = class_of(payload);
    const double w = weight_of(payload);
    if constexpr (criterion == Criterion::gini) {
      left_squares_ += w * (2 * left_[k] + w);
      right_squares_ -= w * (2 * (total_[k] - left_[k]) - w);
    }
    left_[k] += w;
    left_weight_ += w;
  }
  void recount() {
    left_weight_ = left_squares_ = right_squares_ = 0;
    for (std::size_t k = 0; k < total_.size(); ++k) {
      const double l = left_[k], r = total_[k] - l;
      left_weight_ += l;
      left_squares_ += l * l;
      right_squares_ += r * r;
    }
  }
  void move(const Bin* bins) {
    for (std::size_t k = 0; k < left_.size(); ++k) left_[k] += weight_of(bins[k]);
    recount();
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
    const double wl = left_weight_, wr = weight_ - left_weight_;
    if constexpr (criterion == Criterion::entropy) {
      double sum = -x_log2_x_fast(wl) - x_log2_x_fast(wr);
      for (std::size_t k = 0; k < total_.size(); ++k)
        if (total_[k] > 0) sum += x_log2_x_fast(left_[k]) + x_log2_x_fast(total_[k] - left_[k]);
      return sum;
    }
    if constexpr (kCountedGini) {
      double sum = 0;
      for (std::size_t k = 0; k < total_.size(); ++k) {
        const double apart = left_[k] * weight_ - wl * total_[k];
        sum += apart * apart;
      }
      return sum / (wl * wr);
    }
    return (left_squares_ * wr + right_squares_ * wl) / (wl * wr);
  }
  // Whether the score can be higher than `limit`: spares most divisions. The margin covers the rounding.
  bool may_exceed(double limit) const {
    if (criterion == Criterion::entropy || std::isinf(limit)) return true;
    const double wl = left_weight_, wr = weight_ - left_weight_;
    const double squares = kCountedGini ? (limit + squares_) / weight_ : limit;
    return left_squares_ * wr + right_squares_ * wl >= squares * (1 - 1e-12) * (wl * wr);
  }
  double decrease(double score) const { return kCountedGini ? score / weight_ : score - parent_; }
  // No split of this node can score higher.
  double highest_score() const {
    if (kCountedGini) return weight_ * weight_ - squares_;
    return criterion == Criterion::entropy ? 0.0 : weight_;
  }
  // The node for the vector kernels, or none if it is too large for them.
  const CountedNode* counted_node() const { return fits_vectors_ ? &node_ : nullptr; }

  std::uint32_t only_class() const {
    return static_cast<std::uint32_t>(std::max_element(total_.begin(), total_.end()) - total_.begin());
  }
  std::size_t n_classes() const { return total_.size(); }
  std::uint64_t counted(std::size_t k) const { return counted_[k]; }  // rows << 32 | weight of a class
  double share(std::size_t k) const { return total_[k] / weight_; }

  std::uint32_t class_of(std::uint32_t payload) const {
    return counts ? payload >> kWeightBits : targets_->classes[payload];
  }
  double weight_of(std::uint32_t payload) const {
    return counts ? static_cast<double>(payload & kWeightMask) : targets_->weights[payload];
  }

 private:
  static double weight_of(const WeightedBin& bin) { return bin.weight; }
  static double weight_of(std::uint64_t bin) { return static_cast<double>(static_cast<std::uint32_t>(bin)); }

  double x_log2_x_fast(double x) const {
    if (counts && x < static_cast<double>(log_table_.size())) return log_table_[static_cast<std::size_t>(x)];
    return x_log2_x(x);
  }
  double logs() const {
    double sum = 0;
    for (const double w : total_) sum += x_log2_x_fast(w);
    return sum;
  }

  void close_node() {
    fits_vectors_ = classes_present_ <= kVectorClasses && weight_ <= kVectorWeight;
    if (!fits_vectors_) return;
    node_.weight = static_cast<std::int32_t>(weight_);
    node_.n_classes = 0;
    for (std::uint32_t k = 0; k < counted_.size(); ++k) {
      if (counted_[k] == 0) continue;
      node_.classes[node_.n_classes] = k;
      node_.totals[node_.n_classes] = static_cast<std::int32_t>(counted_[k]);
      node_.rows[node_.n_classes++] = counted_[k] >> 32;
    }
  }

  const Targets* targets_ = nullptr;
  std::vector<std::uint64_t> counted_;
  std::vector<double> total_, left_;
  std::vector<double> log_table_;
  double weight_ = 0, left_weight_ = 0;
  double squares_ = 0, left_squares_ = 0, right_squares_ = 0;
  std::uint32_t classes_present_ = 0;
  bool unit_weights_ = false;
  bool fits_vectors_ = false;
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
