#include "grow/grower.hpp"

#include <algorithm>
#include <memory>
#include <span>
#include <stdexcept>

#include "base/rng.hpp"
#include "grow/bucket.hpp"
#include "grow/entries.hpp"
#include "grow/set_search.hpp"
#include "grow/split_search.hpp"

namespace oldgrowth {
namespace {

// When a node's rows fit one of these, they are copied together and its subtree is grown there: first
// within half of a usual L2 cache, then within half of the L1.
constexpr std::size_t kCacheBytes[] = {256 * 1024, 16 * 1024};

struct Frame {
  std::size_t begin, end;
  std::size_t depth;
  std::uint64_t key;
  std::size_t parent;   // the node whose right child this is, or kNoParent
  std::size_t list_at;  // the features not known to be constant
  std::uint32_t n_active;
  bool owns_list;  // the last to use the list may change it in place
};
constexpr std::size_t kNoParent = std::numeric_limits<std::size_t>::max();

template <class Code, class Stats>
struct Level {
  Level(Stats& stats, const SplitRules& rules) : search(stats, rules), sets(stats, rules) {}
  const Block<Code>* block = nullptr;
  const Targets* targets = nullptr;
  std::vector<Word<Code>> entries, aside;
  std::vector<Frame> stack;
  SplitSearch<Code, Stats> search;
  SetSearch<Code, Stats> sets;
  Block<Code> own_block;
  Targets own_targets;
};

template <class Code, class Stats>
std::size_t level_bytes(std::size_t rows, std::size_t classes) {
  return rows * 2 * sizeof(Word<Code>) + SplitSearch<Code, Stats>::bytes(rows, classes);
}

template <class Stats>
class TreeGrower {
 public:
  static std::size_t bytes(std::size_t rows, const RowKind& kind, std::size_t classes) {
    constexpr std::size_t kNarrow = kMissing<std::uint16_t>;
    std::size_t bytes = 4 * (kCacheBytes[0] + kCacheBytes[1]);  // their blocks, and search in them
    bytes += rows * sizeof(double) + (Stats::kCounts ? 0 : rows * 2 * sizeof(double));  // weights and targets
    if (rows <= kNarrow) return bytes + level_bytes<std::uint16_t, Stats>(rows, classes);
    return bytes + level_bytes<std::uint32_t, Stats>(rows, classes) +
           level_bytes<std::uint16_t, Stats>(kNarrow, classes) +
           Block<std::uint16_t>::bytes(kNarrow, kind.features, kind.ranked) + rank_scratch_bytes(kNarrow, 1);
  }

  TreeGrower(const TreeRules& rules, std::size_t n_features)
      : rules_(rules), format_(static_cast<std::uint32_t>(n_features)), stats_(rules.n_classes) {
    split_rules_ = {rules.min_samples_leaf, rules.min_weight_leaf, rules.balance, rules.impurity_scale};
    tree_.importances.resize(n_features);
    if (!rules.levels.empty() && rules.levels.size() != n_features)
      throw std::invalid_argument("not a number of levels for each feature");
  }

  template <class Code>
  GrownTree grow(const Block<Code>& block, const Targets& targets, std::vector<Word<Code>> entries, std::uint64_t key,
                 std::size_t depth) {
    Level<Code, Stats> level(stats_, split_rules_);
    level.block = &block;
    level.targets = &targets;
    level.entries = std::move(entries);
    lists_.resize(block.features);
    for (std::uint32_t f = 0; f < block.features; ++f) lists_[f] = f;
    run(level, {0, level.entries.size(), depth, key, kNoParent, 0, static_cast<std::uint32_t>(block.features), true},
        0);
    return std::move(tree_);
  }

 private:
  template <class Code>
  void run(Level<Code, Stats>& level, const Frame& root, std::size_t nesting) {
    stats_.use(*level.targets);
    level.stack.push_back(root);
    while (!level.stack.empty()) {
      if (rules_.stop && rules_.stop->load(std::memory_order_relaxed)) throw std::runtime_error("growing was stopped");
      const Frame frame = level.stack.back();
      level.stack.pop_back();
      if (descend(level, frame, nesting)) {
        stats_.use(*level.targets);
        continue;
      }
      grow_node(level, frame);
    }
  }

  // Continues in a copy of the node's rows when that makes its subtree fit a cache.
  template <class Code>
  bool descend(Level<Code, Stats>& level, const Frame& frame, std::size_t nesting) {
    const std::size_t n = frame.end - frame.begin;
    if constexpr (sizeof(Code) == 4) {
      if (n > kMissing<std::uint16_t>) return false;
    } else {
      if (nesting >= std::size(kCacheBytes)) return false;
      const std::size_t row_bytes = level.block->features * sizeof(Code);
      if (n < 4 || n * row_bytes > kCacheBytes[nesting]) return false;
      if (level.block->rows * row_bytes <= 2 * kCacheBytes[nesting]) return descend(level, frame, nesting + 1);
    }
    auto& slot = sizeof(Code) == 4 ? narrowed_ : cached_[nesting];
    if (!slot) slot = std::make_unique<Level<std::uint16_t, Stats>>(stats_, split_rules_);
    Level<std::uint16_t, Stats>& next = *slot;
    copy_rows(level, frame, next);
    Frame root = frame;
    root.begin = 0;
    root.end = n;
    root.list_at = own_list(frame);
    root.owns_list = true;
    root.n_active = drop_constants(*next.block, root.list_at, frame.n_active);
    run(next, root, sizeof(Code) == 4 ? 0 : nesting + 1);
    return true;
  }

  template <class Code>
  void copy_rows(const Level<Code, Stats>& from, const Frame& frame, Level<std::uint16_t, Stats>& to) {
    constexpr unsigned kHalf = 8 * sizeof(Code);
    const std::size_t n = frame.end - frame.begin;
    rows_.resize(n);
    to.entries.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
      const Word<Code> entry = from.entries[frame.begin + i];
      rows_[i] = static_cast<std::uint32_t>(entry >> kHalf);
      const auto payload =
          Stats::kCounts ? static_cast<std::uint32_t>(entry & kMissing<Code>) : static_cast<std::uint32_t>(i);
      to.entries[i] = static_cast<std::uint32_t>(i << 16) | payload;
    }
    if constexpr (sizeof(Code) == 4) {
      narrow_block(*from.block, rows_.data(), n, to.own_block);
    } else {
      Block<std::uint16_t>& block = to.own_block;
      block.rows = n;
      block.features = from.block->features;
      block.values = from.block->values;
      block.has_missing = from.block->has_missing;
      block.codes.resize(n * block.features);
      for (std::size_t i = 0; i < n; ++i)
        std::copy_n(from.block->row(rows_[i]), block.features, block.codes.data() + i * block.features);
      block.find_ranges();
    }
    if constexpr (!Stats::kCounts) {
      const auto take = [&](const auto& source, auto& target) {
        target.resize(source.empty() ? 0 : n);
        for (std::size_t i = 0; i < target.size(); ++i) target[i] = source[rows_[i]];
      };
      take(from.targets->classes, to.own_targets.classes);
      take(from.targets->values, to.own_targets.values);
      take(from.targets->weights, to.own_targets.weights);
    }
    to.block = &to.own_block;
    to.targets = &to.own_targets;
  }

  // Copying the rows together has shown at little cost which features are constant.
  std::uint32_t drop_constants(const Block<std::uint16_t>& block, std::size_t list_at, std::uint32_t n_active) {
    std::uint32_t* list = lists_.data() + list_at;
    const auto varies = [&](std::uint32_t f) { return block.lowest[f] != block.highest[f]; };
    return static_cast<std::uint32_t>(std::stable_partition(list, list + n_active, varies) - list);
  }

  template <class Code>
  void grow_node(Level<Code, Stats>& level, const Frame& frame) {
    const std::size_t at = tree_.nodes.size();
    if (frame.parent != kNoParent) {
      if (at - frame.parent > format_.max_offset())
        throw std::length_error("a tree has more nodes than its format can hold: choose a smaller bucket_size");
      tree_.nodes[frame.parent] = format_.with_right(tree_.nodes[frame.parent], at - frame.parent);
    }
    tree_.depth = std::max(tree_.depth, frame.depth);
    const std::size_t n = frame.end - frame.begin;
    stats_.clear();
    for (std::size_t i = frame.begin; i < frame.end; ++i)
      stats_.add(static_cast<std::uint32_t>(level.entries[i] & kMissing<Code>));
    if constexpr (Stats::kClassification) {
      if (stats_.sparse(n))
        for (std::size_t i = frame.begin; i < frame.end; ++i)
          stats_.touch(static_cast<std::uint32_t>(level.entries[i] & kMissing<Code>));
    }
    stats_.close();
    if (n < rules_.min_samples_split || n < 2 * rules_.min_samples_leaf ||
        stats_.weight() < 2 * rules_.min_weight_leaf || frame.depth >= rules_.max_depth ||
        (stats_.pure() && !rules_.top_tree)) {
      add_leaf(frame.depth);
      return;
    }
    std::uint32_t n_active = frame.n_active;
    const std::size_t list_at = own_list(frame);
    // All gains of a pure node are zero: only balance can decide, else rows would be peeled off singly.
    Split<Code> split = best_split(level, frame, list_at, n_active, stats_.pure() ? 1.0 : rules_.balance);
    if constexpr (Stats::kRefuses)  // a bucket must not be too large because the criterion refuses all splits
      if (rules_.top_tree && !split.found()) split = best_split(level, frame, list_at, n_active, 1.0);
    if (!split.found() || too_little(split.decrease)) {
      add_leaf(frame.depth);
      return;
    }
    tree_.importances[split.feature] += split.decrease;
    tree_.nodes.push_back(categorical(split.feature)
                              ? format_.by_bits(level.sets.stored(split, *level.block, rules_.levels, tree_.sets),
                                                split.feature, split.missing_left)
                              : format_.inner(threshold_of(split, *level.block), split.feature, split.missing_left));
    const std::size_t middle = partition(level, frame, split);
    level.stack.push_back({middle, frame.end, frame.depth + 1, derive(frame.key, 2), at, list_at, n_active, true});
    level.stack.push_back(
        {frame.begin, middle, frame.depth + 1, derive(frame.key, 1), kNoParent, list_at, n_active, false});
  }

  bool categorical(std::uint32_t feature) const { return !rules_.levels.empty() && rules_.levels[feature] > 0; }

  bool too_little(double decrease) const {
    double scale = 1;
    if constexpr (!Stats::kClassification) scale = Stats::impurity_unit(rules_.target_scale);
    return rules_.min_impurity_decrease > 0 &&
           decrease * scale / rules_.total_weight + 1e-15 < rules_.min_impurity_decrease;
  }

  // Where this node can shuffle its features: in place, or in a copy after that of its sibling.
  std::size_t own_list(const Frame& frame) {
    if (frame.owns_list) return frame.list_at;
    const std::size_t at = frame.list_at + frame.n_active;
    if (lists_.size() < at + frame.n_active) lists_.resize(2 * (at + frame.n_active));
    std::copy_n(lists_.data() + frame.list_at, frame.n_active, lists_.data() + at);
    return at;
  }

  // Top trees share the key of a place in the tree, hence a shuffled deck of features, and each takes the next
  // cards from it: drawn by each for itself, a few top trees may all miss the features that matter.
  void deal_features(std::uint32_t* list, std::uint32_t n, std::uint64_t key) {
    if (n == 0) return;
    const std::uint64_t card = rules_.turn * rules_.max_features;
    const std::uint64_t deck = derive(key, card / n);
    std::sort(list, list + n, [&](std::uint32_t a, std::uint32_t b) { return draw(deck, a) < draw(deck, b); });
    std::rotate(list, list + card % n, list + n);
  }

  template <class Code>
  Split<Code> best_split(Level<Code, Stats>& level, const Frame& frame, std::size_t list_at, std::uint32_t& n_active,
                         double balance) {
    Split<Code> best;
    const Word<Code>* entries = level.entries.data() + frame.begin;
    const std::size_t n = frame.end - frame.begin;
    level.search.set_balance(balance);
    level.sets.set_balance(balance);
    std::uint32_t drawn = 0, searched = 0;
    std::uint32_t* list = lists_.data() + list_at;
    if (rules_.top_tree) deal_features(list, n_active, frame.key);
    for (std::uint64_t counter = 0, bits = 0; drawn < n_active && searched < rules_.max_features; ++counter) {
      if (!rules_.top_tree) {
        bits = counter % 2 == 0 ? draw(frame.key, counter) : bits >> 32;
        std::swap(list[drawn], list[drawn + below(static_cast<std::uint32_t>(bits), n_active - drawn)]);
      }
      const std::uint32_t feature = list[drawn];
      if (!search(level, feature, {entries, n}, frame.key, best)) {
        if (rules_.top_tree)
          std::rotate(list + drawn, list + drawn + 1, list + n_active--);
        else
          std::swap(list[drawn], list[--n_active]);
        continue;
      }
      ++drawn;
      ++searched;
      if (best.perfect) break;
    }
    return best;
  }

  // Improves `best` by a feature; false if it is constant in the node.
  template <class Code>
  bool search(Level<Code, Stats>& level, std::uint32_t feature, std::span<const Word<Code>> entries, std::uint64_t key,
              Split<Code>& best) {
    if (categorical(feature)) {
      const SetDraw random{draw(~key, feature), rules_.random_thresholds};
      return level.sets.search(*level.block, feature, entries, random, best);
    }
    const double unit_draw = rules_.random_thresholds ? unit(draw(~key, feature)) : -1.0;
    return level.search.search(*level.block, feature, entries.data(), entries.size(), unit_draw, best);
  }

  template <class Code>
  std::size_t partition(Level<Code, Stats>& level, const Frame& frame, const Split<Code>& split) {
    const std::span<Word<Code>> entries(level.entries.data() + frame.begin, frame.end - frame.begin);
    const auto column = level.block->column(split.feature);
    return frame.begin + (categorical(split.feature)
                              ? level.sets.partition(entries, level.aside, column, split)
                              : oldgrowth::partition<Code>(entries, level.aside, column, below_split(split)));
  }

  void add_leaf(std::size_t depth) {
    if (rules_.top_tree) {
      tree_.nodes.push_back(leaf(tree_.leaf_depths.size()));
      tree_.leaf_depths.push_back(static_cast<std::uint32_t>(depth));
      return;
    }
    append_leaf(tree_, stats_, rules_.target_scale);
  }

  TreeRules rules_;
  SplitRules split_rules_;
  NodeFormat format_;
  Stats stats_;
  GrownTree tree_;
  std::vector<std::uint32_t> lists_;
  std::vector<std::uint32_t> rows_;
  std::unique_ptr<Level<std::uint16_t, Stats>> narrowed_, cached_[std::size(kCacheBytes)];
};

template <class Stats, class Code>
GrownTree grow_block(const Bucket& bucket, const Block<Code>& block, const std::vector<double>& row_weights,
                     const TreeRules& rules, std::uint64_t key, std::size_t depth) {
  Targets targets;
  if constexpr (!Stats::kCounts) targets = {bucket.classes, bucket.values, row_weights};
  std::vector<Word<Code>> entries = entries_of<Stats, Code>(bucket, row_weights, rules.n_classes);
  return TreeGrower<Stats>(rules, block.features).grow(block, targets, std::move(entries), key, depth);
}

template <class Stats>
GrownTree grow_bucket(const Bucket& bucket, const std::vector<double>& row_weights, const TreeRules& rules,
                      std::uint64_t key, std::size_t depth) {
  if (bucket.rows <= kMissing<std::uint16_t>)
    return grow_block<Stats>(bucket, bucket.narrow, row_weights, rules, key, depth);
  return grow_block<Stats>(bucket, bucket.wide, row_weights, rules, key, depth);
}

void check_targets(const Bucket& bucket, const TreeRules& rules, bool classification) {
  if (bucket.rows == 0 || (classification ? bucket.classes.size() : bucket.values.size()) != bucket.rows)
    throw std::invalid_argument("a bucket without rows, or with targets of another kind");
  if (classification && *std::max_element(bucket.classes.begin(), bucket.classes.end()) >= rules.n_classes)
    throw std::invalid_argument("a class number beyond the number of classes");
}

bool can_count(const TreeRules& rules, bool whole_weights) {
  return whole_weights && rules.n_classes <= kMaxCountedClasses;
}

}  // namespace

std::size_t growing_bytes(std::size_t rows, const RowKind& kind, const TreeRules& rules, bool whole_weights,
                          std::size_t mixed_leaves) {
  // Of a bootstrap 63 of 100 rows are drawn. A tree has at most two nodes for each, and a vector that grows twice that.
  const std::size_t drawn = kind.bootstrap ? rows * 2 / 3 : rows;
  const std::size_t tree = 2 * (2 * drawn * sizeof(Node) + mixed_leaves * rules.n_classes * sizeof(float));
  const std::size_t classes = std::max(1U, rules.n_classes);
  return tree + visit_stats(rules.criterion, can_count(rules, whole_weights), [&]<class Stats>(StatsType<Stats>) {
           return TreeGrower<Stats>::bytes(rows, kind, classes);
         });
}

GrownTree grow_tree(const Bucket& bucket, const std::vector<double>& row_weights, bool whole_weights,
                    const TreeRules& rules, std::uint64_t key, std::size_t depth) {
  return visit_stats(rules.criterion, can_count(rules, whole_weights), [&]<class Stats>(StatsType<Stats>) {
    check_targets(bucket, rules, Stats::kClassification);
    TreeRules scaled = rules;
    if constexpr (!Stats::kClassification) {
      if (rules.balance > 0) scaled.impurity_scale = Stats::impurity(bucket.values, row_weights);
      if (!(scaled.impurity_scale > 0)) scaled.impurity_scale = 1;
    }
    return grow_bucket<Stats>(bucket, row_weights, scaled, key, depth);
  });
}

}  // namespace oldgrowth
