// A block of rows by columns: walkers of neighbouring rows share cache lines, and a vector of rows is one load.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oldgrowth {

// Maximum number of rows that are walked through trees together.
inline constexpr std::size_t kBlock = 256;
// The distance between columns of a block: more than its rows, so that columns do not compete for the same cache sets.
inline constexpr std::size_t kColumn = kBlock + 16;

// Writes the columns of n rows of `width` values: those listed in `rows`, or the first n of x. The output needs room
// for width * kColumn values.
void to_columns(const float* x, const std::uint32_t* rows, std::size_t n, std::size_t width, float* columns);

}  // namespace oldgrowth
