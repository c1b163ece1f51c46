// The finished forest as flat arrays that somebody else owns (numpy, or a mapped file), checked before
// the first use so that nothing read from them can lead outside.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "node.hpp"

namespace oldgrowth {

class TreeChecks;

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
  std::span<const std::uint32_t> tree_crc;     // per bottom tree: CRC-32C of its nodes and table rows
  const TreeChecks* checks = nullptr;          // of bottom trees that were not checked yet

  std::size_t n_tops() const { return trees_of_top.size(); }
  std::size_t outputs() const { return n_classes == 0 ? 1 : n_classes; }
};

// Empty if everything but the bottom trees is valid, else which array is not, a colon, and what is wrong: all that is
// looked at to find a bottom tree.
std::string check_frame(const Forest& forest);

// Whether a bottom tree has its checksum and each of its nodes is reached exactly once.
bool check_tree(const Forest& forest, std::size_t bottom);

// Single trees that another process wrote to disk. The depth of each bucket of a top tree, or nothing if it is no tree
// whose leaves are buckets, each exactly once.
std::vector<std::uint32_t> depths_of_buckets(std::span<const Node> nodes, std::uint32_t n_features);

// Whether each node of a bottom tree is reached exactly once, and no leaf names a class or table row that there is not.
bool check_bottom_tree(std::span<const Node> nodes, std::uint32_t n_features, std::uint32_t n_classes,
                       std::uint64_t table_rows);

struct DamagedTree : std::runtime_error {
  explicit DamagedTree(std::size_t bottom) : runtime_error("bottom tree " + std::to_string(bottom) + " is damaged") {}
};

// Which bottom trees were checked: each is when it is first used, by whichever thread.
class TreeChecks {
 public:
  explicit TreeChecks(std::size_t n_bottom) : done_(n_bottom) {}

  // Throws DamagedTree unless the tree is valid.
  void ensure(const Forest& forest, std::size_t bottom) const {
    if (done_[bottom].load(std::memory_order_relaxed) != 0) return;
    if (!check_tree(forest, bottom)) throw DamagedTree(bottom);
    done_[bottom].store(1, std::memory_order_relaxed);
  }

 private:
  mutable std::vector<std::atomic<std::uint8_t>> done_;
};

}  // namespace oldgrowth
