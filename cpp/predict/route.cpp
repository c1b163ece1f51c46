#include "predict/route.hpp"

#include <algorithm>
#include <bit>

namespace oldgrowth {
namespace {

// Rows walked side by side: their loads do not wait for each other.
constexpr std::size_t kInFlight = 8;
// Steps between two checks for rows that have arrived. A row at its leaf stays there.
constexpr int kStepsAtATime = 4;
// Rows that are walked until all of them have arrived.
constexpr std::size_t kWalkers = 512;

// Where the parts of a node's upper half lie.
struct UpperHalf {
  std::uint64_t feature_bits, right_shift, sign_shift = 31;

  explicit UpperHalf(const NodeFormat& format)
      : feature_bits(format.feature_bits), right_shift(format.feature_bits + 1) {}
};

// The last node and the last feature that a step may use.
struct Bounds {
  const Node* last;
  std::uint64_t last_feature;
};

// The fields of a node that a step needs: all zero for a leaf, so that a row stays there.
struct Parts {
  std::uint64_t feature, right, left;  // offsets of the children
};

template <bool kBmi>
[[gnu::always_inline]] inline Parts parts_of(const UpperHalf& half, const Node* node) {
  Parts parts;
#if defined(__x86_64__)
  if constexpr (kBmi) {
    // By hand: compilers take three instructions more, which is a quarter of a step.
    asm("sarxl %k[sign_shift], 4(%[node]), %k[left]\n\t"
        "andnl 4(%[node]), %k[left], %k[right]\n\t"
        "bzhil %k[feature_bits], %k[right], %k[feature]\n\t"
        "shrxl %k[right_shift], %k[right], %k[right]\n\t"
        "incl %k[left]"
        : [feature] "=&r"(parts.feature), [right] "=&r"(parts.right), [left] "=&r"(parts.left)
        : [node] "r"(node), [sign_shift] "r"(half.sign_shift), [feature_bits] "r"(half.feature_bits),
          [right_shift] "r"(half.right_shift), "m"(*node)
        : "cc");
    return parts;
  }
#endif
  const auto at_leaf = static_cast<Node>(static_cast<std::int64_t>(*node) >> 63);  // all bits or none
  const std::uint64_t upper = (*node & ~at_leaf) >> 32;
  parts.feature = upper & ((1U << half.feature_bits) - 1);
  parts.right = upper >> half.right_shift;
  parts.left = at_leaf + 1;
  return parts;
}

// One step without a branch: directions are unpredictable.
template <bool kMayMiss, bool kBmi, bool kBounded>
[[gnu::always_inline]] inline const Node* step(const UpperHalf& half, const Bounds& bounds, const Node* at,
                                               const float* row) {
  Parts parts = parts_of<kBmi>(half, at);
  if constexpr (kBounded) parts.feature = std::min(parts.feature, bounds.last_feature);
  const float& x = row[parts.feature];
#if defined(__x86_64__)
  if constexpr (!kMayMiss) {
    // By hand: compilers make a branch of it, or four instructions more. NaN would compare as above.
    asm("comiss %[x], %[threshold]\n\tcmovae %[left], %[right]"
        : [right] "+r"(parts.right)
        : [x] "m"(x), [threshold] "x"(threshold(*at)), [left] "r"(parts.left)
        : "cc");
    return kBounded ? std::min(at + parts.right, bounds.last) : at + parts.right;
  }
#endif
  bool left = x <= threshold(*at);
  if constexpr (kMayMiss) left |= (x != x) & ((*at >> (32 + half.feature_bits)) & 1);
  const std::uint64_t right = static_cast<std::uint64_t>(left) - 1;  // all bits or none
  const Node* const next = at + ((parts.right & right) | (parts.left & ~right));
  return kBounded ? std::min(next, bounds.last) : next;
}

struct Walkers {
  const Node* at[kWalkers];
  const float* row[kWalkers];
  std::uint32_t number[kWalkers];  // which of the rows it is
};

// A tree, and for each row its leaf.
struct Walked {
  const Node* nodes;
  std::uint32_t* leaves;
};

// Advances kRows walkers, starting at `first`, by a few steps and keeps those not yet arrived.
template <bool kMayMiss, bool kBmi, bool kBounded, std::size_t kRows>
[[gnu::always_inline]] inline std::size_t advance(const UpperHalf& half, const Bounds& bounds, Walked walked,
                                                  Walkers& walkers, std::size_t first, std::size_t kept) {
  const float* row[kRows];
  const Node* at[kRows];
  for (std::size_t i = 0; i < kRows; ++i) {
    row[i] = walkers.row[first + i];
    at[i] = walkers.at[first + i];
  }
  for (int s = 0; s < kStepsAtATime; ++s)
    for (std::size_t i = 0; i < kRows; ++i) at[i] = step<kMayMiss, kBmi, kBounded>(half, bounds, at[i], row[i]);
  for (std::size_t i = 0; i < kRows; ++i) {
    const std::uint32_t number = walkers.number[first + i];
    walked.leaves[number] = static_cast<std::uint32_t>(at[i] - walked.nodes);
    walkers.at[kept] = at[i];
    walkers.row[kept] = row[i];
    walkers.number[kept] = number;
    kept += !is_leaf(*at[i]);
  }
  return kept;
}

template <bool kMayMiss, bool kBmi, bool kBounded>
[[gnu::always_inline]] inline void walk(const NodeFormat& format, const Node* nodes, const RowList& list,
                                        std::uint32_t* leaves, const Node* last) {
  const UpperHalf half(format);
  const Bounds bounds{last, list.stride - 1};
  // A step advances by at least one node, unless the nodes have changed.
  const std::size_t most_rounds = kBounded ? static_cast<std::size_t>(last - nodes) / kStepsAtATime + 1 : 0;
  Walkers walkers;
  for (std::size_t start = 0; start < list.n; start += kWalkers) {
    std::size_t walking = std::min(kWalkers, list.n - start);
    for (std::size_t i = 0; i < walking; ++i) {
      walkers.at[i] = nodes;
      walkers.row[i] = list.x + (list.rows ? list.rows[start + i] : start + i) * list.stride;
      walkers.number[i] = static_cast<std::uint32_t>(start + i);
    }
    for (std::size_t round = 0; walking > 0 && (!kBounded || round < most_rounds); ++round) {
      std::size_t first = 0, kept = 0;
      for (; first + kInFlight <= walking; first += kInFlight)
        kept = advance<kMayMiss, kBmi, kBounded, kInFlight>(half, bounds, {nodes, leaves}, walkers, first, kept);
      for (; first < walking; ++first)
        kept = advance<kMayMiss, kBmi, kBounded, 1>(half, bounds, {nodes, leaves}, walkers, first, kept);
      walking = kept;
    }
  }
}

// With instructions that not every machine has: fewer per step.
#if defined(__x86_64__)
template <bool kMayMiss, bool kBounded>
[[gnu::target("bmi,bmi2")]] void walk_bmi(const NodeFormat& format, const Node* nodes, const RowList& list,
                                          std::uint32_t* leaves, const Node* last) {
  walk<kMayMiss, true, kBounded>(format, nodes, list, leaves, last);
}
#endif

template <bool kMayMiss, bool kBounded>
void walk_as_fast_as_possible(const NodeFormat& format, const Node* nodes, const RowList& list, std::uint32_t* leaves,
                              const Node* last) {
#if defined(__x86_64__)
  static const bool has_bmi = __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  if (has_bmi) return walk_bmi<kMayMiss, kBounded>(format, nodes, list, leaves, last);
#endif
  walk<kMayMiss, false, kBounded>(format, nodes, list, leaves, last);
}

}  // namespace

void find_leaves(const NodeFormat& format, const Node* nodes, const RowList& list, std::uint32_t* leaves,
                 const Node* last) {
  const auto walk =
      last != nullptr
          ? (list.may_miss ? walk_as_fast_as_possible<true, true> : walk_as_fast_as_possible<false, true>)
          : (list.may_miss ? walk_as_fast_as_possible<true, false> : walk_as_fast_as_possible<false, false>);
  walk(format, nodes, list, leaves, last);
}

void find_leaves_by_sets(const NodeFormat& format, std::span<const Node> nodes, const Categories& categories,
                         const RowList& list, std::uint32_t* leaves) {
  const std::size_t last_feature = list.stride - 1, last = nodes.size() - 1;
  for (std::size_t i = 0; i < list.n; ++i) {
    const float* row = list.x + (list.rows ? list.rows[i] : i) * list.stride;
    std::size_t at = 0;
    // The nodes may change meanwhile: whatever they contain, the walk ends.
    for (Node node = read_node(&nodes[0]); !is_leaf(node) && at < last; node = read_node(&nodes[at])) {
      const auto feature = static_cast<std::uint32_t>(std::min<std::size_t>(format.feature(node), last_feature));
      const float x = row[feature];
      const bool left = categories.has(feature) ? goes_left(categories, feature, node, format.missing_left(node), x)
                        : x != x                ? format.missing_left(node)
                                                : x <= threshold(node);
      at = std::min(at + (left ? 1 : std::max<std::size_t>(format.right(node), 1)), last);
    }
    leaves[i] = static_cast<std::uint32_t>(at);
  }
}

void route(const NodeFormat& format, std::span<const Node> nodes, const Categories& categories, const RowList& list,
           std::uint32_t* buckets) {
  if (categories.any())
    find_leaves_by_sets(format, nodes, categories, list, buckets);
  else
    find_leaves(format, nodes.data(), list, buckets);
  for (std::size_t i = 0; i < list.n; ++i) buckets[i] = static_cast<std::uint32_t>(payload(nodes[buckets[i]]));
}

}  // namespace oldgrowth
