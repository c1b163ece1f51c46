// Routing, prediction and the checks of a forest, on one made by hand.
#include <limits>
#include <string>
#include <vector>

#include "base/crc32c.hpp"
#include "predict/forest.hpp"
#include "predict/predict.hpp"
#include "predict/route.hpp"
#include "tests/check.hpp"

using namespace oldgrowth;

struct HandMade {
  NodeFormat format{2};
  // Top tree: feature 0 at 0. Bucket 0: a single class. Bucket 1: feature 1 at 5, then a mixed leaf.
  std::vector<Node> top_nodes{format.with_right(format.inner(0, 0, true), 2), leaf(0), leaf(1)};
  std::vector<std::uint64_t> top_start{0, 3}, bucket_start{0, 2}, trees_of_top{1}, bottom_start{0, 2};
  std::vector<Node> nodes{leaf(2), format.with_right(format.inner(5, 1, false), 2), leaf(0), leaf(kMixedBit | 0)};
  std::vector<std::uint64_t> node_start{0, 1, 4}, table_start{0, 0, 1};
  std::vector<float> table{0.5F, 0.25F, 0.25F};
  std::vector<std::uint32_t> tree_crc;

  HandMade() { seal(); }

  Forest forest() const {
    return {2,     3,          top_nodes,   top_start, bucket_start, trees_of_top, bottom_start,
            nodes, node_start, table_start, table,     tree_crc};
  }

  // Checksums for the trees as they are now.
  void seal() {
    tree_crc.clear();
    for (std::size_t b = 0; b < 2; ++b) {
      const std::uint32_t crc = crc32c(nodes.data() + node_start[b], (node_start[b + 1] - node_start[b]) * 8);
      tree_crc.push_back(crc32c(table.data(), b == 1 ? table.size() * 4 : 0, crc));
    }
  }

  // What is found wrong, if anything.
  std::string check() const {
    std::string wrong = check_frame(forest());
    for (std::size_t b = 0; wrong.empty() && b < tree_crc.size(); ++b)
      if (!check_tree(forest(), b)) wrong = "bottom tree " + std::to_string(b);
    return wrong;
  }
};

void rows_reach_their_leaves() {
  const HandMade made;
  CHECK(made.check().empty());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x{-1, 9, 1, 5, 1, 6, nan, 0, 1, nan};
  std::vector<double> sums(15), votes(15);
  predict_sums(made.forest(), {x.data(), 5, true}, false, sums.data());
  CHECK((sums == std::vector<double>{0, 0, 1, 1, 0, 0, 0.5, 0.25, 0.25, 0, 0, 1, 0.5, 0.25, 0.25}));
  predict_sums(made.forest(), {x.data(), 5, true}, true, votes.data());
  CHECK((votes == std::vector<double>{0, 0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0}));
  std::vector<std::int64_t> leaves(5);
  apply(made.forest(), {x.data(), 5, true}, leaves.data());
  CHECK((leaves == std::vector<std::int64_t>{0, 2, 3, 0, 3}));
}

template <class Break>
void refused(const std::string& what, const Break& damage) {
  HandMade made;
  damage(made);
  if (made.node_start[1] <= made.nodes.size()) made.seal();  // the checksums do not tell
  CHECK(made.check().find(what) != std::string::npos);
}

// A tree is checked when it is first used, and no earlier.
void trees_are_checked_when_used() {
  HandMade made;
  made.nodes[2] = leaf(1);  // a valid tree, but not the one that was summed up
  const TreeChecks checks(2);
  Forest forest = made.forest();
  forest.checks = &checks;
  std::vector<double> sums(3);
  const std::vector<float> elsewhere{-1, 9}, there{1, 5};
  predict_sums(forest, {elsewhere.data(), 1, false}, false, sums.data());
  CHECK((sums == std::vector<double>{0, 0, 1}));
  for (int i = 0; i < 2; ++i) {
    bool refused = false;
    try {
      predict_sums(forest, {there.data(), 1, false}, false, sums.data());
    } catch (const DamagedTree&) {
      refused = true;
    }
    CHECK(refused);
  }
}

void damage_is_found() {
  refused("bottom tree 1", [](HandMade& f) { f.nodes[1] = f.format.with_right(f.format.inner(5, 1, false), 3); });
  refused("bottom tree 1", [](HandMade& f) { f.nodes[1] = f.format.with_right(f.format.inner(5, 1, false), 1); });
  refused("bottom tree 1", [](HandMade& f) { f.nodes[1] = f.format.inner(5, 1, false); });
  refused("bottom tree 1", [](HandMade& f) { f.nodes[3] = leaf(kMixedBit | 1); });
  refused("bottom tree 1", [](HandMade& f) { f.nodes[1] = leaf(0); });
  refused("bottom tree 0", [](HandMade& f) { f.nodes[0] = leaf(3); });
  refused("top tree 0", [](HandMade& f) { f.top_nodes[2] = leaf(2); });
  refused("top tree 0", [](HandMade& f) { f.top_nodes[2] = leaf(0); });  // one bucket for both leaves
  refused("top tree 0", [](HandMade& f) { f.top_nodes[1] = f.top_nodes[0]; });
  refused("leaf table", [](HandMade& f) { f.table.clear(); });
  refused("nodes of the bottom", [](HandMade& f) { f.node_start[1] = 9; });
  refused("number of bottom trees", [](HandMade& f) { f.trees_of_top[0] = 2; });
}

void leaves_of_values_hold_numbers() {
  const auto is_tree = [](double value) {
    const std::vector<Node> nodes{value_leaf(value)};
    return check_bottom_tree(nodes, 1, 0, 0);
  };
  CHECK(is_tree(-2.5) && is_tree(std::numeric_limits<double>::max()));
  CHECK(!is_tree(std::numeric_limits<double>::quiet_NaN()));
}

int main() {
  rows_reach_their_leaves();
  damage_is_found();
  leaves_of_values_hold_numbers();
  trees_are_checked_when_used();
}
