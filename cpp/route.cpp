#include "route.hpp"

#include <algorithm>

namespace oldgrowth {
namespace {

// Rows walked side by side: their loads do not wait for each other.
constexpr std::size_t kInFlight = 8;
// Steps between two looks at which rows have arrived. A row at its leaf stays there.
constexpr int kStepsAtATime = 4;
// Rows of which those still on their way are walked together.
constexpr std::size_t kTogether = 256;

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

struct Walkers {
  std::uint64_t at[kTogether];  // node
  const float* row[kTogether];
  std::uint32_t number[kTogether];  // which of the rows it is
};

// Takes kRows walkers from `first` on a few steps further and keeps those that have not arrived.
template <bool kMayMiss, std::size_t kRows>
inline std::size_t advance(const NodeFormat& format, const Node* nodes, Walkers& walkers, std::size_t first,
                           std::size_t kept, std::uint32_t* leaves) {
  const float* row[kRows];
  std::uint64_t at[kRows];
  for (std::size_t i = 0; i < kRows; ++i) {
    row[i] = walkers.row[first + i];
    at[i] = walkers.at[first + i];
  }
  for (int s = 0; s < kStepsAtATime; ++s)
    for (std::size_t i = 0; i < kRows; ++i) at[i] += step<kMayMiss>(format, nodes[at[i]], row[i]);
  for (std::size_t i = 0; i < kRows; ++i) {
    const std::uint32_t number = walkers.number[first + i];
    leaves[number] = static_cast<std::uint32_t>(at[i]);
    walkers.at[kept] = at[i];
    walkers.row[kept] = row[i];
    walkers.number[kept] = number;
    kept += !is_leaf(nodes[at[i]]);
  }
  return kept;
}

}  // namespace

template <bool kMayMiss>
void find_leaves(const NodeFormat& format, const Node* nodes, const float* x, std::size_t stride,
                 const std::uint32_t* rows, std::size_t n, std::uint32_t* leaves) {
  Walkers walkers;
  for (std::size_t start = 0; start < n; start += kTogether) {
    std::size_t walking = std::min(kTogether, n - start);
    for (std::size_t i = 0; i < walking; ++i) {
      walkers.at[i] = 0;
      walkers.row[i] = x + (rows ? rows[start + i] : start + i) * stride;
      walkers.number[i] = static_cast<std::uint32_t>(start + i);
    }
    while (walking > 0) {
      std::size_t first = 0, kept = 0;
      for (; first + kInFlight <= walking; first += kInFlight)
        kept = advance<kMayMiss, kInFlight>(format, nodes, walkers, first, kept, leaves);
      for (; first < walking; ++first) kept = advance<kMayMiss, 1>(format, nodes, walkers, first, kept, leaves);
      walking = kept;
    }
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
