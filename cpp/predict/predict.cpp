#include "predict/predict.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "predict/class_sums.hpp"
#include "predict/open_sets.hpp"
#include "predict/open_tree.hpp"
#include "predict/route.hpp"

namespace oldgrowth {
namespace {

// Rows taken at a time: enough of them share a bucket that its trees are worth loading, but half as many bytes
// as the trees have at most, so that they do not drive each other out of the cache.
constexpr std::size_t kFewestRows = 16384, kMostRows = 65536;
// Opening a tree with categories costs so much more that it is done for twice as many rows.
constexpr std::size_t kMostRowsByCategories = 2 * kMostRows;
// Trees that a block of rows goes through while its columns are in the cache, before its leaves are counted.
constexpr std::size_t kTrees = 8;
// Maximum number of nodes per row for which opening a tree is worthwhile: it reads all nodes, but in order.
constexpr std::size_t kWorthOpening = 64;
// How far ahead the votes of a bucket's rows are prefetched; they are scattered in memory.
constexpr std::size_t kAhead = 8;
// Bytes that the system may map around a page.
constexpr std::size_t kAround = 2 << 20;

// A tree that rows walk through, opened if there are enough rows.
struct Tree {
  const Node* nodes = nullptr;
  const Node* last = nullptr;  // where walks must end, if the nodes may change meanwhile
  std::span<const Node> all;
  Categories categories;
  OpenSets sets;  // if it is open
  bool is_open = false;
  std::vector<OpenNode> open;

  Node leaf(std::uint32_t index) const { return is_open ? open[index].leaf(nodes + index) : read_node(nodes + index); }
};

// The leaves that the rows of a block reach in some trees of their bucket, trees and rows from 0.
struct BlockLeaves {
  std::size_t top, bottom;        // the top tree, the first of the bottom trees
  std::size_t first_tree, trees;  // of those of the bucket
  const std::uint32_t* rows;      // numbers in the batch
  std::size_t n;
  const Tree* tree;
  const std::uint32_t* indices;

  std::uint32_t index(std::size_t i, std::size_t j) const { return indices[j * kBlock + i]; }
  Node leaf(std::size_t i, std::size_t j) const { return tree[j].leaf(index(i, j)); }
};

// Evicts some items of an array, if it is mapped from a file of the forest, together with what lies shortly before:
// the system maps more than requested, and so reads the end of the previously evicted part again.
template <class T>
void evict(const Forest& forest, std::span<const T> all, std::size_t first, std::size_t n) {
  if (n == 0) return;
  const std::size_t before = std::min(first, kAround / sizeof(T));
  const auto part = all.subspan(first - before, before + n);
  for (const MappedFile* file : forest.files) file->evict(part.data(), part.size_bytes());
}

// Walks a batch of rows through the forest, bucket by bucket, and passes all leaves to visit(BlockLeaves).
template <class Visit>
class Batch {
 public:
  Batch(const Forest& forest, TreeChecks::Epoch epoch, const RowsIn& rows, std::size_t first, std::size_t n,
        Visit& visit)
      : forest_(forest),
        epoch_(epoch),
        format_(forest.n_features),
        all_{rows.x + first * forest.n_features, forest.n_features, nullptr, n, rows.may_miss},
        evict_(rows.evict),
        visit_(visit),
        tops_at_once_(rows.evict ? 1 : std::min(kTrees, forest.n_tops())),
        buckets_(n * tops_at_once_),
        rows_(n),
        leaves_(kBlock * kTrees) {}

  void run() {
    for (std::size_t top = 0; top < forest_.n_tops(); ++top) {
      if (top % tops_at_once_ == 0) route_rows(top, std::min(tops_at_once_, forest_.n_tops() - top));
      group_by_bucket(top, buckets_.data() + top % tops_at_once_ * all_.n);
      for (std::size_t b = 0, first = 0; b + 1 < end_.size(); first = end_[b++]) {
        if (first == end_[b]) continue;
        for (std::size_t tree = 0; tree < forest_.trees_of_top[top]; tree += kTrees) {
          run_trees(top, b, tree, first);
          check_files();
          if (evict_) evict_trees(top, b, tree);
        }
      }
    }
  }

 private:
  // Fills buckets_ with the buckets of all rows in some top trees, one tree after the other.
  void route_rows(std::size_t first_top, std::size_t tops) {
    for (std::size_t t = 0; t < tops; ++t) {
      const std::size_t begin = forest_.top_start[first_top + t];
      trees_[t].categories = forest_.top_categories(first_top + t);
      prepare(trees_[t], forest_.top_nodes.subspan(begin, forest_.top_start[first_top + t + 1] - begin), all_.n, false);
    }
    for (std::size_t at = 0; at < all_.n; at += kBlock) {
      const std::size_t n = std::min(kBlock, all_.n - at);
      find_leaves(tops, {all_.x + at * all_.stride, all_.stride, nullptr, n, all_.may_miss});
      for (std::size_t t = 0; t < tops; ++t)
        for (std::size_t i = 0; i < n; ++i)
          buckets_[t * all_.n + at + i] = static_cast<std::uint32_t>(payload(trees_[t].leaf(leaves_[t * kBlock + i])));
    }
  }

  // Fills rows_ with all rows in the order of their buckets, and end_ with where each bucket's end.
  void group_by_bucket(std::size_t top, const std::uint32_t* buckets) {
    const std::size_t n_buckets = forest_.bucket_start[top + 1] - forest_.bucket_start[top];
    end_.assign(n_buckets + 1, 0);
    for (std::size_t i = 0; i < all_.n; ++i) ++end_[buckets[i] + 1];
    for (std::size_t b = 0; b < n_buckets; ++b) end_[b + 1] += end_[b];
    for (std::size_t i = 0; i < all_.n; ++i) rows_[end_[buckets[i]]++] = static_cast<std::uint32_t>(i);
  }

  // Walks through lost pages are safe, but their results are invalid.
  void check_files() const {
    for (const MappedFile* file : forest_.files)
      if (file->lost()) throw LostPages();
  }

  // All nodes and table rows of some trees of a bucket. Other bytes may come from the file the next time.
  void evict_trees(std::size_t top, std::size_t bucket, std::size_t first_tree) const {
    const std::size_t of_top = forest_.trees_of_top[top], trees = std::min(kTrees, of_top - first_tree);
    const std::size_t bottom = forest_.bottom_start[top] + bucket * of_top + first_tree;
    const std::size_t node = forest_.node_start[bottom], row = forest_.table_start[bottom];
    evict(forest_, forest_.nodes, node, forest_.node_start[bottom + trees] - node);
    const std::size_t rows = forest_.table_start[bottom + trees] - row;
    evict(forest_, forest_.table, row * forest_.outputs(), rows * forest_.outputs());
    if (forest_.categorical())
      evict(forest_, forest_.sets, forest_.set_start[bottom],
            forest_.set_start[bottom + trees] - forest_.set_start[bottom]);
    if (forest_.checks) forest_.checks->forget(bottom, trees);
  }

  // Walks the rows of a bucket, from rows_[first] on, through some of its trees.
  void run_trees(std::size_t top, std::size_t bucket, std::size_t first_tree, std::size_t first) {
    const std::size_t of_top = forest_.trees_of_top[top], trees = std::min(kTrees, of_top - first_tree);
    const std::size_t bottom = forest_.bottom_start[top] + bucket * of_top + first_tree, end = end_[bucket];
    for (std::size_t j = 0; j < trees; ++j) {
      if (forest_.checks) forest_.checks->ensure(forest_, bottom + j, epoch_);
      const std::size_t begin = forest_.node_start[bottom + j];
      trees_[j].categories = forest_.categories(bottom + j);
      prepare(trees_[j], forest_.nodes.subspan(begin, forest_.node_start[bottom + j + 1] - begin), end - first,
              !forest_.files.empty());
    }
    for (std::size_t at = first; at < end; at += kBlock) {
      const std::size_t n = std::min(kBlock, end - at);
      find_leaves(trees, {all_.x, all_.stride, rows_.data() + at, n, all_.may_miss});
      visit_(BlockLeaves{top, bottom, first_tree, trees, rows_.data() + at, n, trees_, leaves_.data()});
    }
  }

  // Opens a tree if that is worthwhile for this many rows. Its nodes may change at any time if it is `mapped`.
  void prepare(Tree& tree, std::span<const Node> nodes, std::size_t rows, bool mapped) const {
    const std::size_t size = nodes.size();
    tree.nodes = nodes.data();
    tree.all = nodes;
    tree.last = mapped ? nodes.data() + size - 1 : nullptr;
    tree.is_open = all_.stride <= kMostOpenFeatures && size <= kMostOpenNodes && size < kWorthOpening * rows;
    const bool by_sets = tree.categories.any();
    if (by_sets && all_.stride > kMostOpenSetFeatures) tree.is_open = false;
    if (!tree.is_open) return;
    if (tree.open.size() <= size) tree.open.resize(size + 1);
    open_tree({format_, all_.stride, all_.may_miss || by_sets}, nodes, tree.open.data());
    if (by_sets) tree.is_open = open_sets(tree.categories, all_.may_miss, {tree.open.data(), size + 1}, tree.sets);
  }

  // Fills leaves_ with those of a block of rows in the first of trees_.
  void find_leaves(std::size_t trees, const RowList& list) {
    bool has_columns = false;
    for (std::size_t j = 0; j < trees; ++j) {
      std::uint32_t* leaves = leaves_.data() + j * kBlock;
      if (!trees_[j].is_open) {
        if (forest_.categorical())
          find_leaves_by_sets(format_, trees_[j].all, trees_[j].categories, list, leaves);
        else
          oldgrowth::find_leaves(format_, trees_[j].nodes, list, leaves, trees_[j].last);
        continue;
      }
      if (!has_columns) {
        columns_.resize((list.stride + 1) * kColumn + (forest_.categorical() ? kPlaces : 0));
        to_columns(list.x, list.rows, list.n, list.stride, columns_.data());
        if (forest_.categorical()) {
          levels_.resize(list.stride * kColumn);
          find_levels(forest_.levels, list.n, columns_.data(), levels_.data());
        }
        has_columns = true;
      }
      const OpenRows rows{columns_.data(), list.stride, list.n, list.may_miss};
      if (!forest_.categorical()) {
        find_open_leaves(trees_[j].open.data(), rows, leaves);
        continue;
      }
      place_levels(forest_.levels, trees_[j].sets, list.n, levels_.data(), columns_.data());
      find_open_leaves_by_sets(trees_[j].open.data(), trees_[j].sets, rows, levels_.data(), leaves);
    }
  }

  const Forest& forest_;
  TreeChecks::Epoch epoch_;
  NodeFormat format_;
  RowList all_;
  bool evict_;
  Visit& visit_;
  std::size_t tops_at_once_;
  std::vector<std::uint32_t> buckets_, rows_;
  std::vector<std::size_t> end_;
  std::vector<float> columns_;
  std::vector<std::uint32_t> levels_;  // of categorical features, in columns
  Tree trees_[kTrees];
  std::vector<std::uint32_t> leaves_;
};

// Processes batches: for each, start(first row, rows) returns the visitor of its BlockLeaves.
template <class Start>
void visit_leaves(const Forest& forest, TreeChecks::Epoch epoch, const RowsIn& rows, const Start& start) {
  const std::size_t worth = forest.nodes.size_bytes() / (2 * sizeof(float) * forest.n_features);
  const std::size_t most = forest.categorical() ? kMostRowsByCategories : kMostRows;
  // Rows of a batch are numbered in 32 bits.
  const std::size_t at_once = rows.evict ? std::clamp<std::size_t>(rows.n, 1, std::numeric_limits<std::uint32_t>::max())
                                         : std::clamp(worth, kFewestRows, most);
  for (std::size_t first = 0; first < rows.n; first += at_once) {
    const std::size_t n = std::min(at_once, rows.n - first);
    auto visit = start(first, n);
    Batch<decltype(visit)>(forest, epoch, rows, first, n, visit).run();
  }
}

// Adds up the class leaves of a batch.
class AddClasses {
 public:
  AddClasses(const Forest& forest, bool hard, std::size_t n, double* sums)
      : forest_(forest), sums_(forest, hard, n, sums) {}
  ~AddClasses() { sums_.finish(); }

  void operator()(const BlockLeaves& block) {
    const std::size_t trees = forest_.trees_of_top[block.top];
    if (block.top != top_ && counted_ + trees > ClassSums::kMost) {
      sums_.finish();
      counted_ = 0;
    }
    if (block.top != top_) counted_ += trees;
    top_ = block.top;
    for (std::size_t i = 0; i < block.n; ++i) {
      if (i + kAhead < block.n) sums_.fetch(block.rows[i + kAhead]);
      sums_.add(block.rows[i], block.bottom, block.trees, [&](std::size_t j) { return block.leaf(i, j); });
      if (trees > ClassSums::kMost) sums_.finish(block.rows[i]);
    }
  }

 private:
  const Forest& forest_;
  ClassSums sums_;
  std::size_t top_ = ~std::size_t{0}, counted_ = 0;  // trees whose votes are not finished, at most
};

void add_leaves(const Forest& forest, TreeChecks::Epoch epoch, const RowsIn& rows, bool hard, double* sums) {
  std::fill_n(sums, rows.n * forest.outputs(), 0.0);
  if (forest.n_classes > 0) {
    visit_leaves(forest, epoch, rows, [&](std::size_t first, std::size_t n) {
      return AddClasses(forest, hard, n, sums + first * forest.n_classes);
    });
    return;
  }
  visit_leaves(forest, epoch, rows, [&](std::size_t first, std::size_t) {
    return [=](const BlockLeaves& block) {
      for (std::size_t i = 0; i < block.n; ++i)
        for (std::size_t j = 0; j < block.trees; ++j) sums[first + block.rows[i]] += leaf_value(block.leaf(i, j));
    };
  });
}

}  // namespace

void predict_sums(const Forest& forest, const RowsIn& rows, bool hard, double* sums) {
  while_unchanged(forest, [&](TreeChecks::Epoch epoch) { add_leaves(forest, epoch, rows, hard, sums); });
}

void apply(const Forest& forest, const RowsIn& rows, std::int64_t* leaves) {
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
  const auto number_leaves = [&](std::size_t first, std::size_t) {
    return [&, first](const BlockLeaves& block) {
      std::int64_t* out = leaves + first * n_trees + first_tree[block.top] + block.first_tree;
      for (std::size_t i = 0; i < block.n; ++i)
        for (std::size_t j = 0; j < block.trees; ++j)
          out[block.rows[i] * n_trees + j] = before[block.bottom + j] + static_cast<std::int64_t>(block.index(i, j));
    };
  };
  while_unchanged(forest, [&](TreeChecks::Epoch epoch) { visit_leaves(forest, epoch, rows, number_leaves); });
}

PredictionBytes prediction_bytes(const Forest& forest, bool evict) {
  std::size_t nodes = 0, rows = 0, buckets = 0;
  for (std::size_t b = 0; b + 1 < forest.node_start.size(); ++b) {
    nodes = std::max<std::size_t>(nodes, forest.node_start[b + 1] - forest.node_start[b]);
    rows = std::max<std::size_t>(rows, forest.table_start[b + 1] - forest.table_start[b]);
  }
  for (std::size_t t = 0; t < forest.n_tops(); ++t) {
    nodes = std::max<std::size_t>(nodes, forest.top_start[t + 1] - forest.top_start[t]);
    buckets = std::max<std::size_t>(buckets, forest.bucket_start[t + 1] - forest.bucket_start[t]);
  }
  const std::size_t tops_at_once = evict ? 1 : std::min(kTrees, forest.n_tops());
  const std::size_t votes = forest.n_classes > 0 ? (forest.n_classes + 7) / 8 * sizeof(std::uint64_t) : 0;
  std::size_t thread = kTrees * std::min(nodes, kMostOpenNodes) * sizeof(OpenNode) +
                       kBlock * kTrees * sizeof(std::uint32_t) + (buckets + 1) * sizeof(std::size_t) +
                       (forest.n_features + 1) * kColumn * sizeof(float);
  if (forest.categorical())
    thread += kTrees * (2 * kMostSetWords + std::min(nodes, kMostOpenNodes)) * sizeof(std::uint32_t) +
              (kPlaces + forest.n_features * kColumn) * sizeof(std::uint32_t);
  // Pages of the trees in use, and what the system maps around them.
  if (evict) thread += kTrees * (nodes * sizeof(Node) + rows * forest.outputs() * sizeof(float)) + 2 * kAround;
  return {(tops_at_once + 1) * sizeof(std::uint32_t) + votes, thread};
}

}  // namespace oldgrowth
