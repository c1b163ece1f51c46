#include "predict/columns.hpp"

#include <algorithm>

#include "base/cpu.hpp"

namespace oldgrowth {
namespace {

constexpr std::size_t kLanes = 8;
constexpr std::size_t kNarrowAhead = 24;  // rows that narrow ones are prefetched ahead

const float* row_of(const float* x, const std::uint32_t* rows, std::size_t i, std::size_t width) {
  return x + (rows != nullptr ? rows[i] : i) * width;
}

void to_columns_plainly(const float* x, const std::uint32_t* rows, std::size_t first, std::size_t n, std::size_t width,
                        float* columns) {
  for (std::size_t i = first; i < n; ++i) {
    const float* row = row_of(x, rows, i, width);
    for (std::size_t j = 0; j < width; ++j) columns[j * kColumn + i] = row[j];
  }
}

#if defined(__x86_64__)
// Eight values of eight rows become columns, of which the first `n` are written.
OLDGROWTH_AVX2 [[gnu::always_inline]] inline void transpose(const __m256 (&row)[kLanes], std::size_t n,
                                                            float* columns) {
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
    if (i < n) _mm256_storeu_ps(columns + i * kColumn, _mm256_permute2f128_ps(quad[i], quad[i + 4], 0x20));
    if (i + 4 < n) _mm256_storeu_ps(columns + (i + 4) * kColumn, _mm256_permute2f128_ps(quad[i], quad[i + 4], 0x31));
  }
}

// Transposes as many rows as fit tiles of eight by eight; returns their number.
OLDGROWTH_AVX2 std::size_t to_columns_in_tiles(const float* x, const std::uint32_t* rows, std::size_t n,
                                               std::size_t width, float* columns) {
  const std::size_t in_tiles = n / kLanes * kLanes;
  for (std::size_t i = 0; i < in_tiles; i += kLanes) {
    for (std::size_t r = i + kLanes; r < std::min(n, i + 2 * kLanes); ++r)
      fetch(row_of(x, rows, r, width), width * sizeof(float));
    const float* from[kLanes];
    for (std::size_t r = 0; r < kLanes; ++r) from[r] = row_of(x, rows, i + r, width);
    for (std::size_t j = 0; j < width; j += kLanes) {
      const std::size_t first = std::min(j, width - kLanes);  // the last tile shares columns with the one before
      __m256 row[kLanes];
      for (std::size_t r = 0; r < kLanes; ++r) row[r] = _mm256_loadu_ps(from[r] + first);
      transpose(row, kLanes, columns + first * kColumn + i);
    }
  }
  return in_tiles;
}

// The same for rows of fewer values than a tile has.
OLDGROWTH_AVX2 std::size_t narrow_to_columns_in_tiles(const float* x, const std::uint32_t* rows, std::size_t n,
                                                      std::size_t width, float* columns) {
  const std::size_t in_tiles = n / kLanes * kLanes;
  const __m256i place = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i inside = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(width)), place);
  for (std::size_t i = 0; i < in_tiles; i += kLanes) {
    for (std::size_t r = i + kNarrowAhead; r < std::min(n, i + kNarrowAhead + kLanes); ++r)
      fetch(row_of(x, rows, r, width), width * sizeof(float));
    __m256 row[kLanes];
    for (std::size_t r = 0; r < kLanes; ++r) row[r] = _mm256_maskload_ps(row_of(x, rows, i + r, width), inside);
    transpose(row, width, columns + i);
  }
  return in_tiles;
}
#endif

}  // namespace

void to_columns(const float* x, const std::uint32_t* rows, std::size_t n, std::size_t width, float* columns) {
  std::size_t done = 0;
#if defined(__x86_64__)
  if (has_avx2() && width < kLanes)
    done = narrow_to_columns_in_tiles(x, rows, n, width, columns);
  else if (has_avx2())
    done = to_columns_in_tiles(x, rows, n, width, columns);
#endif
  to_columns_plainly(x, rows, done, n, width, columns);
}

}  // namespace oldgrowth
