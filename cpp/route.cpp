#include "route.hpp"

#include <algorithm>

namespace oldgrowth {
namespace {

constexpr std::size_t kInFlight = 8;

template <bool kMayMiss>
std::uint32_t next(const NodeFormat& format, Node node, std::uint32_t at, const float* row) {
  const float x = row[format.feature(node)];
  bool left = x <= threshold(node);
  if constexpr (kMayMiss) left |= (x != x) & format.missing_left(node);
  return at + (left ? 1U : static_cast<std::uint32_t>(format.right(node)));
}

}  // namespace

template <bool kMayMiss>
void find_leaves(const NodeFormat& format, const Node* nodes, const float* x, std::size_t stride,
                 const std::uint32_t* rows, std::size_t n, std::uint32_t* leaves) {
  for (std::size_t start = 0; start < n; start += kInFlight) {
    const std::size_t count = std::min(kInFlight, n - start);
    const float* row[kInFlight];
    std::uint32_t at[kInFlight];
    std::size_t lane[kInFlight];
    for (std::size_t i = 0; i < count; ++i) {
      row[i] = x + (rows ? rows[start + i] : start + i) * stride;
      at[i] = 0;
      lane[i] = i;
    }
    for (std::size_t walking = count; walking > 0;) {
      std::size_t still = 0;
      for (std::size_t j = 0; j < walking; ++j) {
        const std::size_t i = lane[j];
        const Node node = nodes[at[i]];
        if (is_leaf(node)) continue;
        at[i] = next<kMayMiss>(format, node, at[i], row[i]);
        lane[still++] = i;
      }
      walking = still;
    }
    std::copy_n(at, count, leaves + start);
  }
}

template void find_leaves<false>(const NodeFormat&, const Node*, const float*, std::size_t, const std::uint32_t*,
                                 std::size_t, std::uint32_t*);
template void find_leaves<true>(const NodeFormat&, const Node*, const float*, std::size_t, const std::uint32_t*,
                                std::size_t, std::uint32_t*);

void route(const NodeFormat& format, const Node* nodes, const float* x, std::size_t stride, std::size_t n,
           std::uint32_t* buckets) {
  find_leaves<true>(format, nodes, x, stride, nullptr, n, buckets);
  for (std::size_t i = 0; i < n; ++i) buckets[i] = static_cast<std::uint32_t>(payload(nodes[buckets[i]]));
}

}  // namespace oldgrowth
