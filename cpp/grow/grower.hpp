// One grower for all trees: top and bottom, classification and regression, best and random thresholds. It takes a block
// of rank codes and the targets of its rows, and returns nodes in depth-first order.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/node.hpp"
#include "grow/criteria/list.hpp"

namespace oldgrowth {

struct Bucket;

struct TreeRules {
  Criterion criterion = kCriterion<Gini>;
  bool random_thresholds = false;
  bool top_tree = false;   // leaves are buckets, a pure node is split like any other, features are dealt out
  std::uint64_t turn = 0;  // of a top tree: which cards it takes from the features dealt out to all of them
  std::uint32_t n_classes = 0;
  std::uint32_t max_features = 1;
  std::size_t max_depth = std::numeric_limits<std::size_t>::max();
  std::size_t min_samples_split = 2;
  std::size_t min_samples_leaf = 1;
  double min_weight_leaf = 0;
  double min_impurity_decrease = 0;
  double total_weight = 1;                  // of all training rows
  double balance = 0;                       // lambda
  double impurity_scale = 1;                // of a gain against balance; a regression's is its variance
  double target_scale = 1;                  // a power of two: a regression's targets come divided by it, within [-1, 1]
  std::vector<std::uint32_t> levels;        // per feature: its levels, 0 if not categorical; empty if none is
  const std::atomic<bool>* stop = nullptr;  // set by another thread: growing ends with an error
};

struct GrownTree {
  std::vector<Node> nodes;
  std::vector<float> table;         // n_classes shares for each mixed leaf
  std::vector<std::uint16_t> sets;  // of levels: see level_set.hpp
  std::vector<double> importances;
  std::vector<std::uint32_t> leaf_depths;  // of a top tree's buckets
  std::size_t depth = 0;
};

struct RowKind;

// Bytes for growing a tree in addition to its bucket of this many rows, the tree included, with at most `mixed_leaves`
// mixed leaves.
std::size_t growing_bytes(std::size_t rows, const RowKind& kind, const TreeRules& rules, bool whole_weights,
                          std::size_t mixed_leaves);

// Appends the leaf of a bottom tree for a node with these sums.
template <class Stats>
void append_leaf(GrownTree& tree, const Stats& stats, double target_scale) {
  if constexpr (Stats::kClassification) {
    if (stats.pure()) {
      tree.nodes.push_back(leaf(stats.only_class()));
      return;
    }
    tree.nodes.push_back(leaf(kMixedBit | (tree.table.size() / stats.n_classes())));
    for (std::size_t k = 0; k < stats.n_classes(); ++k) tree.table.push_back(static_cast<float>(stats.share(k)));
  } else {
    tree.nodes.push_back(value_leaf(stats.mean() * target_scale));
  }
}

// `row_weights` has a weight for each row of the bucket; rows of weight zero are left out. Whole weights
// up to Poisson::kMax allow the fast counting mode: `whole_weights` says they are.
GrownTree grow_tree(const Bucket& bucket, const std::vector<double>& row_weights, bool whole_weights,
                    const TreeRules& rules, std::uint64_t key, std::size_t start_depth);

}  // namespace oldgrowth
