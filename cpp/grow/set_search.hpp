// The search for a split of a node by a categorical feature: which of the levels that occur go left.
//
// Of few levels, and of levels with many rows each, the best set is found: it separates the first from the others in an
// order by target. Of many levels with few rows that set would fit the targets of single rows; there the beginnings of
// some random orders are tried, which makes better forests.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/level_set.hpp"
#include "base/rng.hpp"
#include "grow/entries.hpp"
#include "grow/level_counts.hpp"
#include "grow/level_order.hpp"
#include "grow/split.hpp"
#include "grow/split_score.hpp"

namespace oldgrowth {

// Where random sets come from, and whether a single one is wanted instead of the best.
struct SetDraw {
  std::uint64_t key;
  bool only;
};

template <class Code, NodeStats Stats>
class SetSearch {
 public:
  using Key = Word<Code>;

  SetSearch(Stats& stats, const SplitRules& rules) : stats_(stats), rules_(rules), counts_(stats), order_(stats) {}

  void set_balance(double balance) { rules_.balance = balance; }

  // Improves `best` if the feature splits the node better. False when it is constant in the node.
  bool search(const Block<Code>& block, std::uint32_t feature, std::span<const Key> entries, const SetDraw& random,
              Split<Code>& best) {
    n_ = entries.size();
    feature_ = feature;
    best_ = &best;
    taken_ = Taken::nothing;
    counts_.count(block, feature, entries);
    const std::size_t levels = counts_.size();
    if (levels == 0 || (levels == 1 && counts_.missing().empty())) return false;
    if (levels > 1) {
      if (random.only)
        try_set(draw_set(random.key));
      else
        try_sets(random.key);
    }
    if (!counts_.missing().empty()) only_missing_against_rest();
    keep_sides();
    return true;
  }

  // After the search: the bits of a node with the best split, which was by sets. Its set may be added to the tree's.
  std::uint32_t stored(const Split<Code>& split, const Block<Code>& block, const std::vector<std::uint32_t>& levels,
                       std::vector<std::uint16_t>& sets) {
    set_.clear();
    for (const Code code : split.missing_left ? right_ : left_) {
      set_.push_back(level_of(block.values[split.feature][code], levels[split.feature]));
      if (set_.back() == kNoLevel) throw std::invalid_argument("a value that is no level of its feature");
    }
    std::sort(set_.begin(), set_.end());
    return store_set(set_, levels[split.feature], sets);
  }

  // Brings the rows that go left to the front.
  std::size_t partition(std::span<Key> entries, std::vector<Key>& aside, std::pair<const Code*, std::size_t> column,
                        const Split<Code>& split) {
    const Code highest = std::max(left_.empty() ? Code{0} : *std::max_element(left_.begin(), left_.end()),
                                  right_.empty() ? Code{0} : *std::max_element(right_.begin(), right_.end()));
    if (highest >= goes_left_.size()) goes_left_.resize(std::size_t{highest} + 1);
    for (const Code code : left_) goes_left_[code] = 1;
    for (const Code code : right_) goes_left_[code] = 0;
    return oldgrowth::partition<Code>(entries, aside, column, [&](Code code) {
      return code == kMissing<Code> ? split.missing_left : goes_left_[code] != 0;
    });
  }

 private:
  enum class Taken { nothing, several, single, all };
  using Bits = std::vector<std::uint8_t>;

  // Up to so many levels, and levels of so many rows each, are ordered by target; of others, so many random orders
  // are tried.
  static constexpr std::size_t kFewLevels = 10, kManyRows = 30, kRandomOrders = 16;

  // In nodes of so many rows, levels that the node has not met follow the lighter side.
  static constexpr std::size_t kUnmetToLighter = 60;

  void try_sets(std::uint64_t key) {
    if (counts_.size() <= kFewLevels || n_ >= kManyRows * counts_.size()) {
      scan(order_.of(counts_));
      if constexpr (Stats::kClassification)
        if (stats_.present().size() > 2) scan_singles();
      return;
    }
    shuffled_.resize(counts_.size());
    std::iota(shuffled_.begin(), shuffled_.end(), 0U);
    for (std::size_t i = 0; i < kRandomOrders; ++i) {
      shuffle(derive(key, i + 1));
      scan(shuffled_);
    }
  }

  // Tries all beginnings of an order.
  void scan(const std::vector<std::uint32_t>& order) {
    bool better = false;
    for (const bool missing_left : sides()) {
      start(missing_left);
      for (std::size_t i = 0; i + 1 < order.size(); ++i) {
        move(order[i]);
        if (consider(missing_left)) {
          better = true;
          until_ = i;
        }
      }
    }
    if (!better) return;
    taken_ = Taken::several;
    taken_set_.assign(order.size(), 0);
    for (std::size_t i = 0; i <= until_; ++i) taken_set_[order[i]] = 1;
  }

  void shuffle(std::uint64_t key) {
    for (std::size_t i = shuffled_.size() - 1; i > 0; --i) {
      const std::uint64_t bits = draw(key, i);
      std::swap(shuffled_[i], shuffled_[below(static_cast<std::uint32_t>(bits), static_cast<std::uint32_t>(i + 1))]);
    }
  }

  void scan_singles() {
    for (const bool missing_left : sides())
      for (std::size_t l = 0; l < counts_.size(); ++l) {
        start(missing_left);
        move(l);
        if (consider(missing_left)) {
          taken_ = Taken::single;
          until_ = l;
        }
      }
  }

  // Each level is in it with probability 1/2, but not all and not none.
  const Bits& draw_set(std::uint64_t key) {
    const std::size_t levels = counts_.size();
    bits_.resize(levels);
    std::uint64_t word = 0;
    std::size_t in_set = 0;
    for (std::size_t l = 0; l < levels; ++l) {
      word = l % 64 == 0 ? draw(key, l / 64) : word >> 1;
      bits_[l] = word & 1;
      in_set += bits_[l];
    }
    if (in_set == 0 || in_set == levels) {
      const std::size_t odd = below(static_cast<std::uint32_t>(draw(~key, 0)), static_cast<std::uint32_t>(levels));
      bits_[odd] ^= 1;
    }
    return bits_;
  }

  void try_set(const Bits& set) {
    for (const bool missing_left : sides()) {
      start(missing_left);
      for (std::size_t l = 0; l < counts_.size(); ++l)
        if (set[l]) move(l);
      if (consider(missing_left)) {
        taken_ = Taken::several;
        taken_set_ = set;
      }
    }
  }

  void only_missing_against_rest() {
    start(false);
    for (std::size_t l = 0; l < counts_.size(); ++l) move(l);
    if (consider(false)) taken_ = Taken::all;
  }

  // The sides on which missing rows are tried.
  std::span<const bool> sides() const {
    static constexpr bool kBoth[] = {false, true};
    return std::span<const bool>(kBoth).first(counts_.missing().empty() ? 1 : 2);
  }

  void start(bool missing_left) {
    stats_.all_right();
    n_left_ = 0;
    if (!missing_left) return;
    for (const std::uint32_t payload : counts_.missing()) stats_.move(payload);
    n_left_ = counts_.missing().size();
  }

  void move(std::size_t level) {
    counts_.move(level);
    n_left_ += counts_.rows(level);
  }

  // The rows moved so far against the others.
  bool consider(bool missing_left) {
    double score = 0;  // of the criterion
    const double rated = allowed_score(stats_, rules_, {n_, n_left_}, best_->score, score);
    if (!(rated > best_->score)) return false;
    best_->score = rated;
    best_->decrease = stats_.decrease(score);
    best_->feature = feature_;
    best_->missing_left = counts_.missing().empty() ? left_for_unmet() : missing_left;
    best_->perfect = n_ == 2 || (rules_.balance == 0 && score >= stats_.highest_score());
    return true;
  }

  // The side of levels that the node has not met: of many rows the lighter one, of few rows the heavier one.
  bool left_for_unmet() const {
    const double left = stats_.left_weight(), right = stats_.weight() - left;
    return n_ >= kUnmetToLighter ? left < right : left > right;
  }

  void keep_sides() {
    if (taken_ == Taken::nothing) return;
    const std::size_t levels = counts_.size();
    bits_.assign(levels, taken_ == Taken::all);
    if (taken_ == Taken::several) bits_ = taken_set_;
    if (taken_ == Taken::single) bits_[until_] = 1;
    left_.clear();
    right_.clear();
    for (std::size_t l = 0; l < levels; ++l) (bits_[l] ? left_ : right_).push_back(counts_.code(l));
  }

  Stats& stats_;
  SplitRules rules_;
  LevelCounts<Code, Stats> counts_;
  LevelOrder<Code, Stats> order_;
  Split<Code>* best_ = nullptr;
  std::uint32_t feature_ = 0;
  std::size_t n_ = 0, n_left_ = 0;
  Taken taken_ = Taken::nothing;
  std::size_t until_ = 0;
  Bits bits_, taken_set_;
  std::vector<std::uint32_t> shuffled_;
  std::vector<Code> left_, right_;       // on each side of the best split, if that is by sets
  std::vector<std::uint32_t> set_;       // of a node
  std::vector<std::uint8_t> goes_left_;  // by code
};

}  // namespace oldgrowth
