// The first levels of a tree for sixteen rows at a time: nearly all rows go through them, so comparing each row
// with each of their nodes costs less than walking.
#pragma once

#include <cstddef>
#include <cstdint>

#include "node.hpp"

namespace oldgrowth {

// Rows that are taken through a tree together, at most.
inline constexpr std::size_t kBlock = 512;
// From one column of a block to the next: more than its rows, or the columns would share the same cache lines.
inline constexpr std::size_t kColumn = kBlock + 16;

// Whether this machine can do it.
bool has_first_levels();

// The columns of n rows of `width` values, which lie `stride` from each other. There is room for width * kColumn.
void transpose(const float* x, std::size_t stride, std::size_t n, std::size_t width, float* columns);

// The same of some rows of x, which lie anywhere, and the rows themselves side by side. There is room for n * width
// copies.
void gather(const float* x, const std::uint32_t* rows, std::size_t n, std::size_t width, float* copies, float* columns);

// The node that each of n rows has reached after the first levels, or its leaf before that. No value may be NaN.
// There is room for kBlock.
void skip_first_levels(const NodeFormat& format, const Node* nodes, const float* columns, std::size_t n,
                       std::uint32_t* at);

}  // namespace oldgrowth
