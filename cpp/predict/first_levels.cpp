#include "predict/first_levels.hpp"

#include "base/cpu.hpp"

namespace oldgrowth {

bool has_first_levels() { return has_avx2(); }

#if defined(__x86_64__)
namespace {

constexpr std::size_t kLanes = 8;
constexpr std::size_t kLevels = 5;
constexpr std::size_t kInner = (1U << kLevels) - 1, kExits = kInner + 1;

// A tree cut off after kLevels, and filled up to that where a leaf comes before: node i has the children 2i + 1 and
// 2i + 2, the last level has exits instead.
struct Levels {
  const float* column[kInner];
  float threshold[kInner];
  std::uint32_t exit[kExits];

  Levels(const OpenNode* open, const float* columns) {
    std::uint32_t at[kInner + kExits];
    at[0] = 0;
    for (std::size_t i = 0; i < kInner; ++i) {
      const OpenNode node = open[at[i]];
      column[i] = columns + (node.column & ~OpenNode::kMissingLeft);
      threshold[i] = node.threshold;
      at[2 * i + 1] = at[i] + (node.right != 0);
      at[2 * i + 2] = at[i] + node.right;
    }
    for (std::size_t i = 0; i < kExits; ++i) exit[i] = at[kInner + i];
  }
};

// For sixteen rows.
struct Two {
  __m256i a, b;
};

// The numbers of the exits that rows reach below a node.
template <std::size_t kNode>
OLDGROWTH_AVX2 [[gnu::always_inline]] inline Two exits(const Levels& levels, std::size_t row) {
  const __m256 threshold = _mm256_broadcast_ss(&levels.threshold[kNode]);
  const float* x = levels.column[kNode] + row;
  const __m256 left_a = _mm256_cmp_ps(_mm256_loadu_ps(x), threshold, _CMP_LE_OQ);
  const __m256 left_b = _mm256_cmp_ps(_mm256_loadu_ps(x + kLanes), threshold, _CMP_LE_OQ);
  if constexpr (2 * kNode + 1 >= kInner) {
    const __m256i right_exit = _mm256_set1_epi32(static_cast<int>(2 * kNode + 2 - kInner));
    return {_mm256_add_epi32(right_exit, _mm256_castps_si256(left_a)),
            _mm256_add_epi32(right_exit, _mm256_castps_si256(left_b))};
  } else {
    const Two right = exits<2 * kNode + 2>(levels, row), left = exits<2 * kNode + 1>(levels, row);
    return {_mm256_blendv_epi8(right.a, left.a, _mm256_castps_si256(left_a)),
            _mm256_blendv_epi8(right.b, left.b, _mm256_castps_si256(left_b))};
  }
}

}  // namespace

OLDGROWTH_AVX2 void skip_first_levels(const OpenNode* open, const float* columns, std::size_t n, std::uint32_t* at) {
  const Levels levels(open, columns);
  const int* exit = reinterpret_cast<const int*>(levels.exit);
  for (std::size_t i = 0; i < n; i += 2 * kLanes) {
    const Two reached = exits<0>(levels, i);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(at + i), _mm256_i32gather_epi32(exit, reached.a, 4));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(at + i + kLanes), _mm256_i32gather_epi32(exit, reached.b, 4));
  }
}
#else
void skip_first_levels(const OpenNode*, const float*, std::size_t, std::uint32_t*) {}
#endif

}  // namespace oldgrowth
