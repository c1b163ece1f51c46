// Out-of-bag predictions of a bucket's rows. Sums are whole numbers (fixed point), so that the order in
// which trees are added does not change them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "bucket.hpp"

namespace oldgrowth {

struct OobSums {
  std::int64_t* sums;    // rows x outputs
  std::uint32_t* trees;  // per row: how many trees did not see it
  std::size_t outputs;
  double scale;   // sums hold value * scale
  double offset;  // subtracted from a regression's values first
  bool hard;
};

// Adds what `tree` says of the bucket's rows that it did not see.
inline void add_oob(const Bucket& bucket, const TreeWeights& weights, const GrownTree& tree, const OobSums& oob) {
  const auto add = [&](std::size_t row, std::size_t k, double value) {
    oob.sums[row * oob.outputs + k] += std::llround(value * oob.scale);
  };
  for (std::size_t i = 0; i < bucket.rows; ++i) {
    if (weights.rows[i] > 0) continue;
    const Node node = leaf_of(bucket, tree, i);
    ++oob.trees[i];
    if (bucket.classes.empty()) {
      add(i, 0, leaf_value(node) - oob.offset);
    } else if ((node & kMixedBit) == 0) {
      add(i, payload(node), 1.0);
    } else {
      const float* shares = tree.table.data() + (payload(node) & ~kMixedBit) * oob.outputs;
      if (oob.hard) {
        add(i, static_cast<std::size_t>(std::max_element(shares, shares + oob.outputs) - shares), 1.0);
        continue;
      }
      for (std::size_t k = 0; k < oob.outputs; ++k) add(i, k, static_cast<double>(shares[k]));
    }
  }
}

}  // namespace oldgrowth
