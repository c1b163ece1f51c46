#include "predict/forest.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/crc32c.hpp"

namespace oldgrowth {
namespace {

bool rises(std::span<const std::uint64_t> starts, std::uint64_t end) {
  if (starts.empty() || starts.front() != 0 || starts.back() != end) return false;
  for (std::size_t i = 1; i < starts.size(); ++i)
    if (starts[i] < starts[i - 1]) return false;
  return true;
}

// A depth-first tree: each node is reached exactly once, right children lie behind the left subtree.
template <class LeafOk>
bool tree_ok(std::span<const Node> nodes, std::uint32_t n_features, const Categories& categories,
             const LeafOk& leaf_ok) {
  const NodeFormat format(n_features);
  std::vector<std::size_t> expected;  // right children still to come
  for (std::size_t at = 0; at < nodes.size(); ++at) {
    const Node node = nodes[at];
    if (!is_leaf(node)) {
      if (format.feature(node) >= n_features || format.right(node) < 2) return false;
      if (categories.has(format.feature(node)) && !set_ok(categories, format, node)) return false;
      const std::size_t right = at + format.right(node);
      if (right >= nodes.size() || (!expected.empty() && right >= expected.back())) return false;
      expected.push_back(right);
      continue;
    }
    if (!leaf_ok(payload(node))) return false;
    if (expected.empty()) return at + 1 == nodes.size();
    if (expected.back() != at + 1) return false;
    expected.pop_back();
  }
  return false;
}

std::string check_categories(const Forest& forest) {
  if (!forest.categorical()) return {};
  if (forest.levels.size() != forest.n_features) return "levels: number of features";
  if (std::ranges::any_of(forest.levels, [](std::uint32_t levels) { return levels > kMaxLevels; }))
    return "levels: number of levels";
  if (forest.top_set_start.size() != forest.n_tops() + 1 || !rises(forest.top_set_start, forest.top_sets.size()))
    return "top_set_start: first sets of the top trees";
  if (forest.set_start.size() != forest.node_start.size() || !rises(forest.set_start, forest.sets.size()))
    return "set_start: first sets of the bottom trees";
  return {};
}

}  // namespace

std::string check_frame(const Forest& forest) {
  const std::size_t tops = forest.n_tops();
  if (forest.n_features == 0 || forest.n_features > kMaxFeatures) return "meta: number of features";
  if (tops == 0 || forest.top_start.size() != tops + 1 || forest.bucket_start.size() != tops + 1 ||
      forest.bottom_start.size() != tops + 1)
    return "trees_of_top: number of top trees";
  if (!rises(forest.top_start, forest.top_nodes.size())) return "top_start: first nodes of the top trees";
  if (!rises(forest.bucket_start, forest.bucket_start.back())) return "bucket_start: first buckets of the top trees";
  if (forest.node_start.size() != forest.table_start.size() || forest.node_start.size() != forest.tree_crc.size() + 1)
    return "node_start: number of bottom trees";
  if (!rises(forest.bottom_start, forest.node_start.size() - 1))
    return "bottom_start: first bottom trees of the top trees";
  if (!rises(forest.node_start, forest.nodes.size())) return "node_start: first nodes of the bottom trees";
  if (forest.table.size() % forest.outputs() != 0 || !rises(forest.table_start, forest.table.size() / forest.outputs()))
    return "table_start: rows of the leaf table";
  if (const std::string wrong = check_categories(forest); !wrong.empty()) return wrong;
  for (std::size_t t = 0; t < tops; ++t) {
    const std::uint64_t buckets = forest.bucket_start[t + 1] - forest.bucket_start[t];
    const std::uint64_t trees = forest.trees_of_top[t], bottom = forest.bottom_start[t + 1] - forest.bottom_start[t];
    if (trees == 0 || bottom % trees != 0 || bottom / trees != buckets)
      return "trees_of_top: number of bottom trees of top tree " + std::to_string(t);
    const auto nodes = forest.top_nodes.subspan(forest.top_start[t], forest.top_start[t + 1] - forest.top_start[t]);
    std::vector<bool> reached(buckets);
    const auto a_leaf_each = [&](std::uint64_t bucket) {
      if (bucket >= buckets || reached[bucket]) return false;
      reached[bucket] = true;
      return true;
    };
    // A tree has one leaf more than inner nodes.
    if (nodes.size() != 2 * buckets - 1 || !tree_ok(nodes, forest.n_features, forest.top_categories(t), a_leaf_each))
      return "top_nodes: top tree " + std::to_string(t);
  }
  return {};
}

namespace {

std::span<const Node> nodes_of(const Forest& forest, std::size_t bottom) {
  return forest.nodes.subspan(forest.node_start[bottom], forest.node_start[bottom + 1] - forest.node_start[bottom]);
}

std::uint64_t table_rows(const Forest& forest, std::size_t bottom) {
  return forest.table_start[bottom + 1] - forest.table_start[bottom];
}

}  // namespace

bool has_checksum(const Forest& forest, std::size_t bottom) {
  const auto nodes = nodes_of(forest, bottom);
  const auto table = forest.table.subspan(forest.table_start[bottom] * forest.outputs(),
                                          table_rows(forest, bottom) * forest.outputs());
  const std::uint32_t crc = crc32c(nodes.data(), nodes.size_bytes());
  const auto sets = forest.categories(bottom).words;
  return crc32c(sets.data(), sets.size_bytes(), crc32c(table.data(), table.size_bytes(), crc)) ==
         forest.tree_crc[bottom];
}

bool check_tree(const Forest& forest, std::size_t bottom) {
  return has_checksum(forest, bottom) &&
         check_bottom_tree(nodes_of(forest, bottom), forest.n_features, forest.n_classes, table_rows(forest, bottom),
                           forest.categories(bottom));
}

bool check_bottom_tree(std::span<const Node> nodes, std::uint32_t n_features, std::uint32_t n_classes,
                       std::uint64_t table_rows, const Categories& categories) {
  return tree_ok(nodes, n_features, categories, [&](std::uint64_t payload) {
    if (n_classes == 0) return !std::isnan(leaf_value(payload));
    return payload & kMixedBit ? (payload & ~kMixedBit) < table_rows : payload < n_classes;
  });
}

std::vector<std::uint32_t> depths_of_buckets(std::span<const Node> nodes, std::uint32_t n_features,
                                             const Categories& categories) {
  constexpr std::uint32_t kNotReached = ~0U;
  const NodeFormat format(n_features);
  const std::size_t buckets = (nodes.size() + 1) / 2;
  std::vector<std::uint32_t> depths(buckets, kNotReached);
  const auto a_leaf_each = [&](std::uint64_t bucket) {
    if (bucket >= buckets || depths[bucket] != kNotReached) return false;
    depths[bucket] = 0;
    return true;
  };
  if (nodes.size() % 2 == 0 || !tree_ok(nodes, n_features, categories, a_leaf_each)) return {};
  std::vector<std::pair<std::size_t, std::uint32_t>> right;  // children still to come, with their depths
  std::uint32_t depth = 0;
  for (std::size_t at = 0; at < nodes.size(); ++at) {
    if (!right.empty() && right.back().first == at) {
      depth = right.back().second;
      right.pop_back();
    }
    if (is_leaf(nodes[at]))
      depths[payload(nodes[at])] = depth;
    else
      right.emplace_back(at + format.right(nodes[at]), ++depth);
  }
  return depths;
}

TreeChecks::Epoch TreeChecks::begin(const Forest& forest) const {
  const std::lock_guard lock(mutex_);
  if (stamps_.size() != forest.files.size())
    for (const MappedFile* file : forest.files) stamps_.push_back(file->stamp());
  settled_ = settled_ || std::ranges::all_of(stamps_, [](const FileStamp& stamp) { return stamp.settled(); });
  return settled_ ? epoch_ : kNone;
}

bool TreeChecks::lasts(const Forest& forest) const {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < stamps_.size(); ++i) {
    const FileStamp now = forest.files[i]->stamp();
    if (forest.files[i]->lost() || now.size < static_cast<std::int64_t>(forest.files[i]->size())) throw LostPages();
    if (now == stamps_[i]) continue;
    stamps_.clear();
    settled_ = false;
    ++epoch_;
    return false;
  }
  return true;
}

void while_unchanged(const Forest& forest, const std::function<void(TreeChecks::Epoch)>& work) {
  if (forest.checks == nullptr) return work(0);
  if (!forest.files.empty()) guard_mappings();
  constexpr int kMostTimes = 4;
  for (int time = 0; time < kMostTimes; ++time) {
    work(forest.checks->begin(forest));
    if (forest.checks->lasts(forest)) return;
  }
  throw ChangingFile();
}

}  // namespace oldgrowth
