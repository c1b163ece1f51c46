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
// Rows for which it is worth to lay out the first levels of a tree.
constexpr std::size_t kWorthSkipping = 64;

// Where the parts of a node lie.
struct NodeParts {
  std::uint64_t feature_mask;
  std::uint32_t missing_shift, right_shift;

  explicit NodeParts(const NodeFormat& format)
      : feature_mask((1ULL << format.feature_bits) - 1),
        missing_shift(format.feature_bits + 32),
        right_shift(format.feature_bits + 33) {}
};

// One step without a branch: which way a row goes cannot be foreseen.
template <bool kMayMiss>
[[gnu::always_inline]] inline const Node* step(const NodeParts& parts, const Node* at, const float* row) {
  const auto at_leaf = static_cast<Node>(static_cast<std::int64_t>(*at) >> 63);  // all bits or none
  const Node node = *at & ~at_leaf;
  const float* x = row + ((node >> 32) & parts.feature_mask);
  Node away = node >> parts.right_shift;
#if defined(__x86_64__)
  if constexpr (!kMayMiss) {
    // By hand: compilers make a branch of it, or four instructions more. NaN would compare as above.
    asm("comiss %[x], %[threshold]\n\tcmovae %[next], %[away]"
        : [away] "+r"(away)
        : [x] "m"(*x), [threshold] "x"(threshold(*at)), [next] "r"(at_leaf + 1)
        : "cc");
    return at + away;
  }
#endif
  bool left = *x <= threshold(*at);
  if constexpr (kMayMiss) left |= (*x != *x) & ((node >> parts.missing_shift) & 1);
  const Node chosen = static_cast<Node>(left) - 1;  // none or all bits: right
  away = (away & chosen) | ((at_leaf + 1) & ~chosen);
  return at + away;
}

struct Walkers {
  std::uint32_t at[kBlock];      // node
  std::uint32_t number[kBlock];  // which of the rows it is
};

// Takes kRows walkers from `first` on a few steps further and keeps those that have not arrived.
template <bool kMayMiss, std::size_t kRows, class Leaf>
[[gnu::always_inline]] inline std::size_t advance(const NodeParts& parts, const Node* nodes, const RowList& list,
                                                  Walkers& walkers, std::size_t first, std::size_t kept, Leaf* leaves) {
  const float* row[kRows];
  const Node* at[kRows];
  for (std::size_t i = 0; i < kRows; ++i) {
    const std::size_t number = walkers.number[first + i];
    row[i] = list.x + (list.rows ? list.rows[number] : number) * list.stride;
    at[i] = nodes + walkers.at[first + i];
  }
  for (int s = 0; s < kStepsAtATime; ++s)
    for (std::size_t i = 0; i < kRows; ++i) at[i] = step<kMayMiss>(parts, at[i], row[i]);
  for (std::size_t i = 0; i < kRows; ++i) {
    const std::uint32_t number = walkers.number[first + i];
    const auto index = static_cast<std::uint32_t>(at[i] - nodes);
    if constexpr (std::is_same_v<Leaf, Node>)
      leaves[number] = *at[i];
    else
      leaves[number] = index;
    walkers.at[kept] = index;
    walkers.number[kept] = number;
    kept += !is_leaf(*at[i]);
  }
  return kept;
}

template <bool kMayMiss, class Leaf>
[[gnu::always_inline]] inline void walk(const NodeFormat& format, const Node* nodes, const RowList& list,
                                        Leaf* leaves) {
  const NodeParts parts(format);
  Walkers walkers;
  for (std::size_t start = 0; start < list.n; start += kBlock) {
    std::size_t walking = std::min(kBlock, list.n - start);
    if (!kMayMiss && list.columns != nullptr && walking >= kWorthSkipping)
      skip_first_levels(format, nodes, list.columns, walking, walkers.at);
    else
      std::fill_n(walkers.at, walking, 0);
    for (std::size_t i = 0; i < walking; ++i) walkers.number[i] = static_cast<std::uint32_t>(start + i);
    while (walking > 0) {
      std::size_t first = 0, kept = 0;
      for (; first + kInFlight <= walking; first += kInFlight)
        kept = advance<kMayMiss, kInFlight>(parts, nodes, list, walkers, first, kept, leaves);
      for (; first < walking; ++first) kept = advance<kMayMiss, 1>(parts, nodes, list, walkers, first, kept, leaves);
      walking = kept;
    }
  }
}

// The same in instructions that not every machine has: fewer per step.
#if defined(__x86_64__)
template <bool kMayMiss, class Leaf>
[[gnu::target("bmi,bmi2")]] void walk_bmi(const NodeFormat& format, const Node* nodes, const RowList& list,
                                          Leaf* leaves) {
  walk<kMayMiss>(format, nodes, list, leaves);
}
#endif

template <bool kMayMiss, class Leaf>
void walk_as_fast_as_possible(const NodeFormat& format, const Node* nodes, const RowList& list, Leaf* leaves) {
#if defined(__x86_64__)
  static const bool has_bmi = __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  if (has_bmi) return walk_bmi<kMayMiss>(format, nodes, list, leaves);
#endif
  walk<kMayMiss>(format, nodes, list, leaves);
}

}  // namespace

template <class Leaf>
void find_leaves(const NodeFormat& format, const Node* nodes, const RowList& list, Leaf* leaves) {
  if (list.may_miss)
    walk_as_fast_as_possible<true>(format, nodes, list, leaves);
  else
    walk_as_fast_as_possible<false>(format, nodes, list, leaves);
}

template void find_leaves(const NodeFormat&, const Node*, const RowList&, std::uint32_t*);
template void find_leaves(const NodeFormat&, const Node*, const RowList&, Node*);

void route(const NodeFormat& format, const Node* nodes, const RowList& list, std::uint32_t* buckets) {
  find_leaves(format, nodes, list, buckets);
  for (std::size_t i = 0; i < list.n; ++i) buckets[i] = static_cast<std::uint32_t>(payload(nodes[buckets[i]]));
}

}  // namespace oldgrowth
