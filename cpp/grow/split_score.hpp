// How a split is rated: by the criterion, or against balance, if the rules for leaves allow it.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>

#include "grow/criteria/node_stats.hpp"
#include "grow/split.hpp"

namespace oldgrowth {

struct SplitRows {
  std::size_t all, left;
};

// For the rows that were moved left against the others; -infinity if that is not allowed, and perhaps if it does not
// exceed `best`. `score` is that of the criterion.
template <NodeStats Stats>
[[gnu::always_inline]] inline double allowed_score(const Stats& stats, const SplitRules& rules, SplitRows rows,
                                                   double best, double& score) {
  constexpr double kNot = -std::numeric_limits<double>::infinity();
  const std::size_t left = rows.left, right = rows.all - left;
  if (left < rules.min_samples_leaf || right < rules.min_samples_leaf) return kNot;
  const double left_weight = stats.left_weight(), right_weight = stats.weight() - left_weight;
  if (!(left_weight > 0 && right_weight > 0)) return kNot;  // lost in rounding
  if (left_weight < rules.min_weight_leaf || right_weight < rules.min_weight_leaf) return kNot;
  if constexpr (Stats::kRefuses)
    if (rules.balance < 1 && !stats.allowed()) return kNot;
  if (rules.balance == 0 && !stats.may_exceed(best)) return kNot;
  score = stats.score();
  if (!std::isfinite(score)) return kNot;
  if (rules.balance == 0) return score;
  const double apart = static_cast<double>(left > right ? left - right : right - left);
  return (1 - rules.balance) * stats.decrease(score) / (stats.weight() * rules.impurity_scale) -
         rules.balance * apart / static_cast<double>(rows.all);
}

}  // namespace oldgrowth
