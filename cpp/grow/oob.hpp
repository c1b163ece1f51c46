// Out-of-bag predictions of a bucket's rows. Sums are whole numbers (fixed point), so that the order in
// which trees are added does not change them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "grow/bootstrap.hpp"
#include "grow/bucket.hpp"

namespace oldgrowth {

struct OobSums {
  std::int64_t* sums;    // rows x outputs
  std::uint32_t* trees;  // per row: how many trees did not see it
  std::size_t outputs;
  double scale;   // sums hold value * scale
  double offset;  // subtracted from a regression's values first
  bool hard;
};

// Adds the vote of a leaf for a row that its tree did not see. `table` holds the shares of the tree's mixed leaves.
inline void add_vote(const OobSums& oob, std::size_t row, bool classification, Node node, const float* table) {
  const auto add = [&](std::size_t k, double value) {
    oob.sums[row * oob.outputs + k] += std::llround(value * oob.scale);
  };
  ++oob.trees[row];
  if (!classification) {
    add(0, leaf_value(node) - oob.offset);
  } else if ((node & kMixedBit) == 0) {
    add(payload(node), 1.0);
  } else {
    const float* shares = table + (payload(node) & ~kMixedBit) * oob.outputs;
    if (oob.hard) {
      add(static_cast<std::size_t>(std::max_element(shares, shares + oob.outputs) - shares), 1.0);
      return;
    }
    for (std::size_t k = 0; k < oob.outputs; ++k) add(k, static_cast<double>(shares[k]));
  }
}

struct VotingTree {
  const Node* nodes;
  const float* table;
  Categories categories;
};

// Consecutive rows of a bucket.
struct RowRange {
  std::size_t first, last;
};

// Adds the votes of a tree for those of the rows that it did not see. The first one is row 0 of the sums.
inline void add_oob(const Bucket& bucket, const DrawnRows& drawn, const VotingTree& tree, RowRange rows,
                    const OobSums& oob) {
  for (std::size_t i = rows.first; i < rows.last; ++i)
    if (!drawn.has(i))
      add_vote(oob, i - rows.first, !bucket.classes.empty(), leaf_of(bucket, tree.nodes, i, tree.categories),
               tree.table);
}

}  // namespace oldgrowth
