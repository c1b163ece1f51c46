// A tree unpacked for many rows: its nodes need fewer instructions per step, and rows are stored by column.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/node.hpp"
#include "predict/columns.hpp"

namespace oldgrowth {

// An inner node goes left one node, right `right` nodes. A leaf goes right, as no value is below NaN, and that is where
// it is. Its NaN has the payload of the leaf in it, if that is small: most are the number of a class.
struct OpenNode {
  float threshold;
  std::uint16_t column;  // where its values are; with kMissingLeft, if opened for values that may be missing
  std::uint16_t right;

  static constexpr std::uint16_t kMissingLeft = 1U << 15;
  static constexpr std::uint32_t kElsewhere = 1U << 21;  // of a leaf's threshold: the payload is not small

  // The leaf that was opened; `closed` is read if its payload does not fit here.
  Node leaf(const Node* closed) const {
    const auto bits = std::bit_cast<std::uint32_t>(threshold);
    return (bits & kElsewhere) != 0 ? read_node(closed) : oldgrowth::leaf(bits & (kElsewhere - 1));
  }
};

// Limits of OpenNode.
inline constexpr std::size_t kMostOpenNodes = 1U << 16;
inline constexpr std::size_t kMostOpenFeatures = (OpenNode::kMissingLeft - 1) / kColumn + 1;

struct OpenFormat {
  NodeFormat nodes;
  std::size_t n_features;
  bool may_miss;  // there are NaN among the values
};

// Opens a tree with at most this many nodes and features. The output needs room for one more node, which ends walks.
// Whatever the nodes contain, a walk through the open tree stays inside it and inside the columns of the features.
void open_tree(const OpenFormat& format, std::span<const Node> nodes, OpenNode* open);

// A block of rows in columns, with one more column for the node that each row has reached.
struct OpenRows {
  float* columns;  // (width + 1) * kColumn
  std::size_t width;
  std::size_t n;
  bool may_miss;  // there are NaN among the values
};

// The index of the leaf that each row reaches. The output needs room for kBlock rows.
void find_open_leaves(const OpenNode* open, const OpenRows& rows, std::uint32_t* leaves);

}  // namespace oldgrowth
