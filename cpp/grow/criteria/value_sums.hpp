// Shared by all criteria for regression: weighted sums, in a node and on the left of a split. If only differences of
// values matter to a criterion, they are relative to the first one of the node (`from_first`), so that a large common
// offset costs no precision.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "grow/targets.hpp"

namespace oldgrowth {

template <bool from_first>
class ValueSums {
 public:
  static constexpr bool kCounts = false;
  static constexpr bool kRefuses = false;
  static constexpr bool kClassification = false;
  static constexpr bool kCountedSearch = false;
  struct Bin {
    double weight, sum;
    std::uint32_t rows;
  };

  explicit ValueSums(std::uint32_t) {}
  void use(const Targets& targets) { targets_ = &targets; }
  std::size_t bins_per_code() const { return 1; }

  void clear() {
    weight_ = sum_ = 0;
    lowest_ = std::numeric_limits<double>::infinity();
    highest_ = -lowest_;
  }
  void add(std::uint32_t payload) {
    const double y = targets_->values[payload], w = targets_->weights[payload];
    if (from_first && weight_ == 0) shift_ = y;
    weight_ += w;
    sum_ += w * (y - shift_);
    lowest_ = std::min(lowest_, y);
    highest_ = std::max(highest_, y);
  }
  void close() {}
  bool pure() const { return lowest_ == highest_; }
  double weight() const { return weight_; }
  double left_weight() const { return left_weight_; }

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

  // For the order of levels.
  static double mean_of_bin(const Bin& bin) { return bin.sum / bin.weight; }

  // For leaves.
  double mean() const { return pure() ? lowest_ : shift_ + sum_ / weight_; }

 protected:
  const Targets* targets_ = nullptr;
  double weight_ = 0, sum_ = 0, shift_ = 0, lowest_ = 0, highest_ = 0;
  double left_weight_ = 0, left_sum_ = 0;
};

}  // namespace oldgrowth
