#include "predict.hpp"

#include <algorithm>
#include <vector>

#include "route.hpp"

namespace oldgrowth {
namespace {

// Rows taken at a time: enough of them share a bucket, and their sums stay in the cache.
constexpr std::size_t kBatch = 16384;

// Calls visit(bottom tree, its nodes, rows, count, leaves) for all trees of the forest and n rows.
template <class Visit>
void visit_leaves(const Forest& forest, const float* x, std::size_t n, bool may_miss, const Visit& visit) {
  const NodeFormat format(forest.n_features);
  const auto find = may_miss ? find_leaves<true> : find_leaves<false>;
  std::vector<std::uint32_t> buckets(n), rows(n), leaves(n);
  std::vector<std::size_t> start;
  for (std::size_t t = 0; t < forest.n_tops(); ++t) {
    const std::size_t n_buckets = forest.bucket_start[t + 1] - forest.bucket_start[t];
    const Node* top = forest.top_nodes.data() + forest.top_start[t];
    find(format, top, x, forest.n_features, nullptr, n, buckets.data());
    for (std::size_t i = 0; i < n; ++i) buckets[i] = static_cast<std::uint32_t>(payload(top[buckets[i]]));
    start.assign(n_buckets + 1, 0);
    for (std::size_t i = 0; i < n; ++i) ++start[buckets[i] + 1];
    for (std::size_t b = 0; b < n_buckets; ++b) start[b + 1] += start[b];
    for (std::size_t i = 0; i < n; ++i) rows[start[buckets[i]]++] = static_cast<std::uint32_t>(i);
    for (std::size_t b = 0, first = 0; b < n_buckets; first = start[b++]) {
      const std::size_t count = start[b] - first;
      if (count == 0) continue;
      for (std::size_t j = 0; j < forest.trees_of_top[t]; ++j) {
        const std::size_t bottom = forest.bottom_start[t] + b * forest.trees_of_top[t] + j;
        const Node* nodes = forest.nodes.data() + forest.node_start[bottom];
        find(format, nodes, x, forest.n_features, rows.data() + first, count, leaves.data());
        visit(t, j, bottom, nodes, rows.data() + first, count, leaves.data());
      }
    }
  }
}

}  // namespace

void predict_sums(const Forest& forest, const float* x, std::size_t n, bool may_miss, bool hard, double* sums) {
  const std::size_t k = forest.outputs();
  for (std::size_t start = 0; start < n; start += kBatch) {
    const std::size_t count = std::min(kBatch, n - start);
    double* out = sums + start * k;
    std::fill_n(out, count * k, 0.0);
    const auto add = [&](std::size_t, std::size_t, std::size_t bottom, const Node* nodes, const std::uint32_t* rows,
                         std::size_t m, const std::uint32_t* leaves) {
      const float* table = forest.table.data() + forest.table_start[bottom] * k;
      for (std::size_t i = 0; i < m; ++i) {
        const Node node = nodes[leaves[i]];
        double* sum = out + rows[i] * k;
        if (forest.n_classes == 0) {
          *sum += leaf_value(node);
        } else if ((node & kMixedBit) == 0) {
          sum[payload(node)] += 1;
        } else {
          const float* shares = table + (payload(node) & ~kMixedBit) * k;
          if (hard)
            sum[std::max_element(shares, shares + k) - shares] += 1;
          else
            for (std::size_t c = 0; c < k; ++c) sum[c] += static_cast<double>(shares[c]);
        }
      }
    };
    visit_leaves(forest, x + start * forest.n_features, count, may_miss, add);
  }
}

void apply(const Forest& forest, const float* x, std::size_t n, bool may_miss, std::int64_t* leaves) {
  // Leaves are numbered through the buckets of a tree, in their order.
  std::vector<std::int64_t> before(forest.node_start.size());
  std::vector<std::size_t> first_tree(forest.n_tops() + 1);
  for (std::size_t t = 0; t < forest.n_tops(); ++t) {
    const std::size_t trees = forest.trees_of_top[t];
    first_tree[t + 1] = first_tree[t] + trees;
    for (std::size_t b = forest.bottom_start[t] + trees; b < forest.bottom_start[t + 1]; ++b)
      before[b] = before[b - trees] +
                  static_cast<std::int64_t>(forest.node_start[b - trees + 1] - forest.node_start[b - trees]);
  }
  const std::size_t n_trees = first_tree.back();
  for (std::size_t start = 0; start < n; start += kBatch) {
    std::int64_t* out = leaves + start * n_trees;
    const auto put = [&](std::size_t t, std::size_t j, std::size_t bottom, const Node*, const std::uint32_t* rows,
                         std::size_t m, const std::uint32_t* found) {
      for (std::size_t i = 0; i < m; ++i)
        out[rows[i] * n_trees + first_tree[t] + j] = before[bottom] + static_cast<std::int64_t>(found[i]);
    };
    visit_leaves(forest, x + start * forest.n_features, std::min(kBatch, n - start), may_miss, put);
  }
}

}  // namespace oldgrowth
