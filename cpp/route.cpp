#include "route.hpp"

#include <algorithm>

namespace oldgrowth {
namespace {

// Rows walked side by side: their loads do not wait for each other.
constexpr std::size_t kInFlight = 8;
// Steps between two looks at whether all have arrived. A row at its leaf stays there.
constexpr int kStepsAtATime = 2;

// One step without a branch: which way a row goes cannot be foreseen.
template <bool kMayMiss>
inline std::uint64_t step(const NodeFormat& format, Node node, const float* row) {
  const auto at_leaf = static_cast<std::uint64_t>(static_cast<std::int64_t>(node) >> 63);
  const float x = row[format.feature(node & ~at_leaf)];
  bool right = !(x <= threshold(node));
  if constexpr (kMayMiss) right &= !((x != x) & format.missing_left(node));
  const std::uint64_t far = format.right(node) - 1;
  return (1 + (far & (0 - static_cast<std::uint64_t>(right)))) & ~at_leaf;
}

}  // namespace

template <bool kMayMiss>
void find_leaves(const NodeFormat& format, const Node* nodes, const float* x, std::size_t stride,
                 const std::uint32_t* rows, std::size_t n, std::uint32_t* leaves) {
  for (std::size_t start = 0; start < n; start += kInFlight) {
    const std::size_t count = std::min(kInFlight, n - start);
    const float* row[kInFlight];
    std::uint64_t at[kInFlight];
    for (std::size_t i = 0; i < kInFlight; ++i) {
      const std::size_t which = start + std::min(i, count - 1);
      row[i] = x + (rows ? rows[which] : which) * stride;
      at[i] = 0;
    }
    for (bool arrived = false; !arrived;) {
      for (int s = 0; s < kStepsAtATime; ++s)
        for (std::size_t i = 0; i < kInFlight; ++i) at[i] += step<kMayMiss>(format, nodes[at[i]], row[i]);
      Node all = kLeafBit;
      for (std::size_t i = 0; i < kInFlight; ++i) all &= nodes[at[i]];
      arrived = is_leaf(all);
    }
    for (std::size_t i = 0; i < count; ++i) leaves[start + i] = static_cast<std::uint32_t>(at[i]);
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
