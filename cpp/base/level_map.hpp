// Trees in the codes of other levels: a forest learns some levels, and is joined with one that knows others.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "base/level_set.hpp"
#include "base/node.hpp"

namespace oldgrowth {

class LevelMap {
 public:
  // `codes` has for each feature the present code of each new level, kNoLevel for one that the trees have not seen.
  LevelMap(std::vector<std::uint32_t> levels, const std::vector<std::vector<std::uint32_t>>& codes)
      : levels_(std::move(levels)), codes_(levels_.size()) {
    if (codes.size() != levels_.size()) throw std::invalid_argument("another number of features");
    for (std::size_t f = 0; f < levels_.size(); ++f) {
      new_levels_.push_back(static_cast<std::uint32_t>(codes[f].size()));
      codes_[f].resize(levels_[f]);
      for (std::uint32_t level = 0; level < codes[f].size(); ++level)
        if (codes[f][level] < levels_[f]) codes_[f][codes[f][level]].push_back(level);
    }
  }

  // Gives the nodes of a tree sets of the new levels, which are appended to `words`. A level that the tree has not seen
  // is in no set: it goes where missing values go.
  void recode(std::span<Node> nodes, std::span<const std::uint16_t> sets, std::vector<std::uint16_t>& words) const {
    const NodeFormat format(static_cast<std::uint32_t>(levels_.size()));
    const Categories categories{levels_, sets};
    std::vector<std::uint32_t> set;
    for (Node& node : nodes) {
      if (is_leaf(node)) continue;
      const std::uint32_t feature = format.feature(node);
      if (feature >= levels_.size() || levels_[feature] == 0) continue;
      set.clear();
      visit_set(categories, set_bits(node), levels_[feature], [&](std::size_t level) {
        const auto& codes = codes_[feature][level];
        set.insert(set.end(), codes.begin(), codes.end());
      });
      std::sort(set.begin(), set.end());
      node = (node & ~Node{0xFFFFFFFF}) | store_set(set, new_levels_[feature], words);
    }
  }

 private:
  std::vector<std::uint32_t> levels_, new_levels_;
  std::vector<std::vector<std::vector<std::uint32_t>>> codes_;  // for each feature and level, the new levels
};

}  // namespace oldgrowth
