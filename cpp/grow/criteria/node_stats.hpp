// The interface of a criterion to the grower and the split searches: statistics of a node's targets, and a score for
// "these rows left, the others right". Calls are resolved at compile time.
//
// A criterion is a struct with
//   kNames                    its names for users
//   Stats<counts>             a NodeStats; with `counts`, payloads carry classes and small whole weights (targets.hpp)
// Statistics for classes derive from ClassTotals, those for values from ValueSums. Those for values also have
//   impurity(values, weights)    of rows as one node, against which a gain is weighed if there is balance
//   impurity_unit(target_scale)  by which an impurity grows if all values do so by target_scale
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "grow/targets.hpp"

namespace oldgrowth {

template <class Stats>
concept NodeStats = requires(Stats stats, const Stats node, const Targets& targets, std::uint32_t payload,
                             typename Stats::Bin bin, typename Stats::Bin* bins, const typename Stats::Bin* filled,
                             std::uint32_t n_classes, std::size_t n_bins, double score) {
  Stats(n_classes);
  requires std::same_as<decltype(Stats::kCounts), const bool>;          // payloads as in counting mode
  requires std::same_as<decltype(Stats::kClassification), const bool>;  // targets are classes, not values
  requires std::same_as<decltype(Stats::kCountedSearch), const bool>;   // counted_node() serves CountedSearch
  requires std::same_as<decltype(Stats::kRefuses), const bool>;         // allowed() may refuse a split
  // The rows of a node. Between close() and the next clear() splits are tried.
  stats.use(targets);
  stats.clear();
  stats.add(payload);
  stats.close();
  { node.pure() } -> std::same_as<bool>;
  { node.weight() } -> std::same_as<double>;
  // Bins: statistics of rows with the same code, zero when all bytes are zero; a code takes bins_per_code() of them.
  { node.bins_per_code() } -> std::same_as<std::size_t>;
  node.fill(bins, payload);
  Stats::merge(bin, bin);
  { Stats::rows(filled, n_bins) } -> std::same_as<std::uint32_t>;
  // A split: all rows start on the right and are moved left one by one or bin by bin.
  stats.all_right();
  stats.move(payload);
  stats.move(filled);
  { node.left_weight() } -> std::same_as<double>;
  // A score only ranks the splits of one node; decrease() turns it into the weighted impurity decrease
  // W*I(node) - Wl*I(left) - Wr*I(right). No split scores above highest_score(). may_exceed() is cheap and may
  // err on the side of true.
  { node.score() } -> std::same_as<double>;
  { node.may_exceed(score) } -> std::same_as<bool>;
  { node.decrease(score) } -> std::same_as<double>;
  { node.highest_score() } -> std::same_as<double>;
};

}  // namespace oldgrowth
