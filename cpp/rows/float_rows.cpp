#include "rows/float_rows.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/cpu.hpp"

namespace oldgrowth {
namespace {

// Rows produced at a time, and columns converted together: both stay in the cache.
constexpr std::size_t kTile = 64;
constexpr std::size_t kColumns = 4;
constexpr std::size_t kBytes = 8;  // rows and columns of bytes that are transposed together
constexpr std::size_t kCheckedAtATime = 4096;

// Converts values of a column to float32, from row `start` on, and prefetches the next ones: there are more columns
// than hardware prefetchers can follow.
void convert(const Column& column, std::size_t start, std::size_t n, float* out) {
  std::visit(
      [&](const auto* values) {
        for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<float>(values[start + i]);
        for (std::size_t i = 0; i < n; i += 64 / sizeof *values) __builtin_prefetch(values + start + n + i);
      },
      column.values);
  if (column.missing == nullptr) return;
  for (std::size_t i = 0; i < n; ++i)
    if (column.missing[start + i]) out[i] = std::numeric_limits<float>::quiet_NaN();
}

// Four columns of n values become n rows, `width` floats apart.
void put_columns(const float (&columns)[kColumns][kTile], std::size_t n, std::size_t width, float* rows) {
  std::size_t i = 0;
#if defined(__SSE2__)
  for (; i + 4 <= n; i += 4) {
    __m128 a = _mm_loadu_ps(columns[0] + i), b = _mm_loadu_ps(columns[1] + i);
    __m128 c = _mm_loadu_ps(columns[2] + i), d = _mm_loadu_ps(columns[3] + i);
    _MM_TRANSPOSE4_PS(a, b, c, d);
    _mm_storeu_ps(rows + i * width, a);
    _mm_storeu_ps(rows + (i + 1) * width, b);
    _mm_storeu_ps(rows + (i + 2) * width, c);
    _mm_storeu_ps(rows + (i + 3) * width, d);
  }
#endif
  for (; i < n; ++i)
    for (std::size_t f = 0; f < kColumns; ++f) rows[i * width + f] = columns[f][i];
}

// The bytes of eight columns, from row `at` on, become eight rows, `width` bytes apart.
void put_bytes(const std::uint8_t* const* columns, std::size_t at, std::size_t width, std::uint8_t* rows) {
#if defined(__SSE2__)
  const auto load = [&](std::size_t f) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(columns[f] + at)); };
  const __m128i a = _mm_unpacklo_epi8(load(0), load(1)), b = _mm_unpacklo_epi8(load(2), load(3));
  const __m128i c = _mm_unpacklo_epi8(load(4), load(5)), d = _mm_unpacklo_epi8(load(6), load(7));
  const __m128i low_left = _mm_unpacklo_epi16(a, b), high_left = _mm_unpackhi_epi16(a, b);
  const __m128i low_right = _mm_unpacklo_epi16(c, d), high_right = _mm_unpackhi_epi16(c, d);
  const __m128i pairs[4] = {_mm_unpacklo_epi32(low_left, low_right), _mm_unpackhi_epi32(low_left, low_right),
                            _mm_unpacklo_epi32(high_left, high_right), _mm_unpackhi_epi32(high_left, high_right)};
  for (std::size_t i = 0; i < 4; ++i) {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(rows + 2 * i * width), pairs[i]);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(rows + (2 * i + 1) * width), _mm_unpackhi_epi64(pairs[i], pairs[i]));
  }
#else
  for (std::size_t i = 0; i < kBytes; ++i)
    for (std::size_t f = 0; f < kBytes; ++f) rows[i * width + f] = columns[f][at + i];
#endif
}

void convert_baseline(const std::uint8_t* bytes, std::size_t n, float* floats) {
  for (std::size_t i = 0; i < n; ++i) floats[i] = static_cast<float>(bytes[i]);
}

#if defined(__x86_64__)
OLDGROWTH_AVX2 void convert_avx2(const std::uint8_t* bytes, std::size_t n, float* floats) {
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i eight = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes + i));
    _mm256_storeu_ps(floats + i, _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(eight)));
  }
  convert_baseline(bytes + i, n - i, floats + i);
}
#endif

}  // namespace

void floats_of_bytes(const std::uint8_t* bytes, std::size_t n, float* floats) {
#if defined(__x86_64__)
  if (has_avx2()) return convert_avx2(bytes, n, floats);
#endif
  convert_baseline(bytes, n, floats);
}

void rows_of_bytes(std::span<const std::uint8_t* const> columns, std::size_t start, std::size_t n, std::uint8_t* rows) {
  const std::size_t width = columns.size();
  for (std::size_t first = 0; first < n; first += kTile) {
    const std::size_t end = std::min(n, first + kTile);
    std::size_t f = 0;
    for (; f + kBytes <= width; f += kBytes) {
      std::size_t i = first;
      for (; i + kBytes <= end; i += kBytes) put_bytes(&columns[f], start + i, width, rows + i * width + f);
      for (; i < end; ++i)
        for (std::size_t j = f; j < f + kBytes; ++j) rows[i * width + j] = columns[j][start + i];
    }
    for (; f < width; ++f)
      for (std::size_t i = first; i < end; ++i) rows[i * width + f] = columns[f][start + i];
  }
}

void rows_of_columns(std::span<const Column> columns, std::size_t start, std::size_t n, float* rows) {
  const std::size_t width = columns.size();
  float tile[kColumns][kTile];
  for (std::size_t first = 0; first < n; first += kTile) {
    const std::size_t count = std::min(kTile, n - first);
    float* out = rows + first * width;
    std::size_t f = 0;
    for (; f + kColumns <= width; f += kColumns) {
      for (std::size_t j = 0; j < kColumns; ++j) convert(columns[f + j], start + first, count, tile[j]);
      put_columns(tile, count, width, out + f);
    }
    for (; f < width; ++f) {
      convert(columns[f], start + first, count, tile[0]);
      for (std::size_t i = 0; i < count; ++i) out[i * width + f] = tile[0][i];
    }
  }
}

NonFinite find_non_finite(const float* values, std::size_t n) {
  constexpr std::uint32_t kExponent = 0x7f800000;  // all of it is set in infinite values and NaN only
  NonFinite found;
  for (std::size_t start = 0; start < n; start += kCheckedAtATime) {
    const std::size_t end = std::min(n, start + kCheckedAtATime);
    std::uint32_t odd = 0;
    for (std::size_t i = start; i < end; ++i)
      odd |= (std::bit_cast<std::uint32_t>(values[i]) & kExponent) == kExponent ? 1U : 0U;
    for (std::size_t i = start; odd != 0 && i < end; ++i) {
      found.missing |= std::isnan(values[i]);
      if (!std::isinf(values[i])) continue;
      found.infinite = static_cast<std::int64_t>(i);
      return found;
    }
  }
  return found;
}

}  // namespace oldgrowth
