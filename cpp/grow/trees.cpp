#include "grow/trees.hpp"

#include <stdexcept>

namespace oldgrowth {
namespace {

void check(const std::vector<double>& class_weights, const TreeRules& rules) {
  if (!class_weights.empty() && class_weights.size() < rules.n_classes)
    throw std::invalid_argument("too few class weights");
}

}  // namespace

GrownTree grow_top_tree(const Bucket& bucket, TreeRules rules, const TopTreePlace& place,
                        const std::vector<double>& class_weights) {
  check(class_weights, rules);
  rules.turn = place.turn;
  const TreeWeights weights = tree_weights(bucket, {false, 1, place.seed}, place.turn, class_weights);
  const std::uint64_t key = tree_key(place.seed, Purpose::top_tree, place.place);
  return grow_tree(bucket, weights.rows, weights.whole, rules, key, place.depth);
}

BottomTree grow_bottom_tree(const Bucket& bucket, const TreeRules& rules, const Bootstrap& bootstrap,
                            const BottomTreePlace& place, const std::vector<double>& class_weights, bool tell_drawn) {
  check(class_weights, rules);
  const TreeWeights weights = tree_weights(bucket, bootstrap, place.tree, class_weights);
  const std::uint64_t key = derive(tree_key(bootstrap.seed, Purpose::bottom_tree, place.tree), place.bucket);
  BottomTree grown{grow_tree(bucket, weights.rows, weights.whole, rules, key, place.depth), {}};
  grown.tree.nodes.shrink_to_fit();
  grown.tree.table.shrink_to_fit();
  if (tell_drawn) grown.drawn = DrawnRows::of(weights);
  return grown;
}

}  // namespace oldgrowth
