#include "route.hpp"

#include <algorithm>
#include <bit>
#include <type_traits>

namespace oldgrowth {
namespace {

// Rows walked side by side: their loads do not wait for each other.
constexpr std::size_t kInFlight = 8;
// Steps between two looks at which rows have arrived. A row at its leaf stays there.
constexpr int kStepsAtATime = 4;
// Rows of which those still on their way are walked together.
constexpr std::size_t kTogether = 512;

// Where the parts of a node's upper half lie.
struct UpperHalf {
  std::uint32_t feature_mask, missing_shift, right_shift;

  explicit UpperHalf(const NodeFormat& format)
      : feature_mask((1U << format.feature_bits) - 1),
        missing_shift(format.feature_bits),
        right_shift(format.feature_bits + 1) {}
};

// One step without a branch: which way a row goes cannot be foreseen.
template <bool kMayMiss>
inline std::uint32_t step(const UpperHalf& half, const Node* node, const float* row) {
  const auto upper = static_cast<std::uint32_t>(*node >> 32);
  const auto at_leaf = static_cast<std::uint32_t>(static_cast<std::int32_t>(upper) >> 31);
#if defined(__x86_64__)
  if constexpr (!kMayMiss) {
    // By hand: compilers make a branch of it, or four instructions more. NaN would compare as above.
    std::uint32_t away = upper >> half.right_shift;
    asm("comiss %[x], %[threshold]\n\tcmovae %[one], %[away]"
        : [away] "+r"(away)
        : [x] "m"(row[upper & half.feature_mask & ~at_leaf]),
          [threshold] "x"(std::bit_cast<float>(static_cast<std::uint32_t>(*node))), [one] "r"(1U)
        : "cc");
    return away & ~at_leaf;
  }
#endif
  const float x = row[upper & half.feature_mask & ~at_leaf];
  bool left = x <= std::bit_cast<float>(static_cast<std::uint32_t>(*node));
  if constexpr (kMayMiss) left |= (x != x) & ((upper >> half.missing_shift) & 1);
  const std::uint32_t far = (upper >> half.right_shift) - 1;
  return (1 + (far & (static_cast<std::uint32_t>(left) - 1))) & ~at_leaf;
}

struct Walkers {
  std::uint32_t at[kTogether];      // node
  std::uint32_t number[kTogether];  // which of the rows it is
};

// Takes kRows walkers from `first` on a few steps further and keeps those that have not arrived.
template <bool kMayMiss, std::size_t kRows, class Leaf>
inline std::size_t advance(const UpperHalf& half, const Node* nodes, const RowList& list, Walkers& walkers,
                           std::size_t first, std::size_t kept, Leaf* leaves) {
  const float* row[kRows];
  std::uint32_t at[kRows];
  for (std::size_t i = 0; i < kRows; ++i) {
    const std::size_t number = walkers.number[first + i];
    row[i] = list.x + (list.rows ? list.rows[number] : number) * list.stride;
    at[i] = walkers.at[first + i];
  }
  for (int s = 0; s < kStepsAtATime; ++s)
    for (std::size_t i = 0; i < kRows; ++i) at[i] += step<kMayMiss>(half, nodes + at[i], row[i]);
  for (std::size_t i = 0; i < kRows; ++i) {
    const std::uint32_t number = walkers.number[first + i];
    const Node node = nodes[at[i]];
    if constexpr (std::is_same_v<Leaf, Node>)
      leaves[number] = node;
    else
      leaves[number] = at[i];
    walkers.at[kept] = at[i];
    walkers.number[kept] = number;
    kept += !is_leaf(node);
  }
  return kept;
}

template <bool kMayMiss, class Leaf>
void walk(const NodeFormat& format, const Node* nodes, const RowList& list, Leaf* leaves) {
  const UpperHalf half(format);
  Walkers walkers;
  for (std::size_t start = 0; start < list.n; start += kTogether) {
    std::size_t walking = std::min(kTogether, list.n - start);
    for (std::size_t i = 0; i < walking; ++i) {
      walkers.at[i] = 0;
      walkers.number[i] = static_cast<std::uint32_t>(start + i);
    }
    while (walking > 0) {
      std::size_t first = 0, kept = 0;
      for (; first + kInFlight <= walking; first += kInFlight)
        kept = advance<kMayMiss, kInFlight>(half, nodes, list, walkers, first, kept, leaves);
      for (; first < walking; ++first) kept = advance<kMayMiss, 1>(half, nodes, list, walkers, first, kept, leaves);
      walking = kept;
    }
  }
}

}  // namespace

template <class Leaf>
void find_leaves(const NodeFormat& format, const Node* nodes, const RowList& list, Leaf* leaves) {
  if (list.may_miss)
    walk<true>(format, nodes, list, leaves);
  else
    walk<false>(format, nodes, list, leaves);
}

template void find_leaves(const NodeFormat&, const Node*, const RowList&, std::uint32_t*);
template void find_leaves(const NodeFormat&, const Node*, const RowList&, Node*);

void route(const NodeFormat& format, const Node* nodes, const RowList& list, std::uint32_t* buckets) {
  find_leaves(format, nodes, list, buckets);
  for (std::size_t i = 0; i < list.n; ++i) buckets[i] = static_cast<std::uint32_t>(payload(nodes[buckets[i]]));
}

}  // namespace oldgrowth
