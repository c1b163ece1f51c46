// Shared by all criteria for classification: the weight of each class, in a node and on the left of a split.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "grow/targets.hpp"

namespace oldgrowth {

// With `counts`, payloads carry small whole weights and all sums are integers; otherwise weights are looked up.
template <bool counts>
class ClassTotals {
 public:
  static constexpr bool kCounts = counts;
  static constexpr bool kClassification = true;
  static constexpr bool kCountedSearch = false;
  static constexpr bool kRefuses = false;
  struct WeightedBin {
    double weight;
    std::uint32_t rows;
  };
  using Bin = std::conditional_t<counts, std::uint64_t, WeightedBin>;  // counted: rows << 32 | weight
  using Sum = std::conditional_t<counts, std::int64_t, double>;

  explicit ClassTotals(std::uint32_t n_classes)
      : many_(n_classes > kMany), counted_(counts ? n_classes : 0), total_(n_classes), left_(n_classes) {}

  void use(const Targets& targets) { targets_ = &targets; }
  std::size_t bins_per_code() const { return total_.size(); }

  void clear() {
    for (const std::uint32_t k : touched_) {
      if constexpr (counts) counted_[k] = 0;
      total_[k] = left_[k] = 0;
    }
    if (touched_.empty()) {
      std::fill(counted_.begin(), counted_.end(), 0);
      if (!counts || many_) std::fill(total_.begin(), total_.end(), Sum{0});
      if (many_) std::fill(left_.begin(), left_.end(), Sum{0});
    }
    touched_.clear();
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
  // A node of few rows, of many classes: its rows are touched after they were added, and the other classes are
  // never looked at.
  bool sparse(std::size_t rows) const { return many_ && rows < total_.size(); }
  void touch(std::uint32_t payload) { touched_.push_back(class_of(payload)); }
  void close() {
    present_.clear();
    if (!touched_.empty()) {
      std::sort(touched_.begin(), touched_.end());  // sums over the classes have a fixed order
      touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
      for (const std::uint32_t k : touched_) {
        if constexpr (counts) weight_ += total_[k] = sum_of(counted_[k]);
        if (total_[k] > 0) present_.push_back(k);
      }
      return;
    }
    if constexpr (counts)
      for (std::size_t k = 0; k < counted_.size(); ++k) weight_ += total_[k] = sum_of(counted_[k]);
    for (std::uint32_t k = 0; k < total_.size(); ++k)
      if (total_[k] > 0) present_.push_back(k);
  }
  bool pure() const { return present_.size() <= 1; }
  double weight() const { return static_cast<double>(weight_); }
  double left_weight() const { return static_cast<double>(left_weight_); }

  void all_right() {
    if (touched_.empty())
      std::fill(left_.begin(), left_.end(), Sum{0});
    else
      for (const std::uint32_t k : present_) left_[k] = 0;
    left_weight_ = 0;
  }
  void move(std::uint32_t payload) { move_class(class_of(payload), weight_of(payload)); }
  void move(const Bin* bins) {
    left_weight_ = 0;
    for (std::size_t k = 0; k < total_.size(); ++k) left_weight_ += left_[k] += sum_of(bins[k]);
  }

  // The same row by row, for nodes with fewer rows than there are classes: first all rows, then the sums.
  void add_left(std::uint32_t payload) { left_[class_of(payload)] += weight_of(payload); }
  void sum_left() {
    left_weight_ = 0;
    for (const std::uint32_t k : present_) left_weight_ += left_[k];
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

  // For the order of levels.
  const std::vector<std::uint32_t>& present() const { return present_; }
  std::uint32_t class_of_row(std::uint32_t payload) const { return class_of(payload); }
  double weight_of_row(std::uint32_t payload) const { return static_cast<double>(weight_of(payload)); }
  static double weight_of_bin(const Bin& bin) { return static_cast<double>(sum_of(bin)); }

  // For leaves.
  std::uint32_t only_class() const { return present_.front(); }
  std::size_t n_classes() const { return total_.size(); }
  double total(std::size_t k) const { return static_cast<double>(total_[k]); }
  double share(std::size_t k) const { return static_cast<double>(total_[k]) / weight(); }

 protected:
  std::uint32_t class_of(std::uint32_t payload) const {
    return counts ? payload >> kWeightBits : targets_->classes[payload];
  }
  Sum weight_of(std::uint32_t payload) const {
    if constexpr (counts)
      return payload & kWeightMask;
    else
      return targets_->weights[payload];
  }
  void move_class(std::uint32_t k, Sum w) {
    left_[k] += w;
    left_weight_ += w;
  }
  static double sum_of(const WeightedBin& bin) { return bin.weight; }
  static std::int64_t sum_of(std::uint64_t bin) { return static_cast<std::uint32_t>(bin); }

  static constexpr std::uint32_t kMany = 512;  // classes, of which most nodes have few

  const Targets* targets_ = nullptr;
  bool many_;
  std::vector<std::uint32_t> touched_;  // the classes of a node of few rows, outside of which all sums are zero
  std::vector<std::uint64_t> counted_;  // of the node: rows << 32 | weight, by class
  std::vector<Sum> total_, left_;
  std::vector<std::uint32_t> present_;  // the classes of this node
  Sum weight_ = 0, left_weight_ = 0;
  bool whole_ = true;  // all weights that were looked up are whole numbers
};

}  // namespace oldgrowth
