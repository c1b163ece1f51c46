// A block of rows by columns: walkers of neighbouring rows share cache lines, and a vector of rows is one load.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oldgrowth {

// Rows that are taken through trees together, at most.
inline constexpr std::size_t kBlock = 256;
// From one column of a block to the next: more than its rows, or the columns would share the same cache lines.
inline constexpr std::size_t kColumn = kBlock + 16;

// The columns of n rows of `width` values: those that `rows` lists, or the first n of x. There is room for
// width * kColumn.
void to_columns(const float* x, const std::uint32_t* rows, std::size_t n, std::size_t width, float* columns);

}  // namespace oldgrowth
