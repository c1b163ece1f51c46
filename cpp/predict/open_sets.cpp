#include "predict/open_sets.hpp"

#include <algorithm>
#include <bit>

namespace oldgrowth {
namespace {

constexpr std::size_t kInFlight = 16;
constexpr int kStepsAtATime = 6;

// One step without a branch: whether a node has a set is as hard to predict as the direction.
[[gnu::always_inline]] inline const OpenNode* step(const OpenNode* at, const std::uint32_t* words, const float* row) {
  const std::uint32_t column = at->column;
  const float x = row[column & (kBySet - 1U)];
  const auto place = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t by_set = -((column / kBySet) & 1U);  // all bits or none
  const auto set = std::bit_cast<std::uint32_t>(at->threshold);
  const std::uint32_t in_set = words[(place & by_set) + ((set & by_set) >> 5)] >> (set & 31);
  const std::uint32_t missing_left = column >> 15;
  const auto below =
      static_cast<std::uint32_t>(x <= at->threshold) | (static_cast<std::uint32_t>(x != x) & missing_left);
  const std::uint32_t left = (((in_set ^ missing_left) & by_set) | (below & ~by_set)) & 1U;
  const std::uint64_t go_right = std::uint64_t{left} - 1;  // all bits or none
  return at + ((at->right & go_right) | (left & ~go_right));
}

// A tree and the rows that walk through it.
struct Walk {
  const OpenNode* open;
  const std::uint32_t* words;
  const OpenRows& rows;
  std::uint32_t* leaves;
};

struct Walkers {
  const OpenNode* at[kBlock];
  std::uint32_t row[kBlock];
};

// Advances kRows walkers, starting at `first`, by a few steps, records their nodes, and keeps those not yet arrived.
template <std::size_t kRows>
[[gnu::always_inline]] inline std::size_t advance(const Walk& walk, Walkers& walkers, std::size_t first,
                                                  std::size_t kept) {
  const OpenNode* at[kRows];
  std::uint32_t row[kRows];
  for (std::size_t i = 0; i < kRows; ++i) {
    at[i] = walkers.at[first + i];
    row[i] = walkers.row[first + i];
  }
  for (int s = 0; s < kStepsAtATime; ++s)
    for (std::size_t i = 0; i < kRows; ++i) at[i] = step(at[i], walk.words, walk.rows.columns + row[i]);
  for (std::size_t i = 0; i < kRows; ++i) {
    walk.leaves[row[i]] = static_cast<std::uint32_t>(at[i] - walk.open);
    walkers.at[kept] = at[i];
    walkers.row[kept] = row[i];
    kept += at[i]->right != 0;
  }
  return kept;
}

}  // namespace

bool open_sets(const Categories& categories, std::span<OpenNode> open, OpenSets& sets) {
  const auto feature_of = [](const OpenNode& node) { return (node.column & (kBySet - 1U)) / kColumn; };
  const auto has_set = [&](const OpenNode& node) { return node.right != 0 && categories.levels[feature_of(node)] > 0; };
  sets.features.assign(categories.levels.size(), {0, 0});
  for (const OpenNode& node : open)
    if (has_set(node)) ++sets.features[feature_of(node)].stride;
  std::size_t words = 1;  // what nodes without a set look at
  for (std::size_t f = 0; f < sets.features.size(); ++f) {
    const std::size_t stride = (sets.features[f].stride + 31) / 32;
    sets.features[f] = {static_cast<std::uint32_t>(words), static_cast<std::uint32_t>(stride)};
    words += stride * (categories.levels[f] + 1);
    if (words > kMostSetWords) return false;
  }
  sets.words.assign(words, 0);
  std::vector<std::uint32_t> numbers(sets.features.size());
  for (OpenNode& node : open) {
    if (!has_set(node)) continue;
    const std::size_t f = feature_of(node);
    const std::uint32_t number = numbers[f]++;
    std::uint32_t* bits = sets.words.data() + sets.features[f].first + number / 32;
    visit_set(categories, std::bit_cast<std::uint32_t>(node.threshold), categories.levels[f],
              [&](std::size_t level) { bits[level * sets.features[f].stride] |= 1U << (number % 32); });
    node.threshold = std::bit_cast<float>(number);
    node.column |= kBySet;
  }
  return true;
}

void find_levels(std::span<const std::uint32_t> levels, std::size_t n, const float* columns, std::uint32_t* found) {
  for (std::size_t f = 0; f < levels.size(); ++f)
    for (std::size_t i = f * kColumn; levels[f] > 0 && i < f * kColumn + n; ++i)
      found[i] = std::min(level_of(columns[i], levels[f]), levels[f]);
}

void place_levels(std::span<const std::uint32_t> levels, const OpenSets& sets, std::size_t n,
                  const std::uint32_t* found, float* columns) {
  for (std::size_t f = 0; f < levels.size(); ++f) {
    const auto [first, stride] = sets.features[f];
    for (std::size_t i = f * kColumn; levels[f] > 0 && i < f * kColumn + n; ++i)
      columns[i] = std::bit_cast<float>(first + found[i] * stride);
  }
}

void find_open_leaves_by_sets(const OpenNode* open, const std::uint32_t* words, const OpenRows& rows,
                              std::uint32_t* leaves) {
  const Walk walk{open, words, rows, leaves};
  Walkers walkers;
  std::size_t walking = rows.n;
  for (std::size_t i = 0; i < walking; ++i) {
    walkers.at[i] = open;
    walkers.row[i] = static_cast<std::uint32_t>(i);
  }
  while (walking > 0) {
    std::size_t first = 0, kept = 0;
    for (; first + kInFlight <= walking; first += kInFlight) kept = advance<kInFlight>(walk, walkers, first, kept);
    for (; first < walking; ++first) kept = advance<1>(walk, walkers, first, kept);
    walking = kept;
  }
}

}  // namespace oldgrowth
