// A split of a node, and the rules for finding one.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "grow/rank_codes.hpp"

namespace oldgrowth {

template <class Code>
using Word = std::conditional_t<sizeof(Code) == 2, std::uint32_t, std::uint64_t>;

template <class Code>
struct Split {
  double score = -std::numeric_limits<double>::infinity();  // what the search maximises
  double decrease = 0;                                      // of the weighted impurity
  std::uint32_t feature = 0;
  Code last_left = 0;                                     // codes up to this one go left
  Code first_right = 0;                                   // the next one that occurs
  float drawn = std::numeric_limits<float>::quiet_NaN();  // a random threshold, or infinity: only missing rows right
  bool missing_left = false;
  bool perfect = false;  // no other feature can do better

  bool found() const { return score > -std::numeric_limits<double>::infinity(); }
};

struct SplitRules {
  std::size_t min_samples_leaf = 1;
  double min_weight_leaf = 0;
  double balance = 0;         // lambda
  double impurity_scale = 1;  // divides the gain when it is weighed against balance
};

// The float32 just at or below the middle: for float32 rows it separates exactly as the middle does.
inline float middle(float low, float high) {
  const double mid = 0.5 * static_cast<double>(low) + 0.5 * static_cast<double>(high);
  auto rounded = static_cast<float>(mid);
  if (static_cast<double>(rounded) > mid) rounded = std::nextafterf(rounded, -std::numeric_limits<float>::infinity());
  return std::max(low, rounded);
}

// A random threshold between two values of a feature, and the last code at or below it.
struct Drawn {
  float threshold;
  std::size_t last;
};

inline Drawn draw_threshold(const float* values, std::size_t lowest, std::size_t highest, double unit) {
  const double low = values[lowest], high = values[highest];
  auto threshold = static_cast<float>(low + unit * (high - low));
  if (!(threshold < values[highest])) threshold = values[lowest];
  // A branch-free binary search: the position of the threshold is hard to predict.
  std::size_t last = lowest;
  for (std::size_t span = highest - lowest; span > 0;) {
    const std::size_t step = (span + 1) / 2;
    last += values[last + step] <= threshold ? step : 0;
    span -= step;
  }
  return {threshold, last};
}

template <class Code>
float threshold_of(const Split<Code>& split, const Block<Code>& block) {
  if (split.drawn == split.drawn) return split.drawn;
  const float* values = block.values[split.feature];
  return middle(values[split.last_left], values[split.first_right]);
}

}  // namespace oldgrowth
