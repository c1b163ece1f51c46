// Rows reach the leaves that a plain walk finds in open trees with sets of levels, one tree after the other.
#include <algorithm>
#include <bit>
#include <limits>
#include <random>
#include <vector>

#include "predict/open_sets.hpp"
#include "predict/route.hpp"
#include "tests/check.hpp"

using namespace oldgrowth;

namespace {

std::mt19937_64 bits = test::random_bits(1);

std::size_t below(std::size_t n) { return bits() % n; }

constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();

struct Tree {
  std::vector<Node> nodes;
  std::vector<std::uint16_t> words;
};

// A set of a single level more often than not, as in grown trees.
std::vector<std::uint32_t> some_set(std::uint32_t levels) {
  std::vector<std::uint32_t> set(below(2) == 0 ? 1 : 1 + below(levels));
  for (std::uint32_t& level : set) level = static_cast<std::uint32_t>(below(levels));
  std::ranges::sort(set);
  set.erase(std::ranges::unique(set).begin(), set.end());
  return set;
}

void grow(const NodeFormat& format, const std::vector<std::uint32_t>& levels, std::size_t depth, Tree& tree) {
  const std::size_t at = tree.nodes.size();
  if (depth == 0 || below(10) == 0) {
    tree.nodes.push_back(leaf(below(100)));
    return;
  }
  const auto feature = static_cast<std::uint32_t>(below(levels.size()));
  float value = static_cast<float>(below(9)) - 4;
  if (levels[feature] > 0)
    value = std::bit_cast<float>(store_set(some_set(levels[feature]), levels[feature], tree.words));
  tree.nodes.push_back(format.inner(value, feature, below(2) == 1));
  grow(format, levels, depth - 1, tree);
  tree.nodes[at] = format.with_right(tree.nodes[at], tree.nodes.size() - at);
  grow(format, levels, depth - 1, tree);
}

// Codes, and what is none: missing values and levels that nobody knows.
float some_value(std::uint32_t levels, bool may_miss) {
  if (levels == 0) return may_miss && below(4) == 0 ? kMissing : static_cast<float>(below(9)) - 4;
  if (below(8) == 0) return below(2) == 0 ? kMissing : static_cast<float>(levels + below(3));
  return static_cast<float>(below(levels));
}

void leaves_are_those_of_a_plain_walk(const std::vector<std::uint32_t>& levels, std::size_t n, bool may_miss) {
  const std::size_t width = levels.size();
  const NodeFormat format(static_cast<std::uint32_t>(width));
  std::vector<float> x(n * width), columns((width + 1) * kColumn + kPlaces);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = some_value(levels[i % width], may_miss);
  to_columns(x.data(), nullptr, n, width, columns.data());
  std::vector<std::uint32_t> of_rows(width * kColumn), found(kBlock), expected(n);
  find_levels(levels, n, columns.data(), of_rows.data());
  OpenSets sets;  // of all trees
  for (const std::size_t depth : {3, 12, 6, 9, 0, 12}) {
    Tree tree;
    grow(format, levels, depth, tree);
    const Categories categories{levels, tree.words};
    std::vector<OpenNode> open(tree.nodes.size() + 1);
    open_tree({format, width, true}, tree.nodes, open.data());
    CHECK(open_sets(categories, may_miss, open, sets));
    place_levels(levels, sets, n, of_rows.data(), columns.data());
    find_open_leaves_by_sets(open.data(), sets, {columns.data(), width, n, may_miss}, of_rows.data(), found.data());
    find_leaves_by_sets(format, tree.nodes, categories, {x.data(), width, nullptr, n, may_miss}, expected.data());
    for (std::size_t i = 0; i < n; ++i) CHECK(found[i] == expected[i]);
  }
}

// A tree whose sets have too many words is not opened, and one after it is.
void too_many_words() {
  const std::vector<std::uint32_t> levels = {60000};
  const NodeFormat format(1);
  OpenSets sets;
  for (const std::size_t depth : {1, 11, 1}) {
    Tree tree;
    while (tree.nodes.size() < (1U << depth)) {
      tree = {};
      grow(format, levels, depth, tree);
    }
    std::vector<OpenNode> open(tree.nodes.size() + 1);
    open_tree({format, 1, true}, tree.nodes, open.data());
    CHECK(open_sets({levels, tree.words}, false, open, sets) == (depth == 1));
  }
}

}  // namespace

int main() {
  const std::vector<std::vector<std::uint32_t>> tables = {
      {1}, {2, 0}, {31, 32, 33, 0}, {0, 224, 224}, {0, 0, 512, 513, 3}, {0, 16, 0, 7, 14, 6, 5, 2, 41}};
  for (const auto& levels : tables)
    for (const std::size_t n : {1, 15, 63, 64, 65, 256})
      for (const bool may_miss : {false, true}) leaves_are_those_of_a_plain_walk(levels, n, may_miss);
  too_many_words();
}
