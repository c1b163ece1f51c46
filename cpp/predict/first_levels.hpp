// The first levels of a tree for sixteen rows at a time: nearly all rows go through them, so comparing each row
// with each of their nodes costs less than walking.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "predict/open_tree.hpp"

namespace oldgrowth {

// For each level of a categorical feature, and for missing values after them, a bit for each of the first nodes:
// whether it goes left there.
struct FirstSets {
  struct Feature {
    std::size_t column, first;  // where the levels of rows are; word of level 0
  };
  std::vector<Feature> features;
  std::vector<std::uint32_t> words;
};

inline constexpr std::size_t kFirstLevels = 5;
inline constexpr std::size_t kFirstNodes = (1U << kFirstLevels) - 1;

// Whether this machine supports it.
bool has_first_levels();

// The first nodes by level, then those below them; children of node i are 2i + 1 and 2i + 2. A leaf has itself below
// it.
void find_first_nodes(const OpenNode* open, std::uint32_t (&nodes)[2 * kFirstNodes + 1]);

// The node that each of n rows has reached after the first levels, or its leaf before that. No value may be NaN.
// The output needs room for kBlock rows.
void skip_first_levels(const OpenNode* open, const float* columns, std::size_t n, std::uint32_t* at);

// The same for a tree with categories, whose numerical values may not be NaN; `levels` are those of the rows.
void skip_first_levels(const OpenNode* open, const float* columns, const FirstSets& sets, const std::uint32_t* levels,
                       std::size_t n, std::uint32_t* at);

}  // namespace oldgrowth
