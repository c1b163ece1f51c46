// Trees with categorical features unpacked for many rows: each set becomes a bit for every level of its feature.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/level_set.hpp"
#include "predict/open_tree.hpp"

namespace oldgrowth {

// Of the column of an opened node: its threshold is the place of its bits.
inline constexpr std::uint16_t kBySet = 1U << 14;
// Limits of such a tree: its features, and the 32-bit words of all its sets.
inline constexpr std::size_t kMostOpenSetFeatures = (kBySet - 1) / kColumn + 1;
inline constexpr std::size_t kMostSetWords = 1U << 18;

// Opens the sets of nodes that were opened for values that may be missing; false if they have too many words. Whatever
// the sets contain, a walk stays inside the words.
bool open_sets(const Categories& categories, std::span<OpenNode> open, std::vector<std::uint32_t>& words);

// Replaces the values of categorical features in columns of n rows by the place of their bit.
void levels_in_columns(std::span<const std::uint32_t> levels, std::size_t n, float* columns);

// The index of the leaf that each row reaches. The output needs room for kBlock rows.
void find_open_leaves_by_sets(const OpenNode* open, const std::uint32_t* words, const OpenRows& rows,
                              std::uint32_t* leaves);

}  // namespace oldgrowth
