// Rows reach the leaves that a plain walk finds, whatever the shape of tree and rows.
#include <limits>
#include <random>
#include <vector>

#include "check.hpp"
#include "route.hpp"

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
    nodes.push_back(leaf(nodes.size()));
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
  std::vector<float> x(n * width), columns(width * kColumn);
  for (float& value : x) value = may_miss && below(4) == 0 ? std::numeric_limits<float>::quiet_NaN() : some_value();
  std::vector<std::uint32_t> listed(n);
  for (std::uint32_t& row : listed) row = static_cast<std::uint32_t>(below(n));

  const auto check = [&](const RowList& list) {
    std::vector<std::uint32_t> leaves(n);
    std::vector<Node> values(n);
    find_leaves(format, nodes.data(), list, leaves.data());
    find_leaves(format, nodes.data(), list, values.data());
    for (std::size_t i = 0; i < n; ++i) {
      CHECK(leaves[i] == plain_walk(format, nodes, x.data() + (list.rows ? list.rows[i] : i) * width));
      CHECK(values[i] == nodes[leaves[i]]);
    }
  };
  check({x.data(), width, nullptr, n, may_miss});
  check({x.data(), width, listed.data(), n, may_miss});
  if (n > kBlock || !has_first_levels()) return;
  transpose(x.data(), width, n, width, columns.data());
  check({x.data(), width, nullptr, n, may_miss, columns.data()});
  // Rows that lie anywhere, brought together.
  std::vector<float> copies(n * width + 1, 7.0F);
  gather(x.data(), listed.data(), n, width, copies.data(), columns.data());
  CHECK(copies.back() == 7.0F);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < width; ++j) {
      const float wanted = x[listed[i] * width + j];
      const float found[] = {copies[i * width + j], columns[j * kColumn + i]};
      CHECK((found[0] == wanted || wanted != wanted) && (found[1] == wanted || wanted != wanted));
    }
}

}  // namespace

int main() {
  for (const std::size_t n : {1, 2, 7, 8, 63, 64, 65, 511, 512, 513, 1500})
    for (const std::size_t width : {1, 2, 7, 8, 9, 54, 64})
      for (const bool may_miss : {false, true})
        for (int again = 0; again < 5; ++again) leaves_are_those_of_a_plain_walk(n, width, may_miss);
}
