// The search for the best split of a node by one feature. Large nodes with few codes count into bins; others
// sort short words that combine code and payload. Both visit the same boundaries in the same
// order. With whole weights the scores are exact, so which one is taken does not change the result; sums of
// other weights and of values may round differently.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "grow/counted_search.hpp"
#include "grow/criteria/node_stats.hpp"
#include "grow/sort_keys.hpp"
#include "grow/split.hpp"
#include "grow/split_score.hpp"

namespace oldgrowth {

// In counting mode the entries of a node come ordered by class.
template <class Code, NodeStats Stats>
class SplitSearch {
 public:
  using Key = Word<Code>;
  static constexpr unsigned kHalf = 8 * sizeof(Code);

  SplitSearch(Stats& stats, const SplitRules& rules) : stats_(stats), rules_(rules), short_sort_(short_sort()) {}

  // Maximum bytes, for nodes of up to this many rows.
  static std::size_t bytes(std::size_t rows, std::size_t classes) {
    const std::size_t bins = Stats::kClassification ? std::min(kBinsPerRow, classes) : 1;
    const std::size_t plain = rows * (5 * sizeof(Key) + bins * sizeof(typename Stats::Bin));
    if constexpr (Stats::kCountedSearch && sizeof(Code) == 2)  // one way or the other
      return classes <= kVectorClasses ? std::max(plain, CountedSearch::bytes(rows, classes)) : plain;
    return plain;
  }

  void set_balance(double balance) { rules_.balance = balance; }

  // Improves `best` if the feature splits the node better. `unit` is a random number in [0, 1) for a
  // random threshold, negative for the best one. False when the feature is constant in the node.
  bool search(const Block<Code>& block, std::uint32_t feature, const Key* entries, std::size_t n, double unit,
              Split<Code>& best) {
    block_ = &block;
    feature_ = feature;
    best_ = &best;
    n_ = n;
    n_missing_ = 0;
    unit_ = unit;
    is_drawn_ = false;
    const std::size_t codes = static_cast<std::size_t>(block.highest[feature] - block.lowest[feature]) + 1;
    if (!block.has_missing[feature]) {
      if constexpr (Stats::kCountedSearch && sizeof(Code) == 2) {
        if (rules_.balance == 0 && rules_.min_weight_leaf == 0 && stats_.counted_node() != nullptr)
          return by_counts(entries);
      }
      if (codes * stats_.bins_per_code() <= kBinsPerRow * n) return from_column(entries, codes);
    }
    gather(entries);
    if (lowest_ > highest_ || (lowest_ == highest_ && n_missing_ == 0)) return false;
    const std::size_t present = n - n_missing_;
    if (lowest_ == highest_) {
      only_missing_against_rest(present);
      return true;
    }
    const std::size_t codes_here = static_cast<std::size_t>(highest_ - lowest_) + 1;
    if (at_random())
      sides_of_threshold(present);
    else if (codes_here * stats_.bins_per_code() <= kBinsPerRow * present)
      from_keys(present, codes_here);
    else
      scan_sorted(present);
    if (n_missing_ > 0) only_missing_against_rest(present);
    return true;
  }

 private:
  // Clearing and visiting a bin costs about a quarter of sorting a key.
  static constexpr std::size_t kBinsPerRow = 4;
  static constexpr std::size_t kShortBins = 256;

  static std::uint32_t payload(Key key) { return static_cast<std::uint32_t>(key & std::numeric_limits<Code>::max()); }
  static Code code(Key key) { return static_cast<Code>(key >> kHalf); }

  // Keys of the rows that have a value go to the front, those of missing ones to the back.
  void gather(const Key* entries) {
    if (keys_.size() < n_ + kShortSort) {
      keys_.resize(2 * n_ + kShortSort);
      other_.resize(2 * n_ + kShortSort);
    }
    const auto [column, stride] = block_->column(feature_);
    constexpr Key kPayload = std::numeric_limits<Code>::max();
    Code lowest = kMissing<Code>, highest = 0;
    n_missing_ = 0;
    if (!block_->has_missing[feature_]) {
      for (std::size_t i = 0; i < n_; ++i) {
        const Code c = column[static_cast<std::size_t>(entries[i] >> kHalf) * stride];
        keys_[i] = (static_cast<Key>(c) << kHalf) | (entries[i] & kPayload);
        lowest = std::min(lowest, c);
        highest = std::max(highest, c);
      }
    } else {
      std::size_t present = 0;
      for (std::size_t i = 0; i < n_; ++i) {
        const Code c = column[static_cast<std::size_t>(entries[i] >> kHalf) * stride];
        const Key key = (static_cast<Key>(c) << kHalf) | (entries[i] & kPayload);
        if (c == kMissing<Code>) {
          keys_[n_ - ++n_missing_] = key;
          continue;
        }
        keys_[present++] = key;
        lowest = std::min(lowest, c);
        highest = std::max(highest, c);
      }
      missing_.assign(keys_.begin() + static_cast<std::ptrdiff_t>(present),
                      keys_.begin() + static_cast<std::ptrdiff_t>(n_));
    }
    lowest_ = lowest;
    highest_ = highest;
  }

  void start(bool missing_left) {
    stats_.all_right();
    missing_left_ = missing_left;
    n_left_ = 0;
    if (!missing_left) return;
    for (const Key key : missing_) stats_.move(payload(key));
    n_left_ = n_missing_;
  }

  // The rows moved so far against the others: codes up to `last` left, from `next` on right.
  void consider(Code last, Code next) {
    const double score = allowed_score();
    if (!(score > best_->score)) return;
    take(score, last, next);
  }

  double allowed_score() { return oldgrowth::allowed_score(stats_, rules_, {n_, n_left_}, best_->score, score_); }

  void take(double score, Code last, Code next, float drawn, double left_weight) {
    best_->score = score;
    best_->decrease = stats_.decrease(score_);
    best_->feature = feature_;
    best_->last_left = last;
    best_->first_right = next;
    best_->drawn = drawn;
    __builtin_prefetch(block_->values[feature_] + last);  // for the threshold, if this remains the best
    // Without missing rows to learn from, a missing value follows the heavier side.
    best_->missing_left = n_missing_ > 0 ? missing_left_ : 2 * left_weight > stats_.weight();
    best_->perfect = n_ == 2 || (rules_.balance == 0 && score_ >= stats_.highest_score());
  }
  void take(double score, Code last, Code next) {
    if (at_random())
      take(score, static_cast<Code>(drawn_.last), next, drawn_.threshold, stats_.left_weight());
    else
      take(score, last, next, std::numeric_limits<float>::quiet_NaN(), stats_.left_weight());
  }

  void scan_sorted(std::size_t n) {
    const Key* keys = sort(n);
    for (int side = 0; side <= (n_missing_ > 0); ++side) {
      start(side == 1);
      for (std::size_t i = 0; i + 1 < n; ++i) {
        stats_.move(payload(keys[i]));
        ++n_left_;
        if (code(keys[i]) != code(keys[i + 1])) consider(code(keys[i]), code(keys[i + 1]));
      }
    }
  }

  bool by_counts(const Key* entries) {
    const CountedSearch::Wanted wanted{rules_.min_samples_leaf, best_->score, unit_};
    const CountedSearch::Found found = counted_.search(*block_, feature_, entries, n_, *stats_.counted_node(), wanted);
    if (found.better) {
      score_ = found.score;
      take(found.score, found.last, found.next, found.drawn, found.weight_left);
    }
    return found.varies;
  }

  // Bins straight from the codes in the block. False when only one code occurs.
  bool from_column(const Key* entries, std::size_t codes) {
    const auto [column, stride] = block_->column(feature_);
    const Code lowest = block_->lowest[feature_];
    const auto code_of = [&, column = column, stride = stride](std::size_t i) {
      return static_cast<std::size_t>(column[static_cast<std::size_t>(entries[i] >> kHalf) * stride] - lowest);
    };
    lowest_ = lowest;
    highest_ = block_->highest[feature_];
    return count_and_scan(n_, codes, code_of, [&](std::size_t i) { return payload(entries[i]); });
  }

  void from_keys(std::size_t n, std::size_t codes) {
    count_and_scan(
        n, codes, [&](std::size_t i) { return static_cast<std::size_t>(code(keys_[i]) - lowest_); },
        [&](std::size_t i) { return payload(keys_[i]); });
  }

  template <class CodeOf, class PayloadOf>
  bool count_and_scan(std::size_t n, std::size_t codes, const CodeOf& code_of, const PayloadOf& payload_of) {
    const std::size_t per_code = stats_.bins_per_code();
    count(
        bins_, n, codes * per_code,
        [&](typename Stats::Bin* bins, std::size_t i) { stats_.fill(bins + code_of(i) * per_code, payload_of(i)); },
        Stats::merge);
    return scan_bins(codes);
  }

  // Counts into several copies of a short array in turn: adding to the same place twice in succession is slow.
  template <class Bin, class Add, class Merge>
  static void count(std::vector<Bin>& bins, std::size_t n, std::size_t n_bins, const Add& add, const Merge& merge) {
    const std::size_t copies = n_bins <= kShortBins ? 4 : 1;
    if (bins.size() < n_bins * copies) bins.resize(n_bins * copies);
    std::memset(static_cast<void*>(bins.data()), 0, n_bins * copies * sizeof(Bin));
    for (std::size_t i = 0; i < n; ++i) add(bins.data() + (i & (copies - 1)) * n_bins, i);
    for (std::size_t c = 1; c < copies; ++c)
      for (std::size_t b = 0; b < n_bins; ++b) merge(bins[b], bins[c * n_bins + b]);
  }

  const Key* sort(std::size_t n) {
    if constexpr (sizeof(Code) == 2) {
      if (n <= kShortSort) {
        short_sort_(keys_.data(), n, other_.data());
        return other_.data();
      }
    }
    const auto differing = static_cast<Code>(highest_ ^ lowest_);
    return radix_sort(keys_.data(), other_.data(), n, kHalf, static_cast<unsigned>(std::bit_width(differing)));
  }

  bool scan_bins(std::size_t codes) {
    const std::size_t per_code = stats_.bins_per_code();
    bool varies = false;
    if (at_random() && !is_drawn_) draw_threshold_from_bins(codes);
    for (int side = 0; side <= (n_missing_ > 0); ++side) {
      start(side == 1);
      std::size_t last = codes;  // none yet
      for (std::size_t c = 0; c < codes; ++c) {
        const typename Stats::Bin* bin = bins_.data() + c * per_code;
        const std::uint32_t rows = Stats::rows(bin, per_code);
        if (rows == 0) continue;
        if (last != codes) {
          varies = true;
          if (wanted(lowest_ + last, lowest_ + c))
            consider(static_cast<Code>(lowest_ + last), static_cast<Code>(lowest_ + c));
        }
        stats_.move(bin);
        n_left_ += rows;
        last = c;
      }
    }
    return varies;
  }

  bool at_random() const { return unit_ >= 0; }

  // A random threshold between the lowest and the highest value here.
  void draw_threshold(std::size_t lowest, std::size_t highest) {
    drawn_ = oldgrowth::draw_threshold(block_->values[feature_], lowest, highest, unit_);
    is_drawn_ = true;
  }

  void draw_threshold_from_bins(std::size_t codes) {
    const std::size_t per_code = stats_.bins_per_code();
    std::size_t lowest = 0, highest = codes - 1;
    while (Stats::rows(bins_.data() + lowest * per_code, per_code) == 0) ++lowest;
    while (Stats::rows(bins_.data() + highest * per_code, per_code) == 0) --highest;
    draw_threshold(lowest_ + lowest, lowest_ + highest);
  }

  // With a random threshold there are just two bins: left and right of it.
  void sides_of_threshold(std::size_t n) {
    draw_threshold(lowest_, highest_);
    const auto last = static_cast<Code>(drawn_.last);
    lowest_ = last;
    if constexpr (Stats::kClassification) {
      if (2 * stats_.bins_per_code() > kBinsPerRow * n) {
        sides_from_rows(n, last);
        return;
      }
    }
    count_and_scan(
        n, 2, [&](std::size_t i) { return static_cast<std::size_t>(code(keys_[i]) > last); },
        [&](std::size_t i) { return payload(keys_[i]); });
  }

  void sides_from_rows(std::size_t n, Code last) {
    const auto end = keys_.begin() + static_cast<std::ptrdiff_t>(n);
    const auto is_left = [&](const Key key) { return code(key) <= last; };
    const auto rows = static_cast<std::uint32_t>(std::count_if(keys_.begin(), end, is_left));
    if (rows == 0 || rows == n || !wanted(last, last + std::size_t{1})) return;
    for (int side = 0; side <= (n_missing_ > 0); ++side) {
      start(side == 1);
      for (std::size_t i = 0; i < n; ++i)
        if (is_left(keys_[i])) stats_.add_left(payload(keys_[i]));
      stats_.sum_left();
      n_left_ += rows;
      consider(last, static_cast<Code>(last + 1));
    }
  }

  // Whether the boundary between two codes is to be scored: any, or the one at the random threshold.
  bool wanted(std::size_t last, std::size_t next) const {
    return !at_random() || (last <= drawn_.last && next > drawn_.last);
  }

  void only_missing_against_rest(std::size_t present) {
    start(false);
    for (std::size_t i = 0; i < present; ++i) stats_.move(payload(keys_[i]));
    n_left_ = present;
    const double score = allowed_score();
    if (score > best_->score)
      take(score, highest_, highest_, std::numeric_limits<float>::infinity(), stats_.left_weight());
  }

  Stats& stats_;
  SplitRules rules_;
  ShortSort short_sort_;
  CountedSearch counted_;
  const Block<Code>* block_ = nullptr;
  Split<Code>* best_ = nullptr;
  std::vector<Key> keys_, other_, missing_;
  std::vector<typename Stats::Bin> bins_;
  std::uint32_t feature_ = 0;
  std::size_t n_ = 0, n_missing_ = 0, n_left_ = 0;
  Code lowest_ = 0, highest_ = 0;
  bool missing_left_ = false;
  double score_ = 0;
  double unit_ = -1;
  Drawn drawn_{};
  bool is_drawn_ = false;
};

}  // namespace oldgrowth
