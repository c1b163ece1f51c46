// Trees with categorical features unpacked for many rows: for each level of a feature, a bit in every set that the
// tree has for the feature. A row has one level, and the sets that it meets lie close together there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/level_set.hpp"
#include "predict/first_levels.hpp"
#include "predict/open_tree.hpp"

namespace oldgrowth {

// Limits of such a tree: its features, as one column is for nodes without a value, and the 32-bit words of its sets.
inline constexpr std::size_t kMostOpenSetFeatures = kMostOpenFeatures - 1;
inline constexpr std::size_t kMostSetWords = 1U << 18;
// From the value of a row in the columns to the place of its level among the words: behind all columns, and not a
// multiple of a page.
inline constexpr std::size_t kPlaces = kMostOpenFeatures * kColumn + 128;

struct OpenSets {
  struct Feature {
    std::uint32_t first, stride;  // word of level 0, and the words of each level
  };
  std::vector<Feature> features;
  std::vector<std::uint32_t> words;
  FirstSets first_levels;  // if this machine supports them
  // While they are opened: the nodes with sets, and how many of each feature were numbered.
  std::vector<std::uint32_t> listed, numbers;
};

// Opens the sets of a tree that was opened for values that may be missing, with the node that ends walks; false if they
// have too many words. Whatever the sets contain, a walk stays inside the words.
bool open_sets(const Categories& categories, bool may_miss, std::span<OpenNode> open, OpenSets& sets);

// The levels in columns of n rows, by feature kColumn apart; those of missing and unknown ones come last.
void find_levels(std::span<const std::uint32_t> levels, std::size_t n, const float* columns, std::uint32_t* found);

// Writes the places of these levels. All other places are 0.
void place_levels(std::span<const std::uint32_t> levels, const OpenSets& sets, std::size_t n,
                  const std::uint32_t* found, float* columns);

// The index of the leaf that each row reaches; `levels` are those found of the rows. The columns need room for kPlaces
// more values, the output for kBlock rows.
void find_open_leaves_by_sets(const OpenNode* open, const OpenSets& sets, const OpenRows& rows,
                              const std::uint32_t* levels, std::uint32_t* leaves);

}  // namespace oldgrowth
