#include "predict/open_tree.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/cpu.hpp"
#include "predict/first_levels.hpp"

namespace oldgrowth {
namespace {

// Rows walked side by side: their loads do not wait for each other.
constexpr std::size_t kInFlight = 16;
// Steps between two checks for rows that have arrived. A row at its leaf stays there.
constexpr int kStepsAtATime = 6;
// Minimum number of rows for which expanding the first levels of a tree is worthwhile.
constexpr std::size_t kWorthSkipping = 64;

// One step without a branch: directions are unpredictable.
template <bool kMayMiss>
[[gnu::always_inline]] inline const OpenNode* step(const OpenNode* at, const float* row) {
  std::uint64_t offset = at->right;
  if constexpr (kMayMiss) {
    const float x = row[at->column & ~OpenNode::kMissingLeft];
    const bool left = (x <= at->threshold) | ((x != x) & ((at->column & OpenNode::kMissingLeft) != 0));
    offset = left ? 1 : offset;
  } else {
    const float& x = row[at->column];
#if defined(__x86_64__)
    // By hand: compilers make a branch of it, or four instructions more. NaN would compare as above.
    asm("comiss %[x], %[threshold]\n\tcmovae %[left], %[offset]"
        : [offset] "+r"(offset)
        : [x] "m"(x), [threshold] "x"(at->threshold), [left] "r"(std::uint64_t{1})
        : "cc");
#else
    offset = x <= at->threshold ? 1 : offset;
#endif
  }
  return at + offset;
}

struct Walkers {
  const OpenNode* at[kBlock];
  float* row[kBlock];
};

std::uint32_t low_half(const OpenNode* at) { return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(at)); }

// Advances kRows walkers, starting at `first`, by a few steps, records their nodes, and keeps those not yet arrived.
template <bool kMayMiss, std::size_t kRows>
[[gnu::always_inline]] inline std::size_t advance(Walkers& walkers, std::size_t first, std::size_t kept,
                                                  std::size_t reached) {
  float* row[kRows];
  const OpenNode* at[kRows];
  for (std::size_t i = 0; i < kRows; ++i) {
    row[i] = walkers.row[first + i];
    at[i] = walkers.at[first + i];
  }
  for (int s = 0; s < kStepsAtATime; ++s)
    for (std::size_t i = 0; i < kRows; ++i) at[i] = step<kMayMiss>(at[i], row[i]);
  for (std::size_t i = 0; i < kRows; ++i) {
    row[i][reached] = std::bit_cast<float>(low_half(at[i]));
    walkers.at[kept] = at[i];
    walkers.row[kept] = row[i];
    kept += at[i]->right != 0;
  }
  return kept;
}

template <bool kMayMiss>
void walk(const OpenNode* open, const OpenRows& rows, std::uint32_t* leaves) {
  const std::size_t reached = rows.width * kColumn;
  Walkers walkers;
  std::size_t walking = rows.n;
  if (!kMayMiss && walking >= kWorthSkipping && has_first_levels()) {
    skip_first_levels(open, rows.columns, walking, leaves);
    for (std::size_t i = 0; i < walking; ++i) walkers.at[i] = open + leaves[i];
  } else {
    for (std::size_t i = 0; i < walking; ++i) walkers.at[i] = open;
  }
  for (std::size_t i = 0; i < walking; ++i) walkers.row[i] = rows.columns + i;
  while (walking > 0) {
    std::size_t first = 0, kept = 0;
    for (; first + kInFlight <= walking; first += kInFlight)
      kept = advance<kMayMiss, kInFlight>(walkers, first, kept, reached);
    for (; first < walking; ++first) kept = advance<kMayMiss, 1>(walkers, first, kept, reached);
    walking = kept;
  }
  for (std::size_t i = 0; i < rows.n; ++i)
    leaves[i] =
        (std::bit_cast<std::uint32_t>(rows.columns[reached + i]) - low_half(open)) / std::uint32_t{sizeof(OpenNode)};
}

constexpr Node kOpenLeaf = std::bit_cast<std::uint32_t>(std::numeric_limits<float>::quiet_NaN());

// A node behind which there are `behind` more.
OpenNode open_node(const OpenFormat& format, Node node, std::size_t behind) {
  if (is_leaf(node)) {
    const bool small = payload(node) < OpenNode::kElsewhere;
    return std::bit_cast<OpenNode>(kOpenLeaf | (small ? payload(node) : OpenNode::kElsewhere));
  }
  const std::size_t missing_left = format.may_miss && format.nodes.missing_left(node) ? OpenNode::kMissingLeft : 0;
  const std::size_t feature = std::min<std::size_t>(format.nodes.feature(node), format.n_features - 1);
  return {threshold(node), static_cast<std::uint16_t>(feature * kColumn + missing_left),
          static_cast<std::uint16_t>(std::min<std::size_t>(format.nodes.right(node), behind))};
}

#if defined(__x86_64__)
// The same for four nodes at a time; returns how many nodes were handled.
OLDGROWTH_AVX2 std::size_t open_by_four(const OpenFormat& format, std::span<const Node> nodes, OpenNode* open) {
  const auto feature_bits = static_cast<int>(format.nodes.feature_bits);
  const __m256i open_leaf = _mm256_set1_epi64x(kOpenLeaf), elsewhere = _mm256_set1_epi64x(OpenNode::kElsewhere);
  const __m256i most = _mm256_set1_epi64x(OpenNode::kElsewhere - 1), lower = _mm256_set1_epi64x(0xffffffff);
  const __m256i features = _mm256_set1_epi64x((1LL << feature_bits) - 1);
  const __m256i last_feature = _mm256_set1_epi64x(static_cast<long long>(format.n_features - 1));
  const __m256i four = _mm256_set1_epi64x(4);
  const __m256i column = _mm256_set1_epi64x(kColumn), misses = _mm256_set1_epi64x(format.may_miss);
  const __m128i to_missing = _mm_cvtsi32_si128(feature_bits);
  const __m128i to_right = _mm_cvtsi32_si128(feature_bits + 1);
  // For each of the four, how many nodes follow it.
  const auto behind_first = static_cast<long long>(nodes.size()) - 1;
  __m256i behind = _mm256_set_epi64x(behind_first - 3, behind_first - 2, behind_first - 1, behind_first);
  const std::size_t by_four = nodes.size() / 4 * 4;
  for (std::size_t i = 0; i < by_four; i += 4) {
    const __m256i node = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(nodes.data() + i));
    const __m256i upper = _mm256_srli_epi64(node, 32);
    const __m256i feature = _mm256_min_epu32(_mm256_and_si256(upper, features), last_feature);
    const __m256i place = _mm256_mul_epu32(feature, column);
    const __m256i missing = _mm256_slli_epi64(_mm256_and_si256(_mm256_srl_epi64(upper, to_missing), misses), 15);
    const __m256i right = _mm256_slli_epi64(_mm256_min_epu32(_mm256_srl_epi64(upper, to_right), behind), 16);
    behind = _mm256_sub_epi64(behind, four);
    const __m256i inner = _mm256_or_si256(
        _mm256_and_si256(node, lower), _mm256_slli_epi64(_mm256_or_si256(_mm256_or_si256(place, missing), right), 32));
    const __m256i payload = _mm256_srli_epi64(_mm256_add_epi64(node, node), 1);
    const __m256i large = _mm256_cmpgt_epi64(payload, most);
    const __m256i leaf = _mm256_or_si256(open_leaf, _mm256_blendv_epi8(payload, elsewhere, large));
    const __m256d opened =
        _mm256_blendv_pd(_mm256_castsi256_pd(inner), _mm256_castsi256_pd(leaf), _mm256_castsi256_pd(node));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(open + i), _mm256_castpd_si256(opened));
  }
  return by_four;
}
#endif

}  // namespace

void open_tree(const OpenFormat& format, std::span<const Node> nodes, OpenNode* open) {
  const std::size_t n = nodes.size();
  std::size_t done = 0;
#if defined(__x86_64__)
  if (has_avx2()) done = open_by_four(format, nodes, open);
#endif
  for (; done < n; ++done) open[done] = open_node(format, read_node(&nodes[done]), n - 1 - done);
  open[n] = open_node(format, leaf(0), 0);
}

void find_open_leaves(const OpenNode* open, const OpenRows& rows, std::uint32_t* leaves) {
  if (rows.may_miss)
    walk<true>(open, rows, leaves);
  else
    walk<false>(open, rows, leaves);
}

}  // namespace oldgrowth
