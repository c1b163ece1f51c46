// A uniform sample of rows without replacement: each row has a random number for each top tree, and the rows with the
// `size` smallest numbers are the sample. So a pass can find the candidates without keeping any state.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/rng.hpp"

namespace oldgrowth {

// A number that the `size` smallest of n random numbers do not exceed: eight standard deviations above the expected
// one.
inline std::uint64_t sample_limit(std::size_t size, std::uint64_t n) {
  const auto wanted = static_cast<double>(size);
  const double share = (wanted + 8 * std::sqrt(wanted) + 64) / static_cast<double>(n);
  return share < 1 ? static_cast<std::uint64_t>(share * 0x1.0p63) * 2 : ~0ULL;
}

// The rows with the `size` smallest numbers, ascending, or none if fewer rows have numbers up to `limit`.
// for_each(use) calls use(row) for each row, ascending.
template <class ForEach>
std::vector<std::uint64_t> smallest_numbers(std::size_t size, std::uint64_t key, std::uint64_t limit,
                                            const ForEach& for_each) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> kept;
  for_each([&](std::uint64_t row) {
    if (const std::uint64_t number = draw(key, row); number <= limit) kept.emplace_back(number, row);
  });
  std::vector<std::uint64_t> rows;
  if (size == 0 || kept.size() < size) return rows;
  auto sorted = kept;
  const auto last = sorted.begin() + static_cast<std::ptrdiff_t>(size) - 1;
  std::nth_element(sorted.begin(), last, sorted.end());
  for (const auto& pair : kept)
    if (pair <= *last) rows.push_back(pair.second);
  return rows;
}

// The sample of a top tree from n rows, ascending.
inline std::vector<std::uint64_t> draw_sample(std::size_t size, std::uint64_t seed, std::uint64_t top,
                                              std::uint64_t n) {
  std::vector<std::uint64_t> rows;
  if (size >= n) {
    rows.resize(n);
    std::iota(rows.begin(), rows.end(), 0U);
    return rows;
  }
  const auto all_rows = [n](const auto& use) {
    for (std::uint64_t row = 0; row < n; ++row) use(row);
  };
  const std::uint64_t key = tree_key(seed, Purpose::top_sample, top);
  rows = smallest_numbers(size, key, sample_limit(size, n), all_rows);
  return rows.size() == size ? rows : smallest_numbers(size, key, ~0ULL, all_rows);
}

// The same from candidates among n rows, ascending, as found by candidate_rows() for this size or a larger one.
inline std::vector<std::uint64_t> draw_from_candidates(std::size_t size, std::uint64_t seed, std::uint64_t top,
                                                       std::uint64_t n, std::span<const std::uint64_t> candidates) {
  const std::uint64_t key = tree_key(seed, Purpose::top_sample, top);
  const std::size_t rows = static_cast<std::size_t>(std::min<std::uint64_t>(size, n));
  const auto drawn = smallest_numbers(rows, key, sample_limit(size, n), [&](const auto& use) {
    for (const std::uint64_t row : candidates) use(row);
  });
  if (drawn.size() != rows) throw std::invalid_argument("too few candidate rows");
  return drawn;
}

// Those of the candidates, ascending, that may be in the sample of this top tree from n rows.
inline std::vector<std::uint64_t> candidates_of_top(std::size_t size, std::uint64_t seed, std::uint64_t top,
                                                    std::uint64_t n, std::span<const std::uint64_t> candidates) {
  const std::uint64_t key = tree_key(seed, Purpose::top_sample, top), limit = sample_limit(size, n);
  std::vector<std::uint64_t> rows;
  for (const std::uint64_t row : candidates)
    if (draw(key, row) <= limit) rows.push_back(row);
  return rows;
}

// Consecutive numbers of top trees.
struct TopNumbers {
  std::uint64_t first;
  std::size_t n;
};

// Those of the rows [first, first + n) that may be in the sample of any of these top trees, ascending, if there are at
// least `of` rows.
inline std::vector<std::uint64_t> candidate_rows(std::size_t size, std::uint64_t seed, TopNumbers tops,
                                                 std::uint64_t first, std::size_t n, std::uint64_t of) {
  std::vector<std::uint64_t> keys(tops.n);
  for (std::size_t i = 0; i < tops.n; ++i) keys[i] = tree_key(seed, Purpose::top_sample, tops.first + i);
  const std::uint64_t limit = sample_limit(size, of);
  std::vector<std::uint64_t> rows;
  for (std::uint64_t row = first; row < first + n; ++row)
    if (std::any_of(keys.begin(), keys.end(), [&](std::uint64_t key) { return draw(key, row) <= limit; }))
      rows.push_back(row);
  return rows;
}

}  // namespace oldgrowth
