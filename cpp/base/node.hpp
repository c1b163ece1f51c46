// The 8-byte node, the only representation of trees: top trees and bottom trees, in memory and on disk.
//
//   inner node   bit 63 = 0 | right offset | missing goes left (1 bit) | feature | threshold (float32)
//   leaf         bit 63 = 1 | 63 bits of payload
//
// The left child follows its parent; the right child is `right offset` nodes away. The number of feature
// bits depends on the number of features; the offset gets the rest of the 31 bits. The payload of a leaf is
// a bucket (top tree), a class or a row of the distribution table (classification), or a double without its
// lowest bit (regression). In a forest with categorical features, a set of levels takes the place of the
// threshold where a node splits one of them: see level_set.hpp.
#pragma once

#include <bit>
#include <cstdint>

namespace oldgrowth {

using Node = std::uint64_t;

inline constexpr Node kLeafBit = 1ULL << 63;
inline constexpr Node kMixedBit = 1ULL << 62;  // in the payload of a class leaf: the other bits are a table row

struct NodeFormat {
  std::uint32_t feature_bits;

  explicit constexpr NodeFormat(std::uint32_t n_features)
      : feature_bits(n_features <= 1 ? 1 : static_cast<std::uint32_t>(std::bit_width(n_features - 1))) {}

  constexpr std::uint32_t offset_bits() const { return 30 - feature_bits; }
  constexpr std::uint64_t max_offset() const { return (1ULL << offset_bits()) - 1; }
  constexpr std::uint32_t missing_shift() const { return 32 + feature_bits; }
  constexpr std::uint32_t right_shift() const { return 33 + feature_bits; }

  constexpr Node inner(float threshold, std::uint32_t feature, bool missing_left) const {
    return by_bits(std::bit_cast<std::uint32_t>(threshold), feature, missing_left);
  }
  // `low` has the bits of a threshold, or stands for a set of levels: see level_set.hpp.
  constexpr Node by_bits(std::uint32_t low, std::uint32_t feature, bool missing_left) const {
    return static_cast<Node>(low) | (static_cast<Node>(feature) << 32) |
           (static_cast<Node>(missing_left) << missing_shift());
  }
  constexpr Node with_right(Node node, std::uint64_t offset) const { return node | (offset << right_shift()); }

  constexpr std::uint32_t feature(Node node) const {
    return static_cast<std::uint32_t>(node >> 32) & ((1U << feature_bits) - 1);
  }
  constexpr bool missing_left(Node node) const { return (node >> missing_shift()) & 1; }
  constexpr std::uint64_t right(Node node) const { return node >> right_shift(); }
};

// More features than this leave too few bits for the offset of a right child.
inline constexpr std::uint32_t kMaxFeatures = 1U << 16;

// Reads a node that another program may change exactly once.
inline Node read_node(const Node* node) { return __atomic_load_n(node, __ATOMIC_RELAXED); }

constexpr bool is_leaf(Node node) { return (node & kLeafBit) != 0; }
constexpr float threshold(Node node) { return std::bit_cast<float>(static_cast<std::uint32_t>(node)); }
constexpr Node leaf(std::uint64_t payload) { return kLeafBit | payload; }
constexpr std::uint64_t payload(Node node) { return node & ~kLeafBit; }

constexpr Node value_leaf(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  return leaf((bits >> 1) + (bits & (bits >> 1) & 1));  // rounded to even
}
constexpr double leaf_value(Node node) { return std::bit_cast<double>(node << 1); }

}  // namespace oldgrowth
