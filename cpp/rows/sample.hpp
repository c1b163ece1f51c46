// A uniform sample of rows without replacement: each row has a random number of its own for each top tree, and
// the `size` smallest numbers win. Nothing has to be remembered to know in a pass which rows may be among them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "base/rng.hpp"

namespace oldgrowth {

// A number that the `size` smallest of n numbers are not above: eight standard deviations more than expected.
inline std::uint64_t sample_limit(std::size_t size, std::uint64_t n) {
  const auto wanted = static_cast<double>(size);
  const double share = (wanted + 8 * std::sqrt(wanted) + 64) / static_cast<double>(n);
  return share < 1 ? static_cast<std::uint64_t>(share * 0x1.0p63) * 2 : ~0ULL;
}

// The sample of n rows, ascending.
inline std::vector<std::uint32_t> draw_sample(std::size_t size, std::uint64_t seed, std::uint64_t top, std::size_t n) {
  std::vector<std::uint32_t> rows;
  if (size >= n) {
    rows.resize(n);
    std::iota(rows.begin(), rows.end(), 0U);
    return rows;
  }
  const std::uint64_t key = tree_key(seed, Purpose::top_sample, top);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> kept;
  for (std::uint64_t limit = sample_limit(size, n); kept.size() < size; limit = ~0ULL) {
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

// Those of the rows [first, first + n) that may be in a sample of any of the first n_tops top trees, ascending, if
// there are `of` rows or more.
inline std::vector<std::uint32_t> maybe_sampled(std::size_t size, std::uint64_t seed, std::size_t n_tops,
                                                std::uint64_t first, std::size_t n, std::uint64_t of) {
  std::vector<std::uint64_t> keys(n_tops);
  for (std::size_t top = 0; top < n_tops; ++top) keys[top] = tree_key(seed, Purpose::top_sample, top);
  const std::uint64_t limit = sample_limit(size, of);
  std::vector<std::uint32_t> rows;
  for (std::uint64_t row = first; row < first + n; ++row)
    if (std::any_of(keys.begin(), keys.end(), [&](std::uint64_t key) { return draw(key, row) <= limit; }))
      rows.push_back(static_cast<std::uint32_t>(row));
  return rows;
}

}  // namespace oldgrowth
