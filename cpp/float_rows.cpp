#include "float_rows.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace oldgrowth {
namespace {

// Rows made at a time, and columns made float together: both stay in the cache.
constexpr std::size_t kTile = 64;
constexpr std::size_t kColumns = 4;
constexpr std::size_t kLookedOverAtATime = 4096;

// Values of a column as float32, from row `start` on; what comes next of it is on its way then. There are more
// columns than the hardware would fetch ahead by itself.
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

}  // namespace

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

Oddities look_over(const float* values, std::size_t n) {
  constexpr std::uint32_t kExponent = 0x7f800000;  // all of it is set in infinite values and NaN only
  Oddities found;
  for (std::size_t start = 0; start < n; start += kLookedOverAtATime) {
    const std::size_t end = std::min(n, start + kLookedOverAtATime);
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
