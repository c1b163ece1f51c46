#include "predict/first_levels.hpp"

#include "base/cpu.hpp"

namespace oldgrowth {

bool has_first_levels() { return has_avx2(); }

void find_first_nodes(const OpenNode* open, std::uint32_t (&nodes)[2 * kFirstNodes + 1]) {
  nodes[0] = 0;
  for (std::size_t i = 0; i < kFirstNodes; ++i) {
    const std::uint32_t right = open[nodes[i]].right;
    nodes[2 * i + 1] = nodes[i] + (right != 0);
    nodes[2 * i + 2] = nodes[i] + right;
  }
}

#if defined(__x86_64__)
namespace {

constexpr std::size_t kLanes = 8;

// A tree cut off after the first levels, and filled up to that where a leaf comes before: the last level has exits.
struct Levels {
  const float* column[kFirstNodes];
  float threshold[kFirstNodes];
  std::uint32_t exit[kFirstNodes + 1];

  Levels(const OpenNode* open, const float* columns) {
    std::uint32_t at[2 * kFirstNodes + 1];
    find_first_nodes(open, at);
    for (std::size_t i = 0; i < kFirstNodes; ++i) {
      column[i] = columns + (open[at[i]].column & ~OpenNode::kMissingLeft);
      threshold[i] = open[at[i]].threshold;
    }
    for (std::size_t i = 0; i <= kFirstNodes; ++i) exit[i] = at[kFirstNodes + i];
  }
};

// For sixteen rows.
struct Two {
  __m256i a, b;
};

// Whether eight rows go left at a node, which has a set or a threshold; only the highest bits count.
template <std::size_t kNode, bool kSets>
OLDGROWTH_AVX2 [[gnu::always_inline]] inline __m256i goes_left(const float* x, __m256 threshold, __m256i by_sets) {
  const __m256i below = _mm256_castps_si256(_mm256_cmp_ps(_mm256_loadu_ps(x), threshold, _CMP_LE_OQ));
  if constexpr (!kSets) return below;
  return _mm256_or_si256(below, _mm256_slli_epi32(by_sets, 31 - static_cast<int>(kNode)));
}

// The numbers of the exits that rows reach below a node. `by_sets` has a bit for each node.
template <std::size_t kNode, bool kSets>
OLDGROWTH_AVX2 [[gnu::always_inline]] inline Two exits(const Levels& levels, std::size_t row, const Two& by_sets) {
  const __m256 threshold = _mm256_broadcast_ss(&levels.threshold[kNode]);
  const float* x = levels.column[kNode] + row;
  const __m256i left_a = goes_left<kNode, kSets>(x, threshold, by_sets.a);
  const __m256i left_b = goes_left<kNode, kSets>(x + kLanes, threshold, by_sets.b);
  if constexpr (2 * kNode + 1 >= kFirstNodes) {
    const __m256i right_exit = _mm256_set1_epi32(static_cast<int>(2 * kNode + 2 - kFirstNodes));
    if constexpr (!kSets) return {_mm256_add_epi32(right_exit, left_a), _mm256_add_epi32(right_exit, left_b)};
    return {_mm256_add_epi32(right_exit, _mm256_srai_epi32(left_a, 31)),
            _mm256_add_epi32(right_exit, _mm256_srai_epi32(left_b, 31))};
  } else {
    const Two right = exits<2 * kNode + 2, kSets>(levels, row, by_sets);
    const Two left = exits<2 * kNode + 1, kSets>(levels, row, by_sets);
    if constexpr (!kSets)
      return {_mm256_blendv_epi8(right.a, left.a, left_a), _mm256_blendv_epi8(right.b, left.b, left_b)};
    return {_mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(right.a), _mm256_castsi256_ps(left.a),
                                                 _mm256_castsi256_ps(left_a))),
            _mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(right.b), _mm256_castsi256_ps(left.b),
                                                 _mm256_castsi256_ps(left_b)))};
  }
}

// Finds the exits of all rows; bits_of(row) are those of sixteen rows by their levels.
template <bool kSets, class BitsOf>
OLDGROWTH_AVX2 [[gnu::always_inline]] inline void skip(const Levels& levels, std::size_t n, std::uint32_t* at,
                                                       const BitsOf& bits_of) {
  const int* exit = reinterpret_cast<const int*>(levels.exit);
  for (std::size_t i = 0; i < n; i += 2 * kLanes) {
    const Two reached = exits<0, kSets>(levels, i, bits_of(i));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(at + i), _mm256_i32gather_epi32(exit, reached.a, 4));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(at + i + kLanes), _mm256_i32gather_epi32(exit, reached.b, 4));
  }
}

OLDGROWTH_AVX2 [[gnu::always_inline]] inline __m256i words_at(const std::uint32_t* words, const std::uint32_t* levels) {
  return _mm256_i32gather_epi32(reinterpret_cast<const int*>(words),
                                _mm256_loadu_si256(reinterpret_cast<const __m256i*>(levels)), 4);
}

struct NoBits {
  OLDGROWTH_AVX2 [[gnu::always_inline]] Two operator()(std::size_t) const {
    return {_mm256_setzero_si256(), _mm256_setzero_si256()};
  }
};

struct BitsOfLevels {
  const FirstSets& sets;
  const std::uint32_t* levels;

  OLDGROWTH_AVX2 [[gnu::always_inline]] Two operator()(std::size_t row) const {
    Two bits = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    for (const auto& [column, first] : sets.features) {
      const std::uint32_t *words = sets.words.data() + first, *of_rows = levels + column + row;
      bits.a = _mm256_or_si256(bits.a, words_at(words, of_rows));
      bits.b = _mm256_or_si256(bits.b, words_at(words, of_rows + kLanes));
    }
    return bits;
  }
};

}  // namespace

OLDGROWTH_AVX2 void skip_first_levels(const OpenNode* open, const float* columns, std::size_t n, std::uint32_t* at) {
  skip<false>(Levels(open, columns), n, at, NoBits());
}

OLDGROWTH_AVX2 void skip_first_levels(const OpenNode* open, const float* columns, const FirstSets& sets,
                                      const std::uint32_t* levels, std::size_t n, std::uint32_t* at) {
  skip<true>(Levels(open, columns), n, at, BitsOfLevels{sets, levels});
}
#else
void skip_first_levels(const OpenNode*, const float*, std::size_t, std::uint32_t*) {}
void skip_first_levels(const OpenNode*, const float*, const FirstSets&, const std::uint32_t*, std::size_t,
                       std::uint32_t*) {}
#endif

}  // namespace oldgrowth
