// The finished forest as flat arrays that somebody else owns (numpy, later a mapped file), checked before
// the first use so that nothing read from them can lead outside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "node.hpp"

namespace oldgrowth {

struct Forest {
  std::uint32_t n_features = 0;
  std::uint32_t n_classes = 0;  // 0: regression
  std::span<const Node> top_nodes;
  std::span<const std::uint64_t> top_start;     // per top tree, and one past: its first node
  std::span<const std::uint64_t> bucket_start;  // per top tree, and one past: its first bucket
  std::span<const std::uint64_t> trees_of_top;  // per top tree: bottom trees in each of its buckets
  std::span<const std::uint64_t> bottom_start;  // per top tree, and one past: its first bottom tree
  std::span<const Node> nodes;
  std::span<const std::uint64_t> node_start;   // per bottom tree, and one past: its first node
  std::span<const std::uint64_t> table_start;  // per bottom tree, and one past: its first table row
  std::span<const float> table;                // shares of each class in a mixed leaf

  std::size_t n_tops() const { return trees_of_top.size(); }
  std::size_t outputs() const { return n_classes == 0 ? 1 : n_classes; }
};

// Empty if every index of the forest is valid, else what is wrong.
std::string check(const Forest& forest);

}  // namespace oldgrowth
