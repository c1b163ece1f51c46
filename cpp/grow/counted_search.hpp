// The best split of a node by one feature, for Gini with whole weights and without missing values: see counted.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "grow/counted.hpp"
#include "grow/sort_keys.hpp"
#include "grow/split.hpp"
#include "grow/targets.hpp"

namespace oldgrowth {

class CountedSearch {
 public:
  using Code = std::uint16_t;
  using Key = std::uint32_t;

  explicit CountedSearch(const CountedKernels& kernels = counted_kernels()) : kernels_(kernels) {}

  // A split that scores higher than `score`, if there is one: codes up to `last` left, from `next` on right.
  struct Found {
    bool varies = false;
    bool better = false;
    double score = 0;
    Code last = 0, next = 0;
    std::int32_t weight_left = 0;
    float drawn = std::numeric_limits<float>::quiet_NaN();
  };

  // What a split needs: rows on each side, and a higher score. `unit` in [0, 1) asks for a random threshold, a
  // negative one for the best.
  struct Wanted {
    std::size_t min_leaf;
    double score;
    double unit;
  };

  Found search(const Block<Code>& block, std::uint32_t feature, const Key* entries, std::size_t n,
               const CountedNode& node, const Wanted& wanted) {
    node_ = &node;
    n_ = n;
    min_leaf_ = wanted.min_leaf;
    score_ = wanted.score;
    const double unit = wanted.unit;
    const auto [column, stride] = block.column(feature);
    lowest_ = block.lowest[feature];
    highest_ = block.highest[feature];
    if (unit >= 0 || codes() == 2) return two_sides(entries, column, stride, block.values[feature], unit);
    if (worth_bins())
      return from_bins(
          [entries, column = column, stride = stride, lowest = lowest_](std::size_t i) {
            return column[static_cast<std::size_t>(entries[i] >> 16) * stride] - lowest;
          },
          entries);
    gather(entries, column, stride);
    if (lowest_ == highest_) return {};
    if (worth_bins())
      return from_bins([keys = keys_.data(), lowest = lowest_](std::size_t i) { return (keys[i] >> 16) - lowest; },
                       keys_.data());
    if (n <= kShortSort || kernels_.find_promising == nullptr) return from_sorted();
    return from_promising();
  }

  // Maximum bytes, for nodes of up to this many rows: keys twice, their codes, four copies of the bins if there are at
  // most a quarter as many as rows, and running sums of the bins.
  static std::size_t bytes(std::size_t rows, std::size_t classes) {
    const std::size_t bins = rows * std::min<std::size_t>(classes, kVectorClasses);
    return rows * (4 * sizeof(Key) + 2 * sizeof(Code)) + bins * (sizeof(std::uint32_t) + sizeof(std::uint32_t));
  }

 private:
  static constexpr std::size_t kBinsPerRow = 4;
  static constexpr std::size_t kRowsPerCell = 8;
  // Codes that are not worth bins are then more than there are cells, so cells hold whole numbers of them.
  static_assert(kBinsPerRow * kRowsPerCell >= kVectorClasses);

  std::size_t codes() const { return static_cast<std::size_t>(highest_ - lowest_) + 1; }
  bool worth_bins() const { return codes() * node_->n_classes <= kBinsPerRow * n_; }

  // A random threshold, or just two codes: one pass for each class finds what lies right of it.
  Found two_sides(const Key* entries, const Code* column, std::size_t stride, const float* values, double unit) {
    if (codes_.size() < n_) codes_.resize(2 * n_);
    Code* codes = codes_.data();  // contiguous, so that the following loops vectorize
    for (std::size_t i = 0; i < n_; ++i) codes[i] = column[static_cast<std::size_t>(entries[i] >> 16) * stride];
    Found found;
    std::size_t last = lowest_;
    if (unit >= 0) {
      const CodeRange range = kernels_.find_range(codes, n_);
      if (range.lowest == range.highest) return {};
      const Drawn drawn = draw_threshold(values, range.lowest, range.highest, unit);
      last = drawn.last;
      found.drawn = drawn.threshold;
    }
    const bool unit_weights = static_cast<std::size_t>(node_->weight) == n_;
    std::array<std::int32_t, kVectorClasses> left;
    std::size_t n_right = 0;
    for (std::size_t s = 0, i = 0; s < node_->n_classes; i += node_->rows[s++]) {
      const std::uint32_t above = kernels_.count_above(codes + i, unit_weights ? nullptr : entries + i, node_->rows[s],
                                                       static_cast<Code>(last));
      left[s] = node_->totals[s] - static_cast<std::int32_t>(above & 0xffff);
      n_right += above >> 16;
    }
    found.varies = n_right > 0 && n_right < n_;
    if (!found.varies || n_right < min_leaf_ || n_ - n_right < min_leaf_) return found;
    for (std::size_t s = 0; s < node_->n_classes; ++s) found.weight_left += left[s];
    found.score = node_->score(left.data());
    found.better = found.score > score_;
    found.last = static_cast<Code>(last);
    found.next = highest_;
    return found;
  }

  void gather(const Key* entries, const Code* column, std::size_t stride) {
    if (keys_.size() < n_ + kShortSort) {
      keys_.resize(2 * n_ + kShortSort);
      other_.resize(2 * n_ + kShortSort);
    }
    Code lowest = kMissing<Code>, highest = 0;
    Key* keys = keys_.data();
    for (std::size_t i = 0; i < n_; ++i) {
      const Code code = column[static_cast<std::size_t>(entries[i] >> 16) * stride];
      keys[i] = static_cast<Key>(code) << 16 | (entries[i] & 0xffff);
      lowest = std::min(lowest, code);
      highest = std::max(highest, code);
    }
    lowest_ = lowest;
    highest_ = highest;
  }

  // Rows and weights by bin and class. The rows come ordered by class, so each class has its loop. Short arrays
  // are counted into several copies in turn: adding to the same place twice in succession is slow.
  template <class BinOf>
  CountedBins count(std::size_t n_bins, const BinOf& bin_of, const Key* payloads) {
    const std::size_t stride = (n_bins + 7) / 8 * 8, all = stride * node_->n_classes;
    const std::size_t copies = n_bins * 4 <= n_ ? 4 : 1;
    if (bins_.size() < copies * all) bins_.resize(copies * all);
    std::memset(bins_.data(), 0, copies * all * sizeof(std::uint32_t));
    const auto add = [&](std::uint32_t* bins, std::size_t i) {
      bins[bin_of(i)] += 1U << 16 | (payloads[i] & kWeightMask);
    };
    for (std::size_t s = 0, i = 0; s < node_->n_classes; ++s) {
      std::uint32_t* bins = bins_.data() + s * stride;
      const std::size_t end = i + node_->rows[s];
      if (copies == 4)
        for (; i + 4 <= end; i += 4)
          for (std::size_t c = 0; c < 4; ++c) add(bins + c * all, i + c);
      for (; i < end; ++i) add(bins, i);
    }
    for (std::size_t c = 1; c < copies; ++c)
      for (std::size_t b = 0; b < all; ++b) bins_[b] += bins_[c * all + b];
    return {bins_.data(), stride, n_bins};
  }

  bool empty(const CountedBins& bins, std::size_t c) const {
    std::uint32_t here = 0;
    for (std::size_t s = 0; s < node_->n_classes; ++s) here |= bins.bins[s * bins.stride + c];
    return here == 0;
  }

  template <class BinOf>
  Found from_bins(const BinOf& bin_of, const Key* payloads) {
    const CountedBins bins = count(codes(), bin_of, payloads);
    const CountedBest best = kernels_.scan_bins(bins, *node_, min_leaf_, score_, scratch_);
    if (!best.found) return {varies_in(bins)};
    std::size_t next = best.last_left + 1;
    while (empty(bins, next)) ++next;
    return {true,
            true,
            best.score,
            static_cast<Code>(lowest_ + best.last_left),
            static_cast<Code>(lowest_ + next),
            best.weight_left};
  }

  bool varies_in(const CountedBins& bins) const {
    std::size_t first = 0, last = bins.n_bins - 1;
    while (empty(bins, first)) ++first;
    while (empty(bins, last)) --last;
    return first < last;
  }

  const Key* sort(Key* keys, std::size_t n) {
    if (n <= kShortSort) {
      short_sort_(keys, n, other_.data());
      return other_.data();
    }
    return radix_sort(keys, other_.data(), n, 16, static_cast<unsigned>(std::bit_width(Code(highest_ ^ lowest_))));
  }

  Found from_sorted() {
    const Key* keys = sort(keys_.data(), n_);
    const CountedBest best = kernels_.scan_keys(keys, n_, *node_, min_leaf_, score_, scratch_);
    if (!best.found) return {true};
    return {true,
            true,
            best.score,
            static_cast<Code>(keys[best.last_left] >> 16),
            static_cast<Code>(keys[best.last_left + 1] >> 16),
            best.weight_left};
  }

  // Neighbouring codes are counted together; only the rows where the best split may lie are sorted.
  Found from_promising() {
    const auto shift =
        static_cast<unsigned>(std::bit_width(codes() - 1)) - static_cast<unsigned>(std::bit_width(n_ / kRowsPerCell));
    const auto cell_of = [shift, lowest = lowest_](Key key) { return ((key >> 16) - lowest) >> shift; };
    Key* keys = keys_.data();
    const CountedBins cells =
        count(((codes() - 1) >> shift) + 1, [&](std::size_t i) { return cell_of(keys[i]); }, keys);
    const std::size_t rows = kernels_.find_promising(cells, *node_, min_leaf_, score_, scratch_);
    if (rows == 0) return {true};
    std::size_t kept = 0;
    for (std::size_t i = 0; i < n_; ++i) {
      keys[kept] = keys[i];
      kept += scratch_.promising[cell_of(keys[i])];
    }
    return scan_promising(sort(keys, kept), kept, cell_of);
  }

  // A boundary beside rows that were left out cannot be the best: their cell would have been promising.
  template <class CellOf>
  Found scan_promising(const Key* keys, std::size_t n, const CellOf& cell_of) const {
    Found found{true};
    found.score = score_;
    std::array<std::int32_t, kVectorClasses> left{};
    std::size_t rows = 0, cell = std::numeric_limits<std::size_t>::max();
    for (std::size_t i = 0; i + 1 < n; ++i) {
      if (const std::size_t here = cell_of(keys[i]); here != cell) {
        cell = here;
        rows = 0;
        for (std::size_t s = 0; s < node_->n_classes; ++s) {
          const std::uint32_t before = scratch_.before(s, cell);
          left[s] = static_cast<std::int32_t>(before & 0xffff);
          rows += before >> 16;
        }
      }
      ++rows;
      left[slot_of((keys[i] & 0xffff) >> kWeightBits)] += static_cast<std::int32_t>(keys[i] & kWeightMask);
      if (keys[i] >> 16 == keys[i + 1] >> 16 || rows < min_leaf_ || rows + min_leaf_ > n_) continue;
      const double score = node_->score(left.data());
      if (score > found.score)
        found = {true,
                 true,
                 score,
                 static_cast<Code>(keys[i] >> 16),
                 static_cast<Code>(keys[i + 1] >> 16),
                 std::accumulate(left.begin(), left.end(), 0)};
    }
    return found;
  }

  std::size_t slot_of(std::uint32_t k) const {
    std::size_t slot = 0;
    while (node_->classes[slot] != k) ++slot;
    return slot;
  }

  const CountedKernels& kernels_;
  ShortSort short_sort_ = short_sort();
  const CountedNode* node_ = nullptr;
  std::size_t n_ = 0, min_leaf_ = 1;
  double score_ = 0;
  Code lowest_ = 0, highest_ = 0;
  std::vector<Key> keys_, other_;
  std::vector<Code> codes_;
  std::vector<std::uint32_t> bins_;
  CountedScratch scratch_;
};

}  // namespace oldgrowth
