// The rows of a node as words of place and payload: which take part, and which go left.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "grow/bucket.hpp"
#include "grow/split.hpp"
#include "grow/targets.hpp"

namespace oldgrowth {

// The rows that take part, as words of place and payload. In counting mode they are ordered by class, and
// every split keeps that, since it keeps the order of the rows on each side.
template <class Stats, class Code>
std::vector<Word<Code>> entries_of(const Bucket& bucket, const std::vector<double>& row_weights,
                                   std::uint32_t n_classes) {
  constexpr unsigned kHalf = 8 * sizeof(Code);
  std::vector<Word<Code>> entries(bucket.rows);
  std::vector<std::size_t> next(Stats::kCounts ? n_classes + 1 : 1);
  if constexpr (Stats::kCounts) {
    for (std::size_t i = 0; i < bucket.rows; ++i) next[bucket.classes[i] + 1] += row_weights[i] > 0;
    for (std::uint32_t k = 0; k < n_classes; ++k) next[k + 1] += next[k];
  }
  std::size_t n = 0;
  for (std::size_t i = 0; i < bucket.rows; ++i) {
    if (!(row_weights[i] > 0)) continue;
    std::size_t at = n++;
    std::uint32_t payload = static_cast<std::uint32_t>(i);
    if constexpr (Stats::kCounts) {
      at = next[bucket.classes[i]]++;
      payload = (bucket.classes[i] << kWeightBits) | static_cast<std::uint32_t>(row_weights[i]);
    }
    entries[at] = (static_cast<Word<Code>>(i) << kHalf) | payload;
  }
  entries.resize(n);
  return entries;
}

// Which codes go left of a threshold. Codes wrap around so that one comparison also sends missing values (the highest
// code) left.
template <class Code>
auto below_split(const Split<Code>& split) {
  const Code wrap = split.missing_left ? 1 : 0;
  const auto limit = static_cast<Code>(split.last_left + wrap);
  return [=](Code code) { return static_cast<Code>(code + wrap) <= limit; };
}

// Brings the rows whose code in a column goes left to the front, in their order on each side; returns their number.
template <class Code, class GoesLeft>
std::size_t partition(std::span<Word<Code>> entries, std::vector<Word<Code>>& aside,
                      std::pair<const Code*, std::size_t> column, const GoesLeft& goes_left) {
  constexpr unsigned kHalf = 8 * sizeof(Code);
  const auto [codes, stride] = column;
  if (aside.size() < entries.size()) aside.resize(entries.size());
  std::size_t left = 0, right = 0;
  for (const Word<Code> entry : entries) {
    const bool is_left = goes_left(codes[static_cast<std::size_t>(entry >> kHalf) * stride]);
    entries[left] = entry;
    aside[right] = entry;
    left += is_left;
    right += !is_left;
  }
  std::copy_n(aside.data(), right, entries.data() + left);
  return left;
}

}  // namespace oldgrowth
