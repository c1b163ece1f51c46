// The finished forest as flat arrays owned by others (NumPy, or a mapped file). They are checked before the
// first use, so that no index in them can lead outside.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/level_set.hpp"
#include "base/node.hpp"
#include "predict/mapped_file.hpp"

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
  std::span<const std::uint32_t> tree_crc;     // per bottom tree: CRC-32C of its nodes, table rows and sets
  const TreeChecks* checks = nullptr;          // of bottom trees, each checked when it is used
  // The files that nodes and table are mapped from, if any: their contents may change at any time, to anything. All
  // other arrays are in private memory.
  std::span<const MappedFile* const> files{};
  // All empty unless there are categorical features.
  std::span<const std::uint32_t> levels{};         // per feature: how many, 0 if it is not categorical
  std::span<const std::uint16_t> top_sets{};       // sets of levels: see level_set.hpp
  std::span<const std::uint64_t> top_set_start{};  // per top tree, and one past: its first word
  std::span<const std::uint16_t> sets{};           // of bottom trees; may be mapped
  std::span<const std::uint64_t> set_start{};      // per bottom tree, and one past: its first word

  std::size_t n_tops() const { return trees_of_top.size(); }
  bool categorical() const { return !levels.empty(); }
  Categories top_categories(std::size_t top) const {
    if (!categorical()) return {};
    return {levels, top_sets.subspan(top_set_start[top], top_set_start[top + 1] - top_set_start[top])};
  }
  Categories categories(std::size_t bottom) const {
    if (!categorical()) return {};
    return {levels, sets.subspan(set_start[bottom], set_start[bottom + 1] - set_start[bottom])};
  }
  std::size_t outputs() const { return n_classes == 0 ? 1 : n_classes; }
};

// Checks everything except the bottom trees. Returns an empty string if it is valid, otherwise the name of an array, a
// colon, and what is wrong.
std::string check_frame(const Forest& forest);

// Whether the checksum of a bottom tree is right.
bool has_checksum(const Forest& forest, std::size_t bottom);

// Whether the checksum of a bottom tree is right and each of its nodes is reached exactly once.
bool check_tree(const Forest& forest, std::size_t bottom);

// The depth of each bucket of a top tree that another process wrote; empty if it is not a tree whose leaves are the
// buckets, each exactly once.
std::vector<std::uint32_t> depths_of_buckets(std::span<const Node> nodes, std::uint32_t n_features,
                                             const Categories& categories = {});

// Whether each node of a bottom tree is reached exactly once, each leaf names an existing class or table row, and each
// set existing levels.
bool check_bottom_tree(std::span<const Node> nodes, std::uint32_t n_features, std::uint32_t n_classes,
                       std::uint64_t table_rows, const Categories& categories = {});

struct DamagedTree : std::runtime_error {
  explicit DamagedTree(std::size_t bottom) : runtime_error("bottom tree " + std::to_string(bottom) + " is damaged") {}
};

struct ChangingFile : std::runtime_error {
  ChangingFile() : runtime_error("the file keeps changing") {}
};

// Records which bottom trees were checked: each is checked when it is first used, by any thread, and again if its bytes
// may have changed since. Results are valid for an epoch, which ends when a file changes.
class TreeChecks {
 public:
  using Epoch = std::uint32_t;

  explicit TreeChecks(std::size_t n_bottom) : checked_(n_bottom) {}

  // The current epoch, or kNone: results are not valid later.
  Epoch begin(const Forest& forest) const;
  // Whether the epoch is still current; otherwise the next call of `begin` starts another.
  bool lasts(const Forest& forest) const;

  // Throws DamagedTree unless the tree is valid.
  void ensure(const Forest& forest, std::size_t bottom, Epoch epoch) const {
    const Epoch checked = checked_[bottom].load(std::memory_order_relaxed);
    if (checked == epoch && epoch != kNone) return;
    // The same checksum as before, the same tree: it need not be walked through again.
    if (checked == kNone ? !check_tree(forest, bottom) : !has_checksum(forest, bottom)) throw DamagedTree(bottom);
    checked_[bottom].store(epoch == kNone ? kReadAgain : epoch, std::memory_order_relaxed);
  }

  // Trees that were checked are read from their file again.
  void forget(std::size_t first, std::size_t n) const {
    for (std::size_t b = first; b < first + n; ++b)
      if (checked_[b].load(std::memory_order_relaxed) != kNone)
        checked_[b].store(kReadAgain, std::memory_order_relaxed);
  }

 private:
  static constexpr Epoch kNone = 0, kReadAgain = 1;
  mutable std::vector<std::atomic<Epoch>> checked_;
  mutable std::mutex mutex_;
  mutable std::vector<FileStamp> stamps_;
  mutable bool settled_ = false;  // a change after the stamps were taken would show in them
  mutable Epoch epoch_ = 2;
};

// Calls work(epoch), which reads bottom trees, and calls it again if a file of the forest changed meanwhile. Throws
// DamagedTree, LostPages or ChangingFile if the files no longer hold the forest.
void while_unchanged(const Forest& forest, const std::function<void(TreeChecks::Epoch)>& work);

}  // namespace oldgrowth
