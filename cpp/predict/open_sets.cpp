#include "predict/open_sets.hpp"

#include <algorithm>
#include <bit>

namespace oldgrowth {
namespace {

constexpr std::size_t kInFlight = 16;
constexpr int kStepsAtATime = 6;

// One bit for each level, and one for missing values and unknown levels.
std::size_t words_of(std::uint32_t levels) { return levels / 32 + 1; }

void flip(std::uint32_t level, std::uint32_t levels, std::uint32_t* bits) {
  if (level < levels) bits[level / 32] ^= 1U << (level % 32);
}

void flip_set(const Categories& categories, std::uint32_t set, std::uint32_t levels, std::uint32_t* bits) {
  if (levels <= kInlineLevels) {
    for (std::uint32_t level = 0; level < levels; ++level)
      if (((set >> level) & 1) != 0) flip(level, levels, bits);
    return;
  }
  const auto words = categories.words;
  if (std::size_t{set} + 1 >= words.size()) return;
  const auto rest = words.subspan(std::size_t{set} + 1);
  const std::uint16_t head = words[set];
  const std::size_t n = head & (kLevelList - 1);
  if ((head & kLevelList) != 0) {
    for (const std::uint16_t level : rest.first(std::min(n, rest.size()))) flip(level, levels, bits);
    return;
  }
  const auto bitmap = rest.subspan(1, std::min(n, rest.size() - 1));
  for (std::size_t w = 0; w < bitmap.size(); ++w)
    for (std::uint32_t left = bitmap[w]; left != 0; left &= left - 1)
      flip(static_cast<std::uint32_t>(16 * (rest[0] + w) + static_cast<std::size_t>(std::countr_zero(left))), levels,
           bits);
}

// One step without a branch: whether a node has a set is as hard to predict as the direction.
[[gnu::always_inline]] inline const OpenNode* step(const OpenNode* at, const std::uint32_t* words, const float* row) {
  const std::uint32_t column = at->column;
  const float x = row[column & (kBySet - 1U)];
  const auto place = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t by_set = -((column / kBySet) & 1U);  // all bits or none
  const std::uint32_t word = words[(std::bit_cast<std::uint32_t>(at->threshold) & by_set) + ((place & by_set) >> 5)];
  const std::uint32_t in_set = word >> (place & 31);
  const auto below = static_cast<std::uint32_t>((x <= at->threshold) | ((x != x) & ((column >> 15) != 0)));
  const std::uint32_t left = ((in_set & by_set) | (below & ~by_set)) & 1U;
  const std::uint64_t go_right = std::uint64_t{left} - 1;  // all bits or none
  return at + ((at->right & go_right) | (left & ~go_right));
}

struct Walkers {
  const OpenNode* at[kBlock];
  std::uint32_t row[kBlock];
};

template <std::size_t kRows>
[[gnu::always_inline]] inline std::size_t advance(const OpenNode* open, const std::uint32_t* words,
                                                  const OpenRows& rows, Walkers& walkers, std::size_t first,
                                                  std::size_t kept, std::uint32_t* leaves) {
  const OpenNode* at[kRows];
  std::uint32_t row[kRows];
  for (std::size_t i = 0; i < kRows; ++i) {
    at[i] = walkers.at[first + i];
    row[i] = walkers.row[first + i];
  }
  for (int s = 0; s < kStepsAtATime; ++s)
    for (std::size_t i = 0; i < kRows; ++i) at[i] = step(at[i], words, rows.columns + row[i]);
  for (std::size_t i = 0; i < kRows; ++i) {
    leaves[row[i]] = static_cast<std::uint32_t>(at[i] - open);
    walkers.at[kept] = at[i];
    walkers.row[kept] = row[i];
    kept += at[i]->right != 0;
  }
  return kept;
}

}  // namespace

bool open_sets(const Categories& categories, std::span<OpenNode> open, std::vector<std::uint32_t>& words) {
  words.assign(1, 0);  // what nodes without a set look at
  for (OpenNode& node : open) {
    if (node.right == 0) continue;  // a leaf
    const std::uint16_t column = node.column & (kBySet - 1U);
    const std::uint32_t levels = categories.levels[column / kColumn];
    if (levels == 0) continue;
    const std::size_t at = words.size();
    if (at + words_of(levels) > kMostSetWords) return false;
    const bool missing_left = (node.column & OpenNode::kMissingLeft) != 0;
    words.resize(at + words_of(levels), missing_left ? ~0U : 0U);
    flip_set(categories, std::bit_cast<std::uint32_t>(node.threshold), levels, words.data() + at);
    node.threshold = std::bit_cast<float>(static_cast<std::uint32_t>(at));
    node.column = static_cast<std::uint16_t>(column | kBySet);
  }
  return true;
}

void levels_in_columns(std::span<const std::uint32_t> levels, std::size_t n, float* columns) {
  for (std::size_t f = 0; f < levels.size(); ++f) {
    if (levels[f] == 0) continue;
    float* column = columns + f * kColumn;
    for (std::size_t i = 0; i < n; ++i)
      column[i] = std::bit_cast<float>(std::min(level_of(column[i], levels[f]), levels[f]));
  }
}

void find_open_leaves_by_sets(const OpenNode* open, const std::uint32_t* words, const OpenRows& rows,
                              std::uint32_t* leaves) {
  Walkers walkers;
  std::size_t walking = rows.n;
  for (std::size_t i = 0; i < walking; ++i) {
    walkers.at[i] = open;
    walkers.row[i] = static_cast<std::uint32_t>(i);
  }
  while (walking > 0) {
    std::size_t first = 0, kept = 0;
    for (; first + kInFlight <= walking; first += kInFlight)
      kept = advance<kInFlight>(open, words, rows, walkers, first, kept, leaves);
    for (; first < walking; ++first) kept = advance<1>(open, words, rows, walkers, first, kept, leaves);
    walking = kept;
  }
}

}  // namespace oldgrowth
