#include "first_levels.hpp"

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

// The numbers of the exits that eight rows reach below a node.
template <std::size_t kNode>
OLDGROWTH_AVX2 [[gnu::always_inline]] inline __m256i exits(const Levels& levels, std::size_t row) {
  const __m256 left = _mm256_cmp_ps(_mm256_loadu_ps(levels.column[kNode] + row),
                                    _mm256_broadcast_ss(&levels.threshold[kNode]), _CMP_LE_OQ);
  if constexpr (2 * kNode + 1 >= kInner) {
    constexpr int right_exit = static_cast<int>(2 * kNode + 2 - kInner);
    return _mm256_add_epi32(_mm256_set1_epi32(right_exit), _mm256_castps_si256(left));
  } else {
    return _mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(exits<2 * kNode + 2>(levels, row)),
                                                _mm256_castsi256_ps(exits<2 * kNode + 1>(levels, row)), left));
  }
}

OLDGROWTH_AVX2 void transpose_tile(const float* x, std::size_t stride, float* columns) {
  __m256 row[kLanes], pair[kLanes], quad[kLanes];
  for (std::size_t i = 0; i < kLanes; ++i) row[i] = _mm256_loadu_ps(x + i * stride);
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

void transpose(const float* x, std::size_t stride, std::size_t n, std::size_t width, float* columns) {
  const std::size_t in_tiles = width < kLanes ? 0 : n / kLanes * kLanes;
  for (std::size_t i = 0; i < in_tiles; i += kLanes) {
    const float* rows = x + i * stride;
    for (std::size_t j = 0; j + kLanes <= width; j += kLanes)
      transpose_tile(rows + j, stride, columns + j * kColumn + i);
    const std::size_t last = width - kLanes;  // once more what it shares with the tile before
    if (width % kLanes != 0) transpose_tile(rows + last, stride, columns + last * kColumn + i);
  }
  for (std::size_t i = in_tiles; i < n; ++i)
    for (std::size_t j = 0; j < width; ++j) columns[j * kColumn + i] = x[i * stride + j];
}

OLDGROWTH_AVX2 void skip_first_levels(const NodeFormat& format, const Node* nodes, const float* columns, std::size_t n,
                                      std::uint32_t* at) {
  const Levels levels(format, nodes, columns);
  const int* exit = reinterpret_cast<const int*>(levels.exit);
  for (std::size_t i = 0; i < n; i += kLanes)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(at + i), _mm256_i32gather_epi32(exit, exits<0>(levels, i), 4));
}
#else
void transpose(const float*, std::size_t, std::size_t, std::size_t, float*) {}
void skip_first_levels(const NodeFormat&, const Node*, const float*, std::size_t, std::uint32_t*) {}
#endif

}  // namespace oldgrowth
