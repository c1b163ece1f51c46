// Rows in the form that all stages read: float32, or bytes that are converted to float32 in the cache. They are made
// from columns of any type, and checked for values that are not finite.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

namespace oldgrowth {

using ColumnValues = std::variant<const std::int8_t*, const std::uint8_t*, const std::int16_t*, const std::uint16_t*,
                                  const std::int32_t*, const std::uint32_t*, const std::int64_t*, const std::uint64_t*,
                                  const float*, const double*>;

struct Column {
  ColumnValues values;
  const bool* missing;  // nullptr if no value is missing
};

// Makes the rows start..start+n of some columns. Missing values become NaN, values beyond float32 infinite.
void rows_of_columns(std::span<const Column> columns, std::size_t start, std::size_t n, float* rows);

// The same for columns of bytes, none of them missing.
void rows_of_bytes(std::span<const std::uint8_t* const> columns, std::size_t start, std::size_t n, std::uint8_t* rows);

void floats_of_bytes(const std::uint8_t* bytes, std::size_t n, float* floats);

// Calls use(first, floats, count) for all rows, each of `width` values, in parts of a suitable size.
template <class Use>
void as_floats(const float* rows, std::size_t n, std::size_t, Use use) {
  use(std::size_t{0}, rows, n);
}

template <class Use>
void as_floats(const std::uint8_t* rows, std::size_t n, std::size_t width, Use use) {
  constexpr std::size_t kFloats = 1 << 14;  // these stay in the cache
  const std::size_t at_a_time = std::max<std::size_t>(64, kFloats / std::max<std::size_t>(1, width) / 64 * 64);
  std::vector<float> floats(std::min(n, at_a_time) * width);
  for (std::size_t first = 0; first < n; first += at_a_time) {
    const std::size_t count = std::min(at_a_time, n - first);
    floats_of_bytes(rows + first * width, count * width, floats.data());
    use(first, floats.data(), count);
  }
}

struct NonFinite {
  std::int64_t infinite = -1;  // the place of the first infinite value
  bool missing = false;        // there is a NaN, before that place at least
};

NonFinite find_non_finite(const float* values, std::size_t n);

}  // namespace oldgrowth
