// Rows of float32, as all stages read them: made of columns of any type, and looked over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

namespace oldgrowth {

using ColumnValues = std::variant<const std::int8_t*, const std::uint8_t*, const std::int16_t*, const std::uint16_t*,
                                  const std::int32_t*, const std::uint32_t*, const std::int64_t*, const std::uint64_t*,
                                  const float*, const double*>;

struct Column {
  ColumnValues values;
  const bool* missing;  // nullptr: none is
};

// The rows start..start+n of some columns. Missing values become NaN, values beyond float32 infinite.
void rows_of_columns(std::span<const Column> columns, std::size_t start, std::size_t n, float* rows);

struct Oddities {
  std::int64_t infinite = -1;  // the first of the infinite values
  bool missing = false;        // one is NaN
};

Oddities look_over(const float* values, std::size_t n);

}  // namespace oldgrowth
