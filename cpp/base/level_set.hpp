// Sets of levels: which way the levels of a categorical feature go in a node.
//
// A feature is categorical if it has levels; its values are their codes 0, 1, .... In a node, the 32 bits of the
// threshold are a set of levels for a feature of up to 32 levels; for others, the place of a set among 16-bit words
// beside the nodes of the tree, in the shorter of two forms:
//
//   bitmap   number of words | first word | words        bit l % 16 of word l / 16 - first is level l
//   list     0x8000 + number of levels | levels          ascending
//
// The levels of the set go to the other side than missing values; all others go where missing values go.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/node.hpp"

namespace oldgrowth {

inline constexpr std::uint32_t kInlineLevels = 32;  // that fit a node
inline constexpr std::uint32_t kMaxLevels = 65534;  // of a feature
inline constexpr std::uint16_t kLevelList = 0x8000;

// The levels of all features, and the sets of a tree. Without categorical features there are no levels.
struct Categories {
  std::span<const std::uint32_t> levels{};  // per feature: how many, 0 if it is not categorical
  std::span<const std::uint16_t> words{};

  bool any() const { return !levels.empty(); }
  bool has(std::uint32_t feature) const { return any() && levels[feature] > 0; }
};

inline constexpr std::uint32_t kNoLevel = ~0U;

// The level that a value is the code of; kNoLevel for missing values and for what is no code.
inline std::uint32_t level_of(float x, std::uint32_t levels) {
  return x >= 0 && x < static_cast<float>(levels) ? static_cast<std::uint32_t>(x) : kNoLevel;
}

// Whether a level is in the set at a place of the words. Whatever they contain, nothing outside of them is read.
inline bool in_words(std::span<const std::uint16_t> words, std::size_t at, std::uint32_t level) {
  if (at + 1 >= words.size()) return false;
  const std::uint16_t head = words[at];
  if ((head & kLevelList) != 0) {
    const std::size_t n = std::min<std::size_t>(head & (kLevelList - 1), words.size() - at - 1);
    const auto list = words.subspan(at + 1, n);
    return std::binary_search(list.begin(), list.end(), level);
  }
  const std::size_t word = (level >> 4) - std::size_t{words[at + 1]};
  return word < head && at + 2 + word < words.size() && ((words[at + 2 + word] >> (level & 15)) & 1) != 0;
}

constexpr std::uint32_t set_bits(Node node) { return static_cast<std::uint32_t>(node); }

// The direction of a value of a feature in a node with a set.
inline bool goes_left(const Categories& categories, std::uint32_t feature, Node node, bool missing_left, float x) {
  const std::uint32_t levels = categories.levels[feature], level = level_of(x, levels);
  bool in_set = false;
  if (level != kNoLevel)
    in_set = levels <= kInlineLevels ? ((set_bits(node) >> level) & 1) != 0
                                     : in_words(categories.words, set_bits(node), level);
  return in_set != missing_left;
}

// Calls visit(level) for the levels of a set. Whatever the words contain, nothing outside of them is read.
template <class Visit>
void visit_set(const Categories& categories, std::uint32_t set, std::uint32_t levels, const Visit& visit) {
  const auto known = [&](std::size_t level) {
    if (level < levels) visit(level);
  };
  if (levels <= kInlineLevels) {
    for (std::uint32_t level = 0; level < levels; ++level)
      if (((set >> level) & 1) != 0) known(level);
    return;
  }
  const auto words = categories.words;
  if (std::size_t{set} + 1 >= words.size()) return;
  const auto rest = words.subspan(std::size_t{set} + 1);
  const std::uint16_t head = words[set];
  const std::size_t n = head & (kLevelList - 1);
  if ((head & kLevelList) != 0) {
    for (const std::uint16_t level : rest.first(std::min(n, rest.size()))) known(level);
    return;
  }
  const auto bitmap = rest.subspan(1, std::min(n, rest.size() - 1));
  for (std::size_t w = 0; w < bitmap.size(); ++w)
    for (std::uint32_t left = bitmap[w]; left != 0; left &= left - 1)
      known(16 * (rest[0] + w) + static_cast<std::size_t>(std::countr_zero(left)));
}

// Appends a set of ascending levels to the words, if it does not fit a node; returns the node's 32 bits.
inline std::uint32_t store_set(std::span<const std::uint32_t> set, std::uint32_t levels,
                               std::vector<std::uint16_t>& words) {
  if (levels <= kInlineLevels) {
    std::uint32_t bits = 0;
    for (const std::uint32_t level : set) bits |= 1U << level;
    return bits;
  }
  const auto at = static_cast<std::uint32_t>(words.size());
  if (set.empty()) {
    words.insert(words.end(), {1, 0, 0});
    return at;
  }
  const std::uint32_t first = set.front() >> 4, n = (set.back() >> 4) - first + 1;
  if (set.size() < n + 1) {
    words.push_back(static_cast<std::uint16_t>(kLevelList | set.size()));
    words.insert(words.end(), set.begin(), set.end());
    return at;
  }
  words.push_back(static_cast<std::uint16_t>(n));
  words.push_back(static_cast<std::uint16_t>(first));
  words.resize(words.size() + n);
  for (const std::uint32_t level : set)
    words[at + 2 + (level >> 4) - first] |= static_cast<std::uint16_t>(1U << (level & 15));
  return at;
}

// Whether the set of a node is whole and names only levels of its feature.
inline bool set_ok(const Categories& categories, const NodeFormat& format, Node node) {
  const std::uint32_t levels = categories.levels[format.feature(node)], bits = set_bits(node);
  if (levels <= kInlineLevels) return levels == kInlineLevels || bits >> levels == 0;
  const auto words = categories.words;
  if (bits >= words.size()) return false;
  const auto rest = words.subspan(std::size_t{bits} + 1);
  const std::size_t n = words[bits] & (kLevelList - 1);
  if (n == 0) return false;
  if ((words[bits] & kLevelList) != 0) {
    if (n > rest.size()) return false;
    for (std::size_t i = 1; i < n; ++i)
      if (rest[i] <= rest[i - 1]) return false;
    return rest[n - 1] < levels;
  }
  if (n + 1 > rest.size()) return false;
  const std::size_t end = 16 * (rest[0] + n);  // levels that the bits stand for
  if (end >= levels + 16) return false;
  return end <= levels || rest[n] >> (16 - (end - levels)) == 0;
}

}  // namespace oldgrowth
