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
inline constexpr std::uint32_t kMaxCountedClasses = 1U << (16 - kWeightBits);

inline double x_log2_x(double x) { return x > 0 ? x * std::log2(x) : 0.0; }

// Classes, with whole weights carried in the payload (Weight = int64) or any weights looked up (double).
template <class Weight, Criterion criterion>
class ClassStats {
 public:
  static constexpr bool kCounts = std::is_integral_v<Weight>;
  static constexpr bool kClassification = true;
  struct Bin {
    std::conditional_t<kCounts, std::uint32_t, double> weight;
    std::uint32_t rows;
  };

  explicit ClassStats(std::uint32_t n_classes)
      : total_(n_classes), left_(n_classes), log_table_(kCounts && criterion == Criterion::entropy ? 4096 : 0) {
    for (std::size_t i = 0; i < log_table_.size(); ++i) log_table_[i] = x_log2_x(static_cast<double>(i));
  }

  void use(const Targets& targets) { targets_ = &targets; }
  std::size_t bins_per_code() const { return total_.size(); }

  void clear() {
    std::fill(total_.begin(), total_.end(), Weight{0});
    weight_ = 0;
  }
  void add(std::uint32_t payload) {
    total_[class_of(payload)] += weight_of(payload);
    weight_ += weight_of(payload);
  }
  // After the last add(): what does not change while splits are tried.
  void close() {
    classes_present_ = 0;
    squares_ = 0;
    for (const Weight w : total_) {
      classes_present_ += w > 0;
      squares_ += w * w;
    }
    parent_ = criterion == Criterion::entropy ? logs(total_) - x_log2_x_fast(weight_)
                                              : static_cast<double>(squares_) / static_cast<double>(weight_);
  }
  bool pure() const { return classes_present_ <= 1; }
  double weight() const { return static_cast<double>(weight_); }
  double impurity() const {
    return criterion == Criterion::entropy ? -parent_ / weight() : 1.0 - parent_ / weight();
  }

  void all_right() {
    std::fill(left_.begin(), left_.end(), Weight{0});
    left_weight_ = 0;
    left_squares_ = 0;
    right_squares_ = squares_;
  }
  void move(std::uint32_t payload) { move(class_of(payload), weight_of(payload)); }
  void move(const Bin* bins) {
    for (std::uint32_t k = 0; k < total_.size(); ++k)
      if (bins[k].rows > 0) move(k, static_cast<Weight>(bins[k].weight));
  }
  void fill(Bin* bins, std::uint32_t payload) const {
    Bin& bin = bins[class_of(payload)];
    bin.weight += static_cast<decltype(bin.weight)>(weight_of(payload));
    ++bin.rows;
  }
  static std::uint32_t rows(const Bin* bins, std::size_t n) {
    std::uint32_t rows = 0;
    for (std::size_t k = 0; k < n; ++k) rows += bins[k].rows;
    return rows;
  }

  double score() const {
    const double wl = static_cast<double>(left_weight_);
    const double wr = static_cast<double>(weight_ - left_weight_);
    if constexpr (criterion == Criterion::entropy) {
      double sum = -x_log2_x_fast(left_weight_) - x_log2_x_fast(weight_ - left_weight_);
      for (std::size_t k = 0; k < total_.size(); ++k)
        if (total_[k] > 0) sum += x_log2_x_fast(left_[k]) + x_log2_x_fast(total_[k] - left_[k]);
      return sum;
    } else if constexpr (kCounts) {
      return (static_cast<double>(left_squares_) * wr + static_cast<double>(right_squares_) * wl) / (wl * wr);
    } else {
      double left = 0, right = 0;
      for (std::size_t k = 0; k < total_.size(); ++k) {
        left += left_[k] * left_[k];
        right += (total_[k] - left_[k]) * (total_[k] - left_[k]);
      }
      return left / wl + right / wr;
    }
  }
  double decrease(double score) const { return score - parent_; }
  // No split of this node can score higher.
  double highest_score() const { return criterion == Criterion::entropy ? 0.0 : weight(); }

  std::uint32_t only_class() const {
    return static_cast<std::uint32_t>(std::max_element(total_.begin(), total_.end()) - total_.begin());
  }
  std::size_t n_classes() const { return total_.size(); }
  double share(std::size_t k) const { return static_cast<double>(total_[k]) / weight(); }

  std::uint32_t class_of(std::uint32_t payload) const {
    if constexpr (kCounts) return payload >> kWeightBits;
    return targets_->classes[payload];
  }
  Weight weight_of(std::uint32_t payload) const {
    if constexpr (kCounts) {
      return static_cast<Weight>(payload & ((1U << kWeightBits) - 1));
    } else {
      return targets_->weights[payload];
    }
  }
  Weight total(std::size_t k) const { return total_[k]; }

 private:
  void move(std::uint32_t k, Weight w) {
    if constexpr (kCounts && criterion == Criterion::gini) {
      left_squares_ += w * (2 * left_[k] + w);
      right_squares_ -= w * (2 * (total_[k] - left_[k]) - w);
    }
    left_[k] += w;
    left_weight_ += w;
  }
  double x_log2_x_fast(Weight x) const {
    if constexpr (kCounts)
      if (static_cast<std::size_t>(x) < log_table_.size()) return log_table_[static_cast<std::size_t>(x)];
    return x_log2_x(static_cast<double>(x));
  }
  double logs(const std::vector<Weight>& weights) const {
    double sum = 0;
    for (const Weight w : weights) sum += x_log2_x_fast(w);
    return sum;
  }

  const Targets* targets_ = nullptr;
  std::vector<Weight> total_, left_;
  std::vector<double> log_table_;
  Weight weight_ = 0, left_weight_ = 0;
  Weight squares_ = 0, left_squares_ = 0, right_squares_ = 0;
  std::uint32_t classes_present_ = 0;
  double parent_ = 0;
};

// A numeric target and the squared error. Targets come centred, so that large offsets cost no precision.
class ValueStats {
 public:
  static constexpr bool kCounts = false;
  static constexpr bool kClassification = false;
  struct Bin {
    double weight, sum;
    std::uint32_t rows;
  };

  explicit ValueStats(std::uint32_t) {}
  void use(const Targets& targets) { targets_ = &targets; }
  std::size_t bins_per_code() const { return 1; }

  void clear() {
    weight_ = sum_ = squares_ = 0;
    lowest_ = std::numeric_limits<double>::infinity();
    highest_ = -lowest_;
  }
  void add(std::uint32_t payload) {
    const double y = targets_->values[payload], w = targets_->weights[payload];
    weight_ += w;
    sum_ += w * y;
    squares_ += w * y * y;
    lowest_ = std::min(lowest_, y);
    highest_ = std::max(highest_, y);
  }
  void close() {}
  bool pure() const { return lowest_ == highest_; }
  double weight() const { return weight_; }
  double impurity() const { return std::max(0.0, squares_ / weight_ - mean() * mean()); }
  double mean() const { return pure() ? lowest_ : sum_ / weight_; }

  void all_right() { left_weight_ = left_sum_ = 0; }
  void move(std::uint32_t payload) {
    left_weight_ += targets_->weights[payload];
    left_sum_ += targets_->weights[payload] * targets_->values[payload];
  }
  void move(const Bin* bin) {
    left_weight_ += bin->weight;
    left_sum_ += bin->sum;
  }
  void fill(Bin* bin, std::uint32_t payload) const {
    bin->weight += targets_->weights[payload];
    bin->sum += targets_->weights[payload] * targets_->values[payload];
    ++bin->rows;
  }
  static std::uint32_t rows(const Bin* bin, std::size_t) { return bin->rows; }

  double score() const {
    const double right_sum = sum_ - left_sum_;
    return left_sum_ * left_sum_ / left_weight_ + right_sum * right_sum / (weight_ - left_weight_);
  }
  double decrease(double score) const { return score - sum_ * sum_ / weight_; }
  double highest_score() const { return std::numeric_limits<double>::infinity(); }

 private:
  const Targets* targets_ = nullptr;
  double weight_ = 0, sum_ = 0, squares_ = 0, lowest_ = 0, highest_ = 0;
  double left_weight_ = 0, left_sum_ = 0;
};

}  // namespace oldgrowth
