// Out-of-bag predictions, added up by many threads. Sums are whole numbers (fixed point), so that the
// order in which trees are grown does not change them.
#pragma once

#include <atomic>
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

// Adds what `tree` says of the bucket's rows that it did not see; row_of[i] is the row's place in the sums.
inline void add_oob(const Bucket& bucket, const TreeWeights& weights, const GrownTree& tree,
                    const std::uint32_t* row_of, const OobSums& oob) {
  const auto add = [&](std::size_t row, std::size_t k, double value) {
    std::atomic_ref<std::int64_t>(oob.sums[row * oob.outputs + k])
        .fetch_add(std::llround(value * oob.scale), std::memory_order_relaxed);
  };
  for (std::size_t i = 0; i < bucket.rows; ++i) {
    if (weights.rows[i] > 0) continue;
    const Node node = leaf_of(bucket, tree, i);
    const std::size_t row = row_of[i];
    std::atomic_ref<std::uint32_t>(oob.trees[row]).fetch_add(1, std::memory_order_relaxed);
    if (bucket.classes.empty()) {
      add(row, 0, leaf_value(node) - oob.offset);
    } else if ((node & kMixedBit) == 0) {
      add(row, payload(node), 1.0);
    } else {
      const float* shares = tree.table.data() + (payload(node) & ~kMixedBit) * oob.outputs;
      if (oob.hard) {
        add(row, static_cast<std::size_t>(std::max_element(shares, shares + oob.outputs) - shares), 1.0);
        continue;
      }
      for (std::size_t k = 0; k < oob.outputs; ++k) add(row, k, static_cast<double>(shares[k]));
    }
  }
}

}  // namespace oldgrowth
