// The gini search for nodes in which just two classes are left: most nodes of most forests. With W rows'
// weight in all and C of it in the marked class, a split that puts weight w left, c of it marked, scores
//
//   (c*W - w*C)^2 / (w * (W - w)),
//
// which ranks splits as gini does and is an exact quotient of whole numbers before the division.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oldgrowth {

struct TwoClassNode {
  std::int64_t weight = 0;  // W
  std::int64_t marked = 0;  // C
  std::uint32_t marked_class = 0;

  double score(std::int64_t w, std::int64_t c) const {
    const auto apart = static_cast<double>(c * weight - w * marked);
    return apart * apart / (static_cast<double>(w) * static_cast<double>(weight - w));
  }

  // Whether the score can be higher than `limit`: spares most divisions. The margin covers the rounding.
  bool may_exceed(std::int64_t w, std::int64_t c, double limit) const {
    const auto apart = static_cast<double>(c * weight - w * marked);
    return apart * apart >= limit * (1 - 1e-12) * (static_cast<double>(w) * static_cast<double>(weight - w));
  }
};

struct TwoClassBest {
  double score;           // as given, if nothing is better
  std::size_t last_left;  // index of the last key on the left
  bool found;
};

// The first best split of n sorted 32-bit keys (code << 16 | class << 4 | weight), with at least min_leaf
// keys on each side, if it scores higher than `score`.
using TwoClassScan = TwoClassBest (*)(const std::uint32_t* keys, std::size_t n, const TwoClassNode& node,
                                      std::size_t min_leaf, double score);
TwoClassScan two_class_scan();           // the best for this machine
TwoClassScan two_class_scan_baseline();  // for any machine: the oracle in the tests

}  // namespace oldgrowth
