#include <algorithm>
#include <vector>

#include "check.hpp"
#include "stats.hpp"
#include "two_class.hpp"

using namespace oldgrowth;

// The fast scan must choose the very key that the plain one chooses.
void scans_agree() {
  auto random = test::random_bits(3);
  for (int round = 0; round < 20000; ++round) {
    const std::size_t n = 2 + random() % (round % 10 == 0 ? 5000 : 150);
    const std::uint32_t codes = 1 + static_cast<std::uint32_t>(random() % (round % 3 == 0 ? 5 : 60000));
    const std::uint32_t classes[2] = {static_cast<std::uint32_t>(random() % 4096),
                                      static_cast<std::uint32_t>(random() % 4096)};
    const std::uint32_t max_weight = round % 4 == 0 ? 15 : 1;
    TwoClassNode node;
    node.marked_class = classes[0];
    std::vector<std::uint32_t> keys(n + 8);
    for (std::size_t i = 0; i < n; ++i) {
      const auto w = static_cast<std::uint32_t>(1 + random() % max_weight);
      const std::uint32_t k = classes[random() % (round % 7 == 0 ? 9 : 2) == 0 ? 0 : 1];
      keys[i] = static_cast<std::uint32_t>(random() % codes) << 16 | k << kWeightBits | w;
      node.weight += w;
      node.marked += k == node.marked_class ? w : 0;
    }
    std::sort(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(n));
    for (const std::size_t min_leaf : {1U, 2U, 7U})
      for (const double start : {-1.0, static_cast<double>(node.weight) / 4}) {
        const TwoClassBest a = two_class_scan()(keys.data(), n, node, min_leaf, start);
        const TwoClassBest b = two_class_scan_baseline()(keys.data(), n, node, min_leaf, start);
        CHECK(a.found == b.found);
        CHECK(a.score == b.score);
        CHECK(a.last_left == b.last_left);
      }
  }
}

int main() { scans_agree(); }
