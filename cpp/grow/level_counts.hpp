// The levels of a categorical feature that occur in a node, and the statistics of their rows. Levels are numbered in
// the order in which the node's rows come upon them, so that nothing depends on their codes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "grow/criteria/node_stats.hpp"
#include "grow/split.hpp"

namespace oldgrowth {

template <class Code, NodeStats Stats>
class LevelCounts {
 public:
  using Key = Word<Code>;
  static constexpr unsigned kHalf = 8 * sizeof(Code);

  explicit LevelCounts(Stats& stats) : stats_(stats) {}

  // Maximum bytes, for nodes of up to this many rows.
  static std::size_t bytes(std::size_t rows, std::size_t classes, std::size_t levels) {
    const std::size_t most = std::min(rows, levels);
    const std::size_t bins = Stats::kClassification ? std::min(kBinsPerRow * rows, classes * most) : most;
    return levels * sizeof(std::uint32_t) + most * (sizeof(Code) + 2 * sizeof(std::uint32_t)) +
           rows * 3 * sizeof(std::uint32_t) + bins * sizeof(typename Stats::Bin);
  }

  void count(const Block<Code>& block, std::uint32_t feature, std::span<const Key> entries) {
    const std::size_t n = entries.size();
    const auto [column, stride] = block.column(feature);
    codes_.clear();
    rows_.clear();
    missing_.clear();
    const std::size_t per_level = stats_.bins_per_code();
    // A feature's codes lie between, but for the missing ones.
    const auto range = static_cast<std::size_t>(block.highest[feature] - block.lowest[feature]) + 1;
    binned_ = std::min(n, range) * per_level <= kBinsPerRow * n;
    if (binned_ && bins_.size() < std::min(n, range) * per_level) bins_.resize(std::min(n, range) * per_level);
    if (!binned_) of_row_.clear();
    for (std::size_t i = 0; i < n; ++i) {
      const Code code = column[static_cast<std::size_t>(entries[i] >> kHalf) * stride];
      const std::uint32_t payload = static_cast<std::uint32_t>(entries[i] & std::numeric_limits<Code>::max());
      if (code == kMissing<Code>) {
        missing_.push_back(payload);
        continue;
      }
      const std::uint32_t level = number_of(code, per_level);
      ++rows_[level];
      if (binned_) {
        stats_.fill(bins_.data() + level * per_level, payload);
      } else {
        of_row_.push_back({level, payload});
      }
    }
    for (const Code code : codes_) numbers_[code] = kNone;
    if (!binned_) group();
  }

  std::size_t size() const { return codes_.size(); }
  Code code(std::size_t level) const { return codes_[level]; }
  std::size_t rows(std::size_t level) const { return rows_[level]; }
  const std::vector<std::uint32_t>& missing() const { return missing_; }

  void move(std::size_t level) {
    if (binned_)
      stats_.move(bins_.data() + level * stats_.bins_per_code());
    else
      for (std::size_t i = begin_[level]; i < begin_[level + 1]; ++i) stats_.move(grouped_[i]);
  }

  // Calls visit(class, weight) for parts of a level's rows.
  template <class Visit>
  void visit_classes(std::size_t level, const Visit& visit) const {
    if (binned_) {
      const typename Stats::Bin* bins = bins_.data() + level * stats_.bins_per_code();
      for (const std::uint32_t k : stats_.present()) visit(k, Stats::weight_of_bin(bins[k]));
    } else {
      for (std::size_t i = begin_[level]; i < begin_[level + 1]; ++i)
        visit(stats_.class_of_row(grouped_[i]), stats_.weight_of_row(grouped_[i]));
    }
  }

  // Values have one bin for each level, which is never too many.
  double mean(std::size_t level) const { return Stats::mean_of_bin(bins_[level]); }

 private:
  static constexpr std::size_t kBinsPerRow = 4;
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  struct Row {
    std::uint32_t level, payload;
  };

  std::uint32_t number_of(Code code, std::size_t per_level) {
    if (code >= numbers_.size()) numbers_.resize(std::size_t{code} + 1, kNone);
    std::uint32_t& number = numbers_[code];
    if (number == kNone) {
      number = static_cast<std::uint32_t>(codes_.size());
      codes_.push_back(code);
      rows_.push_back(0);
      if (binned_) {
        std::memset(static_cast<void*>(bins_.data() + number * per_level), 0, per_level * sizeof(typename Stats::Bin));
      }
    }
    return number;
  }

  // The payloads of each level's rows together.
  void group() {
    begin_.assign(codes_.size() + 1, 0);
    for (std::size_t l = 0; l < codes_.size(); ++l) begin_[l + 1] = begin_[l] + rows_[l];
    grouped_.resize(of_row_.size());
    for (const Row& row : of_row_) grouped_[begin_[row.level]++] = row.payload;
    for (std::size_t l = codes_.size(); l > 0; --l) begin_[l] = begin_[l - 1];
    begin_[0] = 0;
  }

  Stats& stats_;
  std::vector<std::uint32_t> numbers_;  // by code
  std::vector<Code> codes_;
  std::vector<std::uint32_t> rows_, missing_;
  bool binned_ = true;
  std::vector<typename Stats::Bin> bins_;
  std::vector<Row> of_row_;
  std::vector<std::uint32_t> grouped_;
  std::vector<std::size_t> begin_;
};

}  // namespace oldgrowth
