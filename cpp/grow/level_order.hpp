// The order of the levels of a node in which the best split separates the first from the others: by the share of the
// second of two classes, or by mean (exact: Fisher 1958, Breiman et al. 1984); for more classes by the first principal
// component of the class shares (Coppersmith, Hong, Hosking 1999).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "grow/level_counts.hpp"

namespace oldgrowth {

template <class Code, NodeStats Stats>
class LevelOrder {
 public:
  explicit LevelOrder(const Stats& stats) : stats_(stats) {}

  // The numbers of the levels in order; equal ones as they were counted.
  const std::vector<std::uint32_t>& of(const LevelCounts<Code, Stats>& counts) {
    keys_.resize(counts.size());
    if constexpr (!Stats::kClassification) {
      for (std::size_t l = 0; l < counts.size(); ++l) keys_[l] = counts.mean(l);
    } else {
      axis_.resize(stats_.n_classes());
      for (const std::uint32_t k : stats_.present()) axis_[k] = 0;
      axis_[stats_.present().back()] = 1;
      project(counts);
      if (stats_.present().size() > 2) principal_component(counts);
    }
    order_.resize(counts.size());
    std::iota(order_.begin(), order_.end(), 0U);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return keys_[a] < keys_[b]; });
    return order_;
  }

 private:
  // Steps of the power iteration: the order of the levels, not the component, has to settle.
  static constexpr int kSteps = 8;

  // The key of each level: its class shares on the axis. Its weight, too.
  void project(const LevelCounts<Code, Stats>& counts) {
    weights_.resize(counts.size());
    for (std::size_t l = 0; l < counts.size(); ++l) {
      double weight = 0, sum = 0;
      counts.visit_classes(l, [&](std::uint32_t k, double w) {
        weight += w;
        sum += w * axis_[k];
      });
      weights_[l] = weight;
      keys_[l] = sum / weight;
    }
  }

  void principal_component(const LevelCounts<Code, Stats>& counts) {
    // Begins with the largest class against all others.
    const std::uint32_t largest =
        *std::max_element(stats_.present().begin(), stats_.present().end(),
                          [&](std::uint32_t a, std::uint32_t b) { return stats_.total(a) < stats_.total(b); });
    for (const std::uint32_t k : stats_.present()) axis_[k] = k == largest;
    project(counts);
    for (int step = 0; step < kSteps; ++step) {
      double weight = 0, mean = 0;
      for (std::size_t l = 0; l < counts.size(); ++l) {
        weight += weights_[l];
        mean += weights_[l] * keys_[l];
      }
      mean /= weight;
      for (const std::uint32_t k : stats_.present()) axis_[k] = 0;
      for (std::size_t l = 0; l < counts.size(); ++l)
        counts.visit_classes(l, [&](std::uint32_t k, double w) { axis_[k] += w * (keys_[l] - mean); });
      double length = 0;
      for (const std::uint32_t k : stats_.present()) length += axis_[k] * axis_[k];
      if (!(length > 0)) break;  // no level differs from the others
      length = std::sqrt(length);
      for (const std::uint32_t k : stats_.present()) axis_[k] /= length;
      project(counts);
    }
  }

  const Stats& stats_;
  std::vector<double> keys_, weights_, axis_;
  std::vector<std::uint32_t> order_;
};

}  // namespace oldgrowth
