#include <cmath>

#include "grow/bootstrap.hpp"
#include "grow/grower.hpp"
#include "tests/check.hpp"
#include "tests/rows.hpp"

using namespace oldgrowth;
using namespace oldgrowth::test;

GrownTree grown(const Bucket& bucket, const TreeRules& rules, std::uint64_t key = 1) {
  const TreeWeights weights = tree_weights(bucket, {false, 1, 0}, 0, {});
  return grow_tree(bucket, weights.rows, weights.whole, rules, key, 0);
}

// Rows of continuous features are all different, so a fully-grown tree gives every row its own class.
void full_trees_know_their_rows() {
  for (const std::size_t n : {2U, 50U, 3000U, 70000U})  // beyond 65,535 rows the codes are wide
    for (const bool random_thresholds : {false, true}) {
      const TestRows rows = random_rows(n, 9, 5, n);
      const Bucket bucket = rows.bucket(true);
      TreeRules rules;
      rules.n_classes = 5;
      rules.max_features = 3;
      rules.random_thresholds = random_thresholds;
      const GrownTree tree = grown(bucket, rules);
      for (std::size_t i = 0; i < n; ++i) CHECK(payload(leaf_of(bucket, tree.nodes.data(), i)) == bucket.classes[i]);
      CHECK(tree.table.empty());
    }
}

void regression_trees_know_their_values() {
  const TestRows rows = random_rows(2000, 6, 0, 8);
  const Bucket bucket = rows.bucket(false);
  TreeRules rules;
  rules.criterion = kCriterion<SquaredError>;
  rules.max_features = 6;
  const GrownTree tree = grown(bucket, rules);
  for (std::size_t i = 0; i < rows.n; ++i)
    CHECK(std::abs(leaf_value(leaf_of(bucket, tree.nodes.data(), i)) - bucket.values[i]) < 1e-12);
}

// A pure sample must still be cut into buckets, by even splits: the number of levels stays logarithmic.
void pure_top_trees_stay_shallow() {
  for (const double balance : {0.0, 0.3, 1.0}) {
    TestRows rows = random_rows(20000, 4, 1, 9);
    const Bucket bucket = rows.bucket(true);
    TreeRules rules;
    rules.n_classes = 1;
    rules.max_features = 4;
    rules.top_tree = true;
    rules.min_samples_split = 100;
    rules.balance = balance;
    const GrownTree tree = grown(bucket, rules);
    CHECK(tree.leaf_depths.size() > 200);
    CHECK(tree.depth <= 16);
  }
}

void indistinguishable_rows_are_one_leaf() {
  const TestRows rows(4, 2, {1, 2, 1, 2, 1, 2, 1, 2}, {0, 1, 1, 1});
  const Bucket bucket = rows.bucket(true);
  TreeRules rules;
  rules.n_classes = 2;
  rules.max_features = 2;
  const GrownTree tree = grown(bucket, rules);
  CHECK(tree.nodes.size() == 1);
  CHECK(tree.table == (std::vector<float>{0.25F, 0.75F}));
}

void limits_hold() {
  const TestRows rows = random_rows(3000, 5, 3, 10);
  const Bucket bucket = rows.bucket(true);
  TreeRules rules;
  rules.n_classes = 3;
  rules.max_features = 5;
  rules.max_depth = 4;
  CHECK(grown(bucket, rules).depth == 4);
  rules.max_depth = 1000;
  rules.min_samples_leaf = 40;
  const GrownTree tree = grown(bucket, rules);
  // Every leaf holds at least 40 of the 3,000 rows.
  std::size_t leaves = 0;
  for (const Node node : tree.nodes) leaves += is_leaf(node);
  CHECK(leaves > 10);
  CHECK(leaves <= 3000 / 40);
}

// Equal rows are drawn as copies, so weights and repetitions give the same counts.
void weights_count_like_copies() {
  std::vector<float> x, repeated_x;
  std::vector<double> y, repeated_y, weights;
  auto random = random_bits(11);
  for (int i = 0; i < 300; ++i) {
    const auto value = static_cast<float>(random() % 40);
    const double label = static_cast<double>(random() % 2);
    const auto w = static_cast<int>(random() % 4) + 1;
    x.push_back(value);
    y.push_back(label);
    weights.push_back(w);
    for (int c = 0; c < w; ++c) repeated_x.push_back(value), repeated_y.push_back(label);
  }
  const TestRows once(x.size(), 1, x, y), repeated(repeated_x.size(), 1, repeated_x, repeated_y);
  const Bucket a = make_bucket(once.codec, {once.records.data(), once.keys.data(), once.targets.data(), weights.data()},
                               {}, once.n, true);
  const Bucket b = repeated.bucket(true);
  const Bootstrap bootstrap{true, 1, 99};
  const TreeWeights wa = tree_weights(a, bootstrap, 3, {}), wb = tree_weights(b, bootstrap, 3, {});
  std::vector<double> sum_a(80), sum_b(80);
  for (std::size_t i = 0; i < a.rows; ++i) sum_a[static_cast<std::size_t>(x[i]) * 2 + a.classes[i]] += wa.rows[i];
  for (std::size_t i = 0; i < b.rows; ++i)
    sum_b[static_cast<std::size_t>(repeated_x[i]) * 2 + b.classes[i]] += wb.rows[i];
  CHECK(sum_a == sum_b);
}

int main() {
  full_trees_know_their_rows();
  regression_trees_know_their_values();
  pure_top_trees_stay_shallow();
  indistinguishable_rows_are_one_leaf();
  limits_hold();
  weights_count_like_copies();
}
