// The search for one feature's best split of a node. Large nodes with few codes count into bins; others
// sort short words that carry code and payload together. Both visit the same boundaries in the same
// order, so which one is taken never changes the result.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "rank_codes.hpp"
#include "sort_keys.hpp"
#include "stats.hpp"

namespace oldgrowth {

template <class Code>
using Word = std::conditional_t<sizeof(Code) == 2, std::uint32_t, std::uint64_t>;

template <class Code>
struct Split {
  double score = -std::numeric_limits<double>::infinity();  // what the search maximises
  double decrease = 0;                                      // of the weighted impurity
  float threshold = 0;
  std::uint32_t feature = 0;
  Code last_left = 0;  // codes up to this one go left
  bool missing_left = false;
  bool perfect = false;  // no other feature can do better

  bool found() const { return score > -std::numeric_limits<double>::infinity(); }
};

struct SplitRules {
  std::size_t min_samples_leaf = 1;
  double balance = 0;         // lambda
  double impurity_scale = 1;  // divides the gain when it is weighed against balance
};

// The float32 just at or below the middle: for float32 rows it separates exactly as the middle does.
inline float middle(float low, float high) {
  const double mid = 0.5 * static_cast<double>(low) + 0.5 * static_cast<double>(high);
  auto rounded = static_cast<float>(mid);
  if (static_cast<double>(rounded) > mid) rounded = std::nextafterf(rounded, -std::numeric_limits<float>::infinity());
  return std::max(low, rounded);
}

template <class Code, class Stats>
class SplitSearch {
 public:
  using Key = Word<Code>;
  static constexpr unsigned kHalf = 8 * sizeof(Code);

  SplitSearch(Stats& stats, const SplitRules& rules) : stats_(stats), rules_(rules), short_sort_(short_sort()) {}

  // Improves `best` if the feature splits the node better. `unit` is a random number in [0, 1) for a
  // random threshold, negative for the best one. False when the feature is constant in the node.
  bool search(const Block<Code>& block, std::uint32_t feature, const Key* entries, std::size_t n, double unit,
              Split<Code>& best) {
    block_ = &block;
    feature_ = feature;
    best_ = &best;
    n_ = n;
    gather(entries);
    if (lowest_ > highest_ || (lowest_ == highest_ && n_missing_ == 0)) return false;
    const std::size_t present = n - n_missing_;
    if (lowest_ == highest_) {
      only_missing_against_rest(present);
      return true;
    }
    if (unit >= 0) {
      at_random(present, unit);
      return true;
    }
    const std::size_t bins = (static_cast<std::size_t>(highest_ - lowest_) + 1) * stats_.bins_per_code();
    if (bins <= kBinsPerRow * present)
      scan_bins(present, bins);
    else
      scan_sorted(present);
    if (n_missing_ > 0) only_missing_against_rest(present);
    return true;
  }

 private:
  // Clearing and visiting a bin costs about a quarter of sorting a key.
  static constexpr std::size_t kBinsPerRow = 4;

  static std::uint32_t payload(Key key) { return static_cast<std::uint32_t>(key & std::numeric_limits<Code>::max()); }
  static Code code(Key key) { return static_cast<Code>(key >> kHalf); }

  // Keys of the rows that have a value go to the front, those of missing ones to the back.
  void gather(const Key* entries) {
    if (keys_.size() < n_ + kShortSort + 8) {
      keys_.resize(2 * n_ + kShortSort + 8);
      other_.resize(2 * n_ + kShortSort + 8);
    }
    const Code* column = block_->codes.data() + feature_;
    const std::size_t stride = block_->features;
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
      missing_.assign(keys_.begin() + static_cast<std::ptrdiff_t>(present), keys_.begin() + static_cast<std::ptrdiff_t>(n_));
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
    const float* values = block_->values[feature_];
    take(score, last, middle(values[last], values[next]));
  }

  double allowed_score() {
    const std::size_t right = n_ - n_left_;
    if (n_left_ < rules_.min_samples_leaf || right < rules_.min_samples_leaf) return -std::numeric_limits<double>::infinity();
    score_ = stats_.score();
    if (rules_.balance == 0) return score_;
    const double apart = static_cast<double>(n_left_ > right ? n_left_ - right : right - n_left_);
    return (1 - rules_.balance) * stats_.decrease(score_) / (stats_.weight() * rules_.impurity_scale) -
           rules_.balance * apart / static_cast<double>(n_);
  }

  void take(double score, Code last, float threshold) {
    best_->score = score;
    best_->decrease = stats_.decrease(score_);
    best_->threshold = threshold;
    best_->feature = feature_;
    best_->last_left = last;
    // Without missing rows to learn from, a missing value follows the larger side, as in scikit-learn.
    best_->missing_left = n_missing_ > 0 ? missing_left_ : n_left_ > n_ - n_left_;
    best_->perfect = n_ == 2 || (rules_.balance == 0 && score_ >= stats_.highest_score());
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

  void scan_bins(std::size_t n, std::size_t n_bins) {
    const std::size_t per_code = stats_.bins_per_code();
    if (bins_.size() < n_bins) bins_.resize(n_bins);
    std::memset(static_cast<void*>(bins_.data()), 0, n_bins * sizeof(typename Stats::Bin));
    for (std::size_t i = 0; i < n; ++i)
      stats_.fill(bins_.data() + static_cast<std::size_t>(code(keys_[i]) - lowest_) * per_code, payload(keys_[i]));
    for (int side = 0; side <= (n_missing_ > 0); ++side) {
      start(side == 1);
      Code last = lowest_;
      for (std::size_t c = lowest_; c <= highest_; ++c) {
        const typename Stats::Bin* bin = bins_.data() + (c - lowest_) * per_code;
        const std::uint32_t rows = Stats::rows(bin, per_code);
        if (rows == 0) continue;
        if (c != lowest_) consider(last, static_cast<Code>(c));
        stats_.move(bin);
        n_left_ += rows;
        last = static_cast<Code>(c);
      }
    }
  }

  void at_random(std::size_t n, double unit) {
    const float* values = block_->values[feature_];
    const double low = values[lowest_], high = values[highest_];
    auto threshold = static_cast<float>(low + unit * (high - low));
    if (!(threshold < values[highest_])) threshold = values[lowest_];
    const float* above = std::upper_bound(values + lowest_, values + highest_ + 1, threshold);
    const auto last = static_cast<Code>(above - values - 1);
    for (int side = 0; side <= (n_missing_ > 0); ++side) {
      start(side == 1);
      for (std::size_t i = 0; i < n; ++i) {
        if (code(keys_[i]) > last) continue;
        stats_.move(payload(keys_[i]));
        ++n_left_;
      }
      const double score = allowed_score();
      if (score > best_->score) take(score, last, threshold);
    }
  }

  void only_missing_against_rest(std::size_t present) {
    start(false);
    for (std::size_t i = 0; i < present; ++i) stats_.move(payload(keys_[i]));
    n_left_ = present;
    const double score = allowed_score();
    if (score > best_->score) take(score, highest_, std::numeric_limits<float>::infinity());
  }

  Stats& stats_;
  SplitRules rules_;
  ShortSort short_sort_;
  const Block<Code>* block_ = nullptr;
  Split<Code>* best_ = nullptr;
  std::vector<Key> keys_, other_, missing_;
  std::vector<typename Stats::Bin> bins_;
  std::uint32_t feature_ = 0;
  std::size_t n_ = 0, n_missing_ = 0, n_left_ = 0;
  Code lowest_ = 0, highest_ = 0;
  bool missing_left_ = false;
  double score_ = 0;

 public:
  void set_balance(double balance) { rules_.balance = balance; }
};

}  // namespace oldgrowth
