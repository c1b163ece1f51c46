// Sorting the keys of a node: unsigned words with a code in the upper half and a payload in the lower.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace oldgrowth {

// Up to this many 32-bit keys are sorted by comparing whole vectors, without a branch that depends on them.
inline constexpr std::size_t kShortSort = 256;

// Sorts n <= kShortSort keys from `in` to `out`. Both must have room for kShortSort keys; what follows the
// first n is overwritten.
using ShortSort = void (*)(std::uint32_t* in, std::size_t n, std::uint32_t* out);
ShortSort short_sort();           // the best for this machine
ShortSort short_sort_baseline();  // for any machine: the reference in tests

// Stable least-significant-digit radix sort by the bits [low, low + bits) of each word. Uses `other`
// as scratch; returns whichever of the two holds the result.
template <class Word>
Word* radix_sort(Word* words, Word* other, std::size_t n, unsigned low, unsigned bits) {
  constexpr unsigned kMaxDigit = 11;
  const unsigned limit = n < 1024 ? 8 : kMaxDigit;  // short arrays: clearing the counters would dominate
  const unsigned passes = (bits + limit - 1) / limit;
  if (passes == 0) return words;
  const unsigned digit = (bits + passes - 1) / passes;
  for (unsigned pass = 0; pass < passes; ++pass) {
    const unsigned shift = low + pass * digit;
    const std::uint32_t mask = (1U << std::min(digit, low + bits - shift)) - 1;
    std::array<std::uint32_t, 1U << kMaxDigit> start;
    std::memset(start.data(), 0, (mask + 1) * sizeof(std::uint32_t));
    for (std::size_t i = 0; i < n; ++i) ++start[(words[i] >> shift) & mask];
    std::uint32_t sum = 0;
    for (std::uint32_t d = 0; d <= mask; ++d) sum += std::exchange(start[d], sum);
    for (std::size_t i = 0; i < n; ++i) other[start[(words[i] >> shift) & mask]++] = words[i];
    std::swap(words, other);
  }
  return words;
}

}  // namespace oldgrowth
