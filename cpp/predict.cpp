#include "predict.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "class_sums.hpp"
#include "cpu.hpp"
#include "route.hpp"

namespace oldgrowth {
namespace {

// Rows taken at a time: enough of them share a bucket that its trees are worth loading, but half as many bytes
// as the trees have at most, so that they do not drive each other out of the cache.
constexpr std::size_t kFewestRows = 16384, kMostRows = 65536;
// How many of a bucket's trees a block of rows goes through before its leaves are looked at.
constexpr std::size_t kTrees = 8;
// How many top trees a block of rows goes through while its columns are there.
constexpr std::size_t kTops = 8;
// Rows of more features than this stay where they are: a tree looks at too few of them to be worth a copy.
constexpr std::size_t kFeaturesWorthCopying = 64;
// How far ahead the rows of a bucket are fetched, which lie anywhere.
constexpr std::size_t kAhead = 8;
// Bytes that the system may map around a page.
constexpr std::size_t kAround = 2 << 20;

// The leaves that the rows of a block reach in some trees of their bucket: leaf(i, tree), trees from 0.
template <class Leaf>
struct BlockLeaves {
  std::size_t top, bottom;        // the top tree, the first of the bottom trees
  std::size_t first_tree, trees;  // of those of the bucket
  const std::uint32_t* rows;      // numbers in the batch
  std::size_t n;
  const Leaf* leaves;
  const Leaf& leaf(std::size_t i, std::size_t tree) const { return leaves[tree * kBlock + i]; }
};

// Gives back the memory of some items of an array that is mapped from a file, which keeps them. With them goes what
// lies shortly before: the system maps more than is asked for, and so brings back the end of what was let go last.
template <class T>
void let_go(std::span<const T> all, std::size_t first, std::size_t n) {
  static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::size_t before = std::min(first, kAround / sizeof(T));
  const auto begin = reinterpret_cast<std::uintptr_t>(all.data() + first - before) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(all.data() + first + n);
  if (end > begin) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

// Takes a batch of rows through the forest, bucket by bucket, and shows all leaves to visit(BlockLeaves).
template <class Leaf, class Visit>
class Batch {
 public:
  Batch(const Forest& forest, const RowsIn& rows, std::size_t first, std::size_t n, Visit& visit)
      : forest_(forest),
        format_(forest.n_features),
        all_{rows.x + first * forest.n_features, forest.n_features, nullptr, n, rows.may_miss},
        let_go_(rows.let_go),
        visit_(visit),
        tops_at_once_(rows.let_go ? 1 : std::min(kTops, forest.n_tops())),
        buckets_(n * tops_at_once_),
        rows_(n),
        copies_(forest.n_features <= kFeaturesWorthCopying ? std::min(n, kBlock) * forest.n_features : 0),
        columns_(!copies_.empty() && has_first_levels() && !rows.may_miss ? kColumn * forest.n_features : 0),
        leaves_(kBlock * kTrees) {}

  void run() {
    for (std::size_t top = 0; top < forest_.n_tops(); ++top) {
      if (top % tops_at_once_ == 0) route_rows(top, std::min(tops_at_once_, forest_.n_tops() - top));
      group_by_bucket(top, buckets_.data() + top % tops_at_once_ * all_.n);
      for (std::size_t b = 0, first = 0; b + 1 < end_.size(); first = end_[b++]) {
        for (std::size_t at = first; at < end_[b]; at += kBlock)
          run_block(top, b, at, std::min(kBlock, end_[b] - at), at == first ? end_[b] - first : 0);
        if (let_go_ && first < end_[b]) let_go_of_bucket(top, b);
      }
    }
  }

 private:
  // Fills buckets_ with the buckets of all rows in some top trees, one tree behind the other.
  void route_rows(std::size_t first_top, std::size_t tops) {
    for (std::size_t at = 0; at < all_.n; at += kBlock) {
      const RowList block =
          with_columns({all_.x + at * all_.stride, all_.stride, nullptr, std::min(kBlock, all_.n - at), all_.may_miss});
      for (std::size_t t = 0; t < tops; ++t)
        route(format_, forest_.top_nodes.data() + forest_.top_start[first_top + t], block,
              buckets_.data() + t * all_.n + at);
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

  // All nodes and table rows of the bottom trees of a bucket.
  void let_go_of_bucket(std::size_t top, std::size_t bucket) const {
    const std::size_t trees = forest_.trees_of_top[top], bottom = forest_.bottom_start[top] + bucket * trees;
    const std::size_t node = forest_.node_start[bottom], row = forest_.table_start[bottom];
    let_go(forest_.nodes, node, forest_.node_start[bottom + trees] - node);
    const std::size_t rows = forest_.table_start[bottom + trees] - row;
    let_go(forest_.table, row * forest_.outputs(), rows * forest_.outputs());
  }

  // n rows from `at` on; `fresh` rows are about to come through trees that have not been used yet.
  void run_block(std::size_t top, std::size_t bucket, std::size_t at, std::size_t n, std::size_t fresh) {
    const std::size_t trees = forest_.trees_of_top[top];
    const std::size_t bottom = forest_.bottom_start[top] + bucket * trees;
    const RowList list = gathered(at, n);
    for (std::size_t first = 0; first < trees; first += kTrees) {
      const std::size_t some = std::min(kTrees, trees - first);
      for (std::size_t j = 0; j < some; ++j) {
        if (forest_.checks) forest_.checks->ensure(forest_, bottom + first + j);
        const std::size_t begin = forest_.node_start[bottom + first + j];
        const std::size_t size = forest_.node_start[bottom + first + j + 1] - begin;
        // In one go rather than here and there, if most of it will be looked at.
        if (size < 16 * fresh) fetch(forest_.nodes.data() + begin, size * sizeof(Node));
        find_leaves(format_, forest_.nodes.data() + begin, list, leaves_.data() + j * kBlock);
      }
      visit_(BlockLeaves<Leaf>{top, bottom + first, first, some, rows_.data() + at, n, leaves_.data()});
    }
  }

  // n rows of a bucket side by side, where they do not drive each other out of the cache.
  RowList gathered(std::size_t at, std::size_t n) {
    const std::size_t width = all_.stride;
    if (copies_.empty()) return {all_.x, width, rows_.data() + at, n, all_.may_miss};
    const RowList copied{
        copies_.data(), width, nullptr, n, all_.may_miss, columns_.empty() ? nullptr : columns_.data()};
    if (copied.columns != nullptr) {
      gather(all_.x, rows_.data() + at, n, width, copies_.data(), columns_.data());
      return copied;
    }
    for (std::size_t i = 0; i < n; ++i) {
      if (at + i + kAhead < rows_.size()) fetch(all_.x + rows_[at + i + kAhead] * width, width * sizeof(float));
      std::memcpy(copies_.data() + i * width, all_.x + rows_[at + i] * width, width * sizeof(float));
    }
    return copied;
  }

  // The same rows, by columns too if that is of use.
  RowList with_columns(RowList list) {
    if (columns_.empty()) return list;
    transpose(list.x, list.stride, list.n, list.stride, columns_.data());
    list.columns = columns_.data();
    return list;
  }

  const Forest& forest_;
  NodeFormat format_;
  RowList all_;
  bool let_go_;
  Visit& visit_;
  std::size_t tops_at_once_;
  std::vector<std::uint32_t> buckets_, rows_;
  std::vector<std::size_t> end_;
  std::vector<float> copies_, columns_;
  std::vector<Leaf> leaves_;
};

// Batch after batch: for each, start(first row, rows) gives what is then shown all BlockLeaves.
template <class Leaf, class Start>
void visit_leaves(const Forest& forest, const RowsIn& rows, const Start& start) {
  const std::size_t worth = forest.nodes.size_bytes() / (2 * sizeof(float) * forest.n_features);
  const std::size_t at_once =
      rows.let_go ? std::max<std::size_t>(rows.n, 1) : std::clamp(worth, kFewestRows, kMostRows);
  for (std::size_t first = 0; first < rows.n; first += at_once) {
    const std::size_t n = std::min(at_once, rows.n - first);
    auto visit = start(first, n);
    Batch<Leaf, decltype(visit)>(forest, rows, first, n, visit).run();
  }
}

// Adds up the class leaves of a batch.
class AddClasses {
 public:
  AddClasses(const Forest& forest, bool hard, std::size_t n, double* sums)
      : forest_(forest), sums_(forest, hard, n, sums) {}
  ~AddClasses() { sums_.finish(); }

  void operator()(const BlockLeaves<Node>& block) {
    const std::size_t trees = forest_.trees_of_top[block.top];
    if (block.top != top_ && counted_ + trees > ClassSums::kMost) {
      sums_.finish();
      counted_ = 0;
    }
    if (block.top != top_) counted_ += trees;
    top_ = block.top;
    for (std::size_t i = 0; i < block.n; ++i) {
      if (i + kAhead < block.n) sums_.fetch(block.rows[i + kAhead]);
      sums_.add(block.rows[i], block.bottom, &block.leaf(i, 0), block.trees, kBlock);
      if (trees > ClassSums::kMost) sums_.finish(block.rows[i]);
    }
  }

 private:
  const Forest& forest_;
  ClassSums sums_;
  std::size_t top_ = ~std::size_t{0}, counted_ = 0;  // trees whose votes are not finished, at most
};

}  // namespace

void predict_sums(const Forest& forest, const RowsIn& rows, bool hard, double* sums) {
  std::fill_n(sums, rows.n * forest.outputs(), 0.0);
  if (forest.n_classes > 0) {
    visit_leaves<Node>(forest, rows, [&](std::size_t first, std::size_t n) {
      return AddClasses(forest, hard, n, sums + first * forest.n_classes);
    });
    return;
  }
  visit_leaves<Node>(forest, rows, [&](std::size_t first, std::size_t) {
    return [=](const BlockLeaves<Node>& block) {
      for (std::size_t i = 0; i < block.n; ++i)
        for (std::size_t j = 0; j < block.trees; ++j) sums[first + block.rows[i]] += leaf_value(block.leaf(i, j));
    };
  });
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
  visit_leaves<std::uint32_t>(forest, rows, [&](std::size_t first, std::size_t) {
    return [&, first](const BlockLeaves<std::uint32_t>& block) {
      std::int64_t* out = leaves + first * n_trees + first_tree[block.top] + block.first_tree;
      for (std::size_t i = 0; i < block.n; ++i)
        for (std::size_t j = 0; j < block.trees; ++j)
          out[block.rows[i] * n_trees + j] = before[block.bottom + j] + static_cast<std::int64_t>(block.leaf(i, j));
    };
  });
}

}  // namespace oldgrowth
