// Which leaf a row reaches: buckets of a top tree, leaves of a bottom tree.
#pragma once

#include <cstddef>
#include <cstdint>

#include "node.hpp"

namespace oldgrowth {

// For each of n rows, the index of its leaf in `nodes`. Rows are rows[i] * stride floats from `x`
// (i * stride without `rows`). Several rows are in flight at a time to hide the latency of memory.
template <bool kMayMiss>
void find_leaves(const NodeFormat& format, const Node* nodes, const float* x, std::size_t stride,
                 const std::uint32_t* rows, std::size_t n, std::uint32_t* leaves);

// The bucket of each row in a top tree.
void route(const NodeFormat& format, const Node* nodes, const float* x, std::size_t stride, std::size_t n,
           std::uint32_t* buckets);

}  // namespace oldgrowth
