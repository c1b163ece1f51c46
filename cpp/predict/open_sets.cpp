#include "predict/open_sets.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/cpu.hpp"

namespace oldgrowth {
namespace {

constexpr std::size_t kInFlight = 16;
constexpr int kStepsAtATime = 6;
// Minimum number of rows for which expanding the first levels of a tree is worthwhile.
constexpr std::size_t kWorthSkipping = 64;

// Words that nodes without a set look at: the lower half of any threshold leads to one of them. All are zero, so that
// the comparison with the threshold decides.
constexpr std::size_t kNoSet = 1U << 11;
// The threshold of a node with a set has the number of the set in its lower half. It is NaN: no value is below it.
constexpr std::uint32_t kSetThreshold = 0x7fc00000;

// One step without a branch: whether a node has a set is as hard to predict as the direction.
template <bool kMayMiss>
[[gnu::always_inline]] inline const OpenNode* step(const OpenNode* at, const std::uint32_t* words, const float* row) {
  std::uint16_t set = 0;  // the lower half of the threshold, loaded as such
  std::memcpy(&set, &at->threshold, sizeof(set));
  const std::uint32_t column = kMayMiss ? at->column & ~OpenNode::kMissingLeft : at->column;
  const float& x = row[column];
  const std::uint32_t word = words[std::bit_cast<std::uint32_t>(row[column + kPlaces]) + (set >> 5)];
  std::uint64_t offset = at->right;
#if defined(__x86_64__)
  if constexpr (!kMayMiss) {
    // By hand: compilers combine both conditions first.
    asm("bt %[set], %[word]\n\tcmovc %[left], %[offset]\n\t"
        "comiss %[x], %[threshold]\n\tcmovae %[left], %[offset]"
        : [offset] "+&r"(offset)
        : [set] "r"(std::uint32_t{set}), [word] "r"(word), [x] "m"(x), [threshold] "x"(at->threshold),
          [left] "r"(std::uint64_t{1})
        : "cc");
    return at + offset;
  }
#endif
  bool left = (((word >> (set & 31)) & 1) != 0) | (x <= at->threshold);
  if constexpr (kMayMiss) left |= (x != x) & ((at->column & OpenNode::kMissingLeft) != 0);
  offset = left ? 1 : offset;
  return at + offset;
}

// A tree and the rows that walk through it.
struct Walk {
  const OpenNode* open;
  const OpenSets& sets;
  const OpenRows& rows;
  const std::uint32_t* levels;
  std::uint32_t* leaves;
};

struct Walkers {
  const OpenNode* at[kBlock];
  const float* row[kBlock];
};

// Advances kRows walkers, starting at `first`, by a few steps, records their nodes, and keeps those not yet arrived.
template <bool kMayMiss, std::size_t kRows>
[[gnu::always_inline]] inline std::size_t advance(const Walk& walk, Walkers& walkers, std::size_t first,
                                                  std::size_t kept) {
  const std::uint32_t* const words = walk.sets.words.data();
  const OpenNode* at[kRows];
  const float* row[kRows];
  for (std::size_t i = 0; i < kRows; ++i) {
    at[i] = walkers.at[first + i];
    row[i] = walkers.row[first + i];
  }
  for (int s = 0; s < kStepsAtATime; ++s)
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kRows; ++i) at[i] = step<kMayMiss>(at[i], words, row[i]);
  for (std::size_t i = 0; i < kRows; ++i) {
    walk.leaves[row[i] - walk.rows.columns] = static_cast<std::uint32_t>(at[i] - walk.open);
    walkers.at[kept] = at[i];
    walkers.row[kept] = row[i];
    kept += at[i]->right != 0;
  }
  return kept;
}

template <bool kMayMiss>
void walk_all(const Walk& walk) {
  Walkers walkers;
  std::size_t walking = walk.rows.n;
  if (!kMayMiss && walking >= kWorthSkipping && has_first_levels())
    skip_first_levels(walk.open, walk.rows.columns, walk.sets.first_levels, walk.levels, walking, walk.leaves);
  else
    std::fill_n(walk.leaves, walking, 0U);
  std::size_t kept = 0;  // rows that are not at their leaves already
  for (std::size_t i = 0; i < walking; ++i) {
    walkers.at[kept] = walk.open + walk.leaves[i];
    walkers.row[kept] = walk.rows.columns + i;
    kept += walkers.at[kept]->right != 0;
  }
  walking = kept;
  while (walking > 0) {
    std::size_t first = 0;
    kept = 0;
    for (; first + kInFlight <= walking; first += kInFlight)
      kept = advance<kMayMiss, kInFlight>(walk, walkers, first, kept);
    for (; first < walking; ++first) kept = advance<kMayMiss, 1>(walk, walkers, first, kept);
    walking = kept;
  }
}

// The columns of categorical features, and that of nodes without a value.
struct Columns {
  std::vector<std::uint16_t> categorical;
  std::uint16_t none;
  std::uint16_t kept;  // bits of a numerical column: without whether missing values go left, unless there are any

  Columns(std::span<const std::uint32_t> levels, bool may_miss)
      : none(static_cast<std::uint16_t>(levels.size() * kColumn)),
        kept(may_miss ? 0xffff : static_cast<std::uint16_t>(OpenNode::kMissingLeft - 1)) {
    for (std::size_t f = 0; f < levels.size(); ++f)
      if (levels[f] > 0) categorical.push_back(static_cast<std::uint16_t>(f * kColumn));
  }
};

constexpr std::size_t kMarked = 64;

// Whether each of up to 64 nodes has a set, as bits; the other nodes get their columns.
[[gnu::always_inline]] inline std::uint64_t mark_sets(const Columns& columns, std::span<OpenNode> open) {
  std::uint64_t marks = 0;
  for (std::size_t i = 0; i < open.size(); ++i) {
    OpenNode& node = open[i];
    const auto column = static_cast<std::uint16_t>(node.column & ~OpenNode::kMissingLeft);
    bool has_set = false;
    for (const std::uint16_t categorical : columns.categorical) has_set |= column == categorical;
    has_set &= node.right != 0;
    marks |= std::uint64_t{has_set} << i;
    if (!has_set) node.column = node.right == 0 ? columns.none : static_cast<std::uint16_t>(node.column & columns.kept);
  }
  return marks;
}

#if defined(__x86_64__)
// These bits in the columns of four nodes.
OLDGROWTH_AVX2 [[gnu::always_inline]] inline __m256i at_column(std::uint16_t bits) {
  return _mm256_set1_epi64x(static_cast<long long>(bits) << 32);
}

// The same for a multiple of four nodes at a time.
OLDGROWTH_AVX2 std::uint64_t mark_sets_by_four(const Columns& columns, std::span<OpenNode> open) {
  const __m256i right_bits = _mm256_set1_epi64x(static_cast<long long>(0xffffULL << 48)), zero = _mm256_setzero_si256();
  const __m256i column_bits = at_column(OpenNode::kMissingLeft - 1), all_column = at_column(0xffff);
  const __m256i dropped = at_column(static_cast<std::uint16_t>(~columns.kept)), none = at_column(columns.none);
  std::uint64_t marks = 0;
  for (std::size_t i = 0; i < open.size(); i += 4) {
    auto* const at = reinterpret_cast<__m256i*>(open.data() + i);
    const __m256i nodes = _mm256_loadu_si256(at);
    const __m256i column = _mm256_and_si256(nodes, column_bits);
    const __m256i leaf = _mm256_cmpeq_epi64(_mm256_and_si256(nodes, right_bits), zero);
    __m256i has_set = zero;
    for (const std::uint16_t categorical : columns.categorical)
      has_set = _mm256_or_si256(has_set, _mm256_cmpeq_epi64(column, at_column(categorical)));
    has_set = _mm256_andnot_si256(leaf, has_set);
    const __m256i numerical = _mm256_andnot_si256(dropped, nodes);
    const __m256i ended = _mm256_or_si256(_mm256_andnot_si256(all_column, nodes), none);
    const __m256i changed = _mm256_blendv_epi8(_mm256_blendv_epi8(numerical, ended, leaf), nodes, has_set);
    _mm256_storeu_si256(at, changed);
    const auto bits = static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(has_set)));
    marks |= std::uint64_t{bits} << i;
  }
  return marks;
}
#endif

// The numbers of the nodes with sets; the other nodes get their columns.
void list_sets(const Columns& columns, std::span<OpenNode> open, std::vector<std::uint32_t>& listed) {
  for (std::size_t first = 0; first < open.size(); first += kMarked) {
    const auto some = open.subspan(first, std::min(kMarked, open.size() - first));
    std::uint64_t marks = 0;
    std::size_t done = 0;
#if defined(__x86_64__)
    if (has_avx2()) {
      done = some.size() / 4 * 4;
      marks = mark_sets_by_four(columns, some.first(done));
    }
#endif
    if (done < some.size()) marks |= mark_sets(columns, some.subspan(done)) << done;
    for (; marks != 0; marks &= marks - 1)
      listed.push_back(static_cast<std::uint32_t>(first) + static_cast<std::uint32_t>(std::countr_zero(marks)));
  }
}

std::size_t feature_of(const OpenNode& node) { return (node.column & ~OpenNode::kMissingLeft) / kColumn; }

// Writes the words as if no set had a level: each level goes where missing values go, which are the last one.
void start_words(std::span<const std::uint32_t> levels, std::span<const OpenNode> open, OpenSets& sets) {
  sets.numbers.assign(levels.size(), 0);
  const auto words_of = [&](std::size_t f) { return sets.words.begin() + sets.features[f].first; };
  for (std::size_t f = 0; f < levels.size(); ++f)
    if (levels[f] > 0) std::fill_n(words_of(f) + levels[f] * sets.features[f].stride, sets.features[f].stride, 0U);
  for (const std::uint32_t i : sets.listed) {
    const std::size_t f = feature_of(open[i]);
    const std::uint32_t number = sets.numbers[f]++, missing_left = open[i].column >> 15;
    words_of(f)[levels[f] * sets.features[f].stride + number / 32] |= missing_left << (number % 32);
  }
  for (std::size_t f = 0; f < levels.size(); ++f) {
    const std::uint32_t stride = sets.features[f].stride;
    for (std::uint32_t level = 0; level < levels[f]; ++level)
      std::copy_n(words_of(f) + levels[f] * stride, stride, words_of(f) + level * stride);
  }
  sets.numbers.assign(levels.size(), 0);
}

// Gathers the bits of the first nodes from the words of all sets.
void open_first_levels(std::span<const std::uint32_t> levels, const OpenNode* open, OpenSets& sets) {
  std::uint32_t nodes[2 * kFirstNodes + 1];
  find_first_nodes(open, nodes);
  FirstSets& to = sets.first_levels;
  to.features.clear();
  to.words.clear();
  for (std::size_t f = 0; f < levels.size(); ++f) {
    if (levels[f] == 0) continue;
    to.features.push_back({f * kColumn, to.words.size()});
    to.words.resize(to.words.size() + levels[f] + 1);
    std::uint32_t* bits = to.words.data() + to.features.back().first;
    for (std::size_t i = 0; i < kFirstNodes; ++i) {
      const OpenNode& node = open[nodes[i]];
      if (node.right == 0 || node.column != f * kColumn) continue;
      const std::uint32_t number = std::bit_cast<std::uint32_t>(node.threshold) & 0xffff;
      const std::uint32_t* word = sets.words.data() + sets.features[f].first + number / 32;
      for (std::size_t level = 0; level <= levels[f]; ++level)
        bits[level] |= (word[level * sets.features[f].stride] >> (number % 32) & 1) << i;
    }
  }
}

}  // namespace

bool open_sets(const Categories& categories, bool may_miss, std::span<OpenNode> open, OpenSets& sets) {
  std::vector<std::uint32_t>& listed = sets.listed;
  listed.clear();
  list_sets(Columns(categories.levels, may_miss), open, listed);
  auto& features = sets.features;
  features.assign(categories.levels.size(), {0, 0});
  for (const std::uint32_t i : listed) ++features[feature_of(open[i])].stride;
  std::size_t words = kNoSet;
  for (std::size_t f = 0; f < features.size(); ++f) {
    if (categories.levels[f] == 0) continue;
    const std::size_t stride =
        (features[f].stride + 31) / 32 | 1;  // odd: levels do not compete for the same cache sets
    features[f] = {static_cast<std::uint32_t>(words), static_cast<std::uint32_t>(stride)};
    words += stride * (categories.levels[f] + 1);
    if (words > kMostSetWords) return false;
  }
  if (sets.words.size() < words) sets.words.resize(words);
  start_words(categories.levels, open, sets);
  for (const std::uint32_t i : listed) {
    OpenNode& node = open[i];
    const std::size_t f = feature_of(node);
    const auto [first, stride] = features[f];
    const std::uint32_t number = sets.numbers[f]++, bit = 1U << (number % 32);
    std::uint32_t* const bits = sets.words.data() + first + number / 32;
    visit_set(categories, std::bit_cast<std::uint32_t>(node.threshold), categories.levels[f],
              [&, stride = stride](std::size_t level) { bits[level * stride] ^= bit; });
    node.threshold = std::bit_cast<float>(kSetThreshold | number);
    node.column = static_cast<std::uint16_t>(f * kColumn);
  }
  if (has_first_levels()) open_first_levels(categories.levels, open.data(), sets);
  return true;
}

void find_levels(std::span<const std::uint32_t> levels, std::size_t n, const float* columns, std::uint32_t* found) {
  for (std::size_t f = 0; f < levels.size(); ++f) {
    if (levels[f] == 0) continue;
    const auto unknown = static_cast<float>(levels[f]);
    for (std::size_t i = f * kColumn; i < f * kColumn + n; ++i) {
      const float known = columns[i] < unknown ? columns[i] : unknown;  // or NaN
      found[i] = static_cast<std::uint32_t>(static_cast<std::int32_t>(known >= 0 ? known : unknown));
    }
  }
}

void place_levels(std::span<const std::uint32_t> levels, const OpenSets& sets, std::size_t n,
                  const std::uint32_t* found, float* columns) {
  for (std::size_t f = 0; f < levels.size(); ++f) {
    if (levels[f] == 0) continue;
    const auto [first, stride] = sets.features[f];
    for (std::size_t i = f * kColumn; i < f * kColumn + n; ++i)
      columns[i + kPlaces] = std::bit_cast<float>(first + found[i] * stride);
  }
}

void find_open_leaves_by_sets(const OpenNode* open, const OpenSets& sets, const OpenRows& rows,
                              const std::uint32_t* levels, std::uint32_t* leaves) {
  const Walk walk{open, sets, rows, levels, leaves};
  if (rows.may_miss)
    walk_all<true>(walk);
  else
    walk_all<false>(walk);
}

}  // namespace oldgrowth
