// A uniform sample of rows without replacement, drawn in one pass over data of unknown length: each row
// has a random number of its own, and the k smallest numbers win. Chunks do not matter.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "rng.hpp"

namespace oldgrowth {

class TopSample {
 public:
  TopSample(std::size_t size, std::uint64_t seed, std::uint64_t top)
      : size_(size), key_(tree_key(seed, Purpose::top_sample, top)) {}

  void add(std::uint64_t first_row, std::size_t n) {
    for (std::uint64_t row = first_row; row < first_row + n; ++row) {
      const std::uint64_t number = draw(key_, row);
      if (number > highest_) continue;
      kept_.emplace_back(number, row);
      if (kept_.size() >= 2 * size_ + 1024) prune();
    }
  }

  std::vector<std::uint32_t> add_and_tell(std::uint64_t first_row, std::size_t n) {
    std::vector<std::uint32_t> told;
    const std::uint64_t highest = highest_;
    for (std::uint64_t row = first_row; row < first_row + n; ++row)
      if (draw(key_, row) <= highest) told.push_back(static_cast<std::uint32_t>(row));
    add(first_row, n);
    return told;
  }

  std::vector<std::uint32_t> rows() {
    prune();
    std::vector<std::uint32_t> rows(kept_.size());
    std::transform(kept_.begin(), kept_.end(), rows.begin(),
                   [](const auto& k) { return static_cast<std::uint32_t>(k.second); });
    std::sort(rows.begin(), rows.end());
    return rows;
  }

 private:
  void prune() {
    if (kept_.size() <= size_) return;
    std::nth_element(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(size_), kept_.end());
    highest_ = kept_[size_].first;
    kept_.resize(size_);
  }

  std::size_t size_;
  std::uint64_t key_;
  std::uint64_t highest_ = ~0ULL;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> kept_;
};

// The same sample of n rows at once: those above what its highest number will be, as far as chance goes, are
// not looked at twice.
inline std::vector<std::uint32_t> draw_sample(std::size_t size, std::uint64_t seed, std::uint64_t top, std::size_t n) {
  std::vector<std::uint32_t> rows;
  if (size >= n) {
    rows.resize(n);
    std::iota(rows.begin(), rows.end(), 0U);
    return rows;
  }
  const std::uint64_t key = tree_key(seed, Purpose::top_sample, top);
  const auto wanted = static_cast<double>(size);
  const double share = (wanted + 8 * std::sqrt(wanted) + 64) / static_cast<double>(n);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> kept;
  for (std::uint64_t limit = share < 1 ? static_cast<std::uint64_t>(share * 0x1.0p63) * 2 : ~0ULL; kept.size() < size;
       limit = ~0ULL) {
    kept.clear();
    for (std::uint64_t row = 0; row < n; ++row)
      if (const std::uint64_t number = draw(key, row); number <= limit) kept.emplace_back(number, row);
  }
  auto sorted = kept;
  const auto last = sorted.begin() + static_cast<std::ptrdiff_t>(size) - 1;
  std::nth_element(sorted.begin(), last, sorted.end());
  for (const auto& pair : kept)
    if (pair <= *last) rows.push_back(static_cast<std::uint32_t>(pair.second));
  return rows;
}

}  // namespace oldgrowth
