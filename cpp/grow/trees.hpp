// Top and bottom trees of a forest: the weights of their rows, the keys of their randomness, and the grower.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "grow/bootstrap.hpp"
#include "grow/grower.hpp"

namespace oldgrowth {

// The place of a top tree. All top trees that are grown at the same place share its key, and each has its turn; see
// TreeRules::turn.
struct TopTreePlace {
  std::uint64_t seed, turn, place;
  std::size_t depth;  // of its root
};

// `class_weights` is empty or has a weight for each class.
GrownTree grow_top_tree(const Bucket& bucket, TreeRules rules, const TopTreePlace& place,
                        const std::vector<double>& class_weights);

struct BottomTreePlace {
  std::uint64_t tree, bucket;
  std::size_t depth;
};

struct BottomTree {
  GrownTree tree;
  std::vector<std::uint8_t> drawn;  // see DrawnRows; empty unless requested
};

BottomTree grow_bottom_tree(const Bucket& bucket, const TreeRules& rules, const Bootstrap& bootstrap,
                            const BottomTreePlace& place, const std::vector<double>& class_weights, bool tell_drawn);

}  // namespace oldgrowth
