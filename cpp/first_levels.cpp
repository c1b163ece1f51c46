#include "first_levels.hpp"

#include <algorithm>

#include "cpu.hpp"

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

  Levels(const NodeFormat& format, const Node* nodes, const float* columns) {
    std::uint32_t at[kInner + kExits];
    at[0] = 0;
    for (std::size_t i = 0; i < kInner; ++i) {
      const Node node = nodes[at[i]];
      const bool ends = is_leaf(node);
      column[i] = columns + (ends ? 0 : format.feature(node)) * kColumn;
      threshold[i] = oldgrowth::threshold(node);
      at[2 * i + 1] = ends ? at[i] : at[i] + 1;
      at[2 * i + 2] = ends ? at[i] : at[i] + static_cast<std::uint32_t>(format.right(node));
    }
    for (std::size_t i = 0; i < kExits; ++i) exit[i] = at[kInner + i];
  }
};

// Of sixteen rows.
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

// Eight values of eight rows become columns.
OLDGROWTH_AVX2 [[gnu::always_inline]] inline void transpose_tile(const __m256 (&row)[kLanes], float* columns) {
  __m256 pair[kLanes], quad[kLanes];
  for (std::size_t i = 0; i < kLanes; i += 2) {
    pair[i] = _mm256_unpacklo_ps(row[i], row[i + 1]);
    pair[i + 1] = _mm256_unpackhi_ps(row[i], row[i + 1]);
  }
  for (std::size_t i = 0; i < kLanes; i += 4) {
    quad[i] = _mm256_shuffle_ps(pair[i], pair[i + 2], 0x44);
    quad[i + 1] = _mm256_shuffle_ps(pair[i], pair[i + 2], 0xEE);
    quad[i + 2] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0x44);
    quad[i + 3] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0xEE);
  }
  for (std::size_t i = 0; i < kLanes / 2; ++i) {
    _mm256_storeu_ps(columns + i * kColumn, _mm256_permute2f128_ps(quad[i], quad[i + 4], 0x20));
    _mm256_storeu_ps(columns + (i + 4) * kColumn, _mm256_permute2f128_ps(quad[i], quad[i + 4], 0x31));
  }
}

}  // namespace

OLDGROWTH_AVX2 void transpose(const float* x, std::size_t stride, std::size_t n, std::size_t width, float* columns) {
  const std::size_t in_tiles = width < kLanes ? 0 : n / kLanes * kLanes;
  __m256 row[kLanes];
  for (std::size_t i = 0; i < in_tiles; i += kLanes)
    for (std::size_t j = 0; j < width; j += kLanes) {
      const std::size_t first = std::min(j, width - kLanes);  // the last tile shares columns with the one before
      for (std::size_t r = 0; r < kLanes; ++r) row[r] = _mm256_loadu_ps(x + (i + r) * stride + first);
      transpose_tile(row, columns + first * kColumn + i);
    }
  for (std::size_t i = in_tiles; i < n; ++i)
    for (std::size_t j = 0; j < width; ++j) columns[j * kColumn + i] = x[i * stride + j];
}

OLDGROWTH_AVX2 void gather(const float* x, const std::uint32_t* rows, std::size_t n, std::size_t width, float* copies,
                           float* columns) {
  const std::size_t in_tiles = width < kLanes ? 0 : n / kLanes * kLanes;
  __m256 row[kLanes];
  for (std::size_t i = 0; i < in_tiles; i += kLanes) {
    for (std::size_t r = i + kLanes; r < std::min(n, i + 2 * kLanes); ++r)
      fetch(x + rows[r] * width, width * sizeof(float));
    const float* from[kLanes];
    for (std::size_t r = 0; r < kLanes; ++r) from[r] = x + rows[i + r] * width;
    for (std::size_t j = 0; j < width; j += kLanes) {
      const std::size_t first = std::min(j, width - kLanes);
      for (std::size_t r = 0; r < kLanes; ++r) {
        row[r] = _mm256_loadu_ps(from[r] + first);
        _mm256_storeu_ps(copies + (i + r) * width + first, row[r]);
      }
      transpose_tile(row, columns + first * kColumn + i);
    }
  }
  for (std::size_t i = in_tiles; i < n; ++i)
    for (std::size_t j = 0; j < width; ++j) columns[j * kColumn + i] = copies[i * width + j] = x[rows[i] * width + j];
}

OLDGROWTH_AVX2 void skip_first_levels(const NodeFormat& format, const Node* nodes, const float* columns, std::size_t n,
                                      std::uint32_t* at) {
  const Levels levels(format, nodes, columns);
  const int* exit = reinterpret_cast<const int*>(levels.exit);
  for (std::size_t i = 0; i < n; i += 2 * kLanes) {
    const Two reached = exits<0>(levels, i);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(at + i), _mm256_i32gather_epi32(exit, reached.a, 4));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(at + i + kLanes), _mm256_i32gather_epi32(exit, reached.b, 4));
  }
}
#else
void transpose(const float*, std::size_t, std::size_t, std::size_t, float*) {}
void gather(const float*, const std::uint32_t*, std::size_t, std::size_t, float*, float*) {}
void skip_first_levels(const NodeFormat&, const Node*, const float*, std::size_t, std::uint32_t*) {}
#endif

}  // namespace oldgrowth
