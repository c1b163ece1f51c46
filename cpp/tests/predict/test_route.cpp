// Rows reach the leaves that a plain walk finds, whatever the shape of tree and rows.
#include <limits>
#include <random>
#include <vector>

#include "predict/open_tree.hpp"
#include "predict/route.hpp"
#include "tests/check.hpp"

using namespace oldgrowth;

namespace {

std::mt19937_64 bits = test::random_bits(1);

std::size_t below(std::size_t n) { return bits() % n; }

// Few values, so that rows often lie on a threshold.
float some_value() { return static_cast<float>(below(9)) - 4; }

// A tree whose nodes have children with some chance: from a leaf alone to deep and lopsided.
void grow(const NodeFormat& format, std::size_t width, std::size_t depth, std::size_t of_ten,
          std::vector<Node>& nodes) {
  const std::size_t at = nodes.size();
  if (depth == 0 || below(10) >= of_ten) {
    nodes.push_back(leaf(bits() >> (1 + below(63))));  // small payloads and large ones
    return;
  }
  nodes.push_back(format.inner(some_value(), static_cast<std::uint32_t>(below(width)), below(2) == 1));
  grow(format, width, depth - 1, of_ten, nodes);
  nodes[at] = format.with_right(nodes[at], nodes.size() - at);
  grow(format, width, depth - 1, of_ten, nodes);
}

std::uint32_t plain_walk(const NodeFormat& format, const std::vector<Node>& nodes, const float* row) {
  std::size_t at = 0;
  while (!is_leaf(nodes[at])) {
    const float x = row[format.feature(nodes[at])];
    const bool left = x != x ? format.missing_left(nodes[at]) : x <= threshold(nodes[at]);
    at += left ? 1 : format.right(nodes[at]);
  }
  return static_cast<std::uint32_t>(at);
}

void leaves_are_those_of_a_plain_walk(std::size_t n, std::size_t width, bool may_miss) {
  const NodeFormat format(static_cast<std::uint32_t>(width));
  std::vector<Node> nodes;
  grow(format, width, 14, below(5) + 5, nodes);
  std::vector<float> x(n * width);
  for (float& value : x) value = may_miss && below(4) == 0 ? std::numeric_limits<float>::quiet_NaN() : some_value();
  std::vector<std::uint32_t> listed(n);
  for (std::uint32_t& row : listed) row = static_cast<std::uint32_t>(below(n));

  const auto check = [&](const std::vector<std::uint32_t>& leaves, const std::uint32_t* rows) {
    for (std::size_t i = 0; i < n; ++i)
      CHECK(leaves[i] == plain_walk(format, nodes, x.data() + (rows ? rows[i] : i) * width));
  };
  const std::uint32_t* const lists[] = {nullptr, listed.data()};
  for (const std::uint32_t* rows : lists) {
    std::vector<std::uint32_t> leaves(n);
    for (const Node* last : {static_cast<const Node*>(nullptr), static_cast<const Node*>(&nodes.back())}) {
      find_leaves(format, nodes.data(), {x.data(), width, rows, n, may_miss}, leaves.data(), last);
      check(leaves, rows);
    }
    if (n > kBlock || width > kMostOpenFeatures || nodes.size() > kMostOpenNodes) continue;

    leaves.resize(kBlock);
    std::vector<OpenNode> open(nodes.size() + 1);
    std::vector<float> columns((width + 1) * kColumn);
    open_tree({format, width, may_miss}, nodes, open.data());
    to_columns(x.data(), rows, n, width, columns.data());
    find_open_leaves(open.data(), {columns.data(), width, n, may_miss}, leaves.data());
    check(leaves, rows);
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (is_leaf(nodes[i])) CHECK(open[i].leaf(&nodes[i]) == nodes[i]);
  }
}

}  // namespace

int main() {
  for (const std::size_t n : {1, 2, 7, 8, 15, 16, 17, 63, 64, 65, 255, 256, 257, 1500})
    for (const std::size_t width :
         std::vector<std::size_t>{1, 2, 7, 8, 9, 54, kMostOpenFeatures, kMostOpenFeatures + 1})
      for (const bool may_miss : {false, true})
        for (int again = 0; again < 5; ++again) leaves_are_those_of_a_plain_walk(n, width, may_miss);
}
