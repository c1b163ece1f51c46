// Trees with categorical features unpacked for many rows: for each level of a feature, a bit in every set that the
// tree has for the feature. A row has one level, and the sets that it meets lie close together there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/level_set.hpp"
#include "predict/open_tree.hpp"

namespace oldgrowth {

// Of the column of an opened node: its threshold is the number of its set among those of the feature.
inline constexpr std::uint16_t kBySet = 1U << 14;
// Limits of such a tree: its features, and the 32-bit words of all its sets.
inline constexpr std::size_t kMostOpenSetFeatures = (kBySet - 1) / kColumn + 1;
inline constexpr std::size_t kMostSetWords = 1U << 18;

struct OpenSets {
  struct Feature {
    std::uint32_t first, stride;  // word of level 0, and the words of each level
  };
  std::vector<Feature> features;
  std::vector<std::uint32_t> words;
};

// Opens the sets of nodes that were opened for values that may be missing; false if they have too many words. Whatever
// the sets contain, a walk stays inside the words.
bool open_sets(const Categories& categories, std::span<OpenNode> open, OpenSets& sets);

// The levels in columns of n rows, by feature kColumn apart; those of missing and unknown ones come last.
void find_levels(std::span<const std::uint32_t> levels, std::size_t n, const float* columns, std::uint32_t* found);

// Puts the first words of these levels in place of the values of categorical features.
void place_levels(std::span<const std::uint32_t> levels, const OpenSets& sets, std::size_t n,
                  const std::uint32_t* found, float* columns);

// The index of the leaf that each row reaches. The output needs room for kBlock rows.
void find_open_leaves_by_sets(const OpenNode* open, const std::uint32_t* words, const OpenRows& rows,
                              std::uint32_t* leaves);

}  // namespace oldgrowth
