#include "float_rows.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace oldgrowth {
namespace {

// Rows made at a time: they stay in the cache, column after column.
constexpr std::size_t kTile = 64;
constexpr std::size_t kLookedOverAtATime = 4096;

}  // namespace

void rows_of_columns(std::span<const Column> columns, std::size_t start, std::size_t n, float* rows) {
  const std::size_t width = columns.size();
  for (std::size_t first = 0; first < n; first += kTile) {
    const std::size_t count = std::min(kTile, n - first);
    for (std::size_t f = 0; f < width; ++f) {
      float* out = rows + first * width + f;
      std::visit(
          [&](const auto* values) {
            values += start + first;
            for (std::size_t i = 0; i < count; ++i) out[i * width] = static_cast<float>(values[i]);
          },
          columns[f].values);
      if (const bool* missing = columns[f].missing)
        for (std::size_t i = 0; i < count; ++i)
          if (missing[start + first + i]) out[i * width] = std::numeric_limits<float>::quiet_NaN();
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
