// Which leaf a row reaches: buckets of a top tree, leaves of a bottom tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/level_set.hpp"
#include "base/node.hpp"

namespace oldgrowth {

// Rows that go through trees together: the i-th is rows[i] * stride floats from x (i * stride without `rows`).
struct RowList {
  const float* x;
  std::size_t stride;
  const std::uint32_t* rows;
  std::size_t n;
  bool may_miss;  // there are NaN among the values
};

// The leaf of each row: its index in `nodes`. With `last`, the last of the nodes, these may change at any time:
// whatever they contain, walks stay inside them and end, possibly not at a leaf.
void find_leaves(const NodeFormat& format, const Node* nodes, const RowList& list, std::uint32_t* leaves,
                 const Node* last = nullptr);

// The same for a tree with categorical features.
void find_leaves_by_sets(const NodeFormat& format, std::span<const Node> nodes, const Categories& categories,
                         const RowList& list, std::uint32_t* leaves);

// The bucket of each row in a top tree.
void route(const NodeFormat& format, std::span<const Node> nodes, const Categories& categories, const RowList& list,
           std::uint32_t* buckets);

}  // namespace oldgrowth
