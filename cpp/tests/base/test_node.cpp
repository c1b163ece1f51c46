#include <cmath>

#include "base/node.hpp"
#include "tests/check.hpp"

using namespace oldgrowth;

void inner_nodes_keep_their_fields() {
  for (const std::uint32_t n_features : {1U, 2U, 3U, 54U, 4096U, kMaxFeatures}) {
    const NodeFormat format(n_features);
    for (const bool missing_left : {false, true}) {
      const Node node = format.with_right(format.inner(-1.5F, n_features - 1, missing_left), format.max_offset());
      CHECK(!is_leaf(node));
      CHECK(threshold(node) == -1.5F);
      CHECK(format.feature(node) == n_features - 1);
      CHECK(format.missing_left(node) == missing_left);
      CHECK(format.right(node) == format.max_offset());
    }
  }
}

void leaves_keep_their_payload() {
  CHECK(is_leaf(leaf(0)));
  CHECK(payload(leaf(kMixedBit | 77)) == (kMixedBit | 77));
  for (const double value : {0.0, -1.0, 3.25, 1e300, -1e-300, 12345678901.0}) {
    CHECK(is_leaf(value_leaf(value)));
    CHECK(std::abs(leaf_value(value_leaf(value)) - value) <= std::abs(value) * 0x1.0p-51);
  }
}

int main() {
  inner_nodes_keep_their_fields();
  leaves_keep_their_payload();
}
