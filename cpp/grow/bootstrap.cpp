#include "grow/bootstrap.hpp"

#include <stdexcept>

namespace oldgrowth {

std::vector<std::uint8_t> DrawnRows::of(const TreeWeights& weights) {
  std::vector<std::uint8_t> bits(bytes(weights.rows.size()));
  for (std::size_t i = 0; i < weights.rows.size(); ++i)
    bits[i / 8] = static_cast<std::uint8_t>(bits[i / 8] | (weights.rows[i] > 0 ? 1U << (i % 8) : 0U));
  return bits;
}

TreeWeights tree_weights(const Bucket& bucket, const Bootstrap& bootstrap, std::uint64_t tree,
                         const std::vector<double>& class_weights) {
  if (bootstrap.draw && bucket.copies.size() != bucket.rows)
    throw std::invalid_argument("a bootstrap on a bucket that was made without");
  TreeWeights weights;
  weights.rows.resize(bucket.rows);
  weights.whole = bucket.weights.empty() && class_weights.empty();
  const RowDraw draws(bootstrap, tree);
  double sum = 0;
  for (std::size_t i = 0; i < bucket.rows; ++i) sum += weights.rows[i] = draws.weight(bucket, i);
  if (sum == 0 && bucket.rows > 0) {  // no row was drawn, but a tree needs one: the one with the lowest number
    std::size_t lowest = 0;
    for (std::size_t i = 1; i < bucket.rows; ++i)
      if (draws.number(bucket, i) < draws.number(bucket, lowest)) lowest = i;
    weights.rows[lowest] = RowDraw::own_weight(bucket, lowest);
  }
  if (class_weights.empty()) return weights;
  sum = 0;
  for (std::size_t i = 0; i < bucket.rows; ++i) sum += weights.rows[i] * class_weights[bucket.classes[i]];
  if (sum > 0)  // otherwise all classes here have weight zero and are not weighted
    for (std::size_t i = 0; i < bucket.rows; ++i) weights.rows[i] *= class_weights[bucket.classes[i]];
  return weights;
}

}  // namespace oldgrowth
