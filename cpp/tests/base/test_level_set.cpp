#include <algorithm>
#include <cmath>
#include <vector>

#include "base/level_set.hpp"
#include "tests/check.hpp"

using namespace oldgrowth;

// Sets of several sizes over several numbers of levels: exactly their levels are in them, and damage is found.
int main() {
  const NodeFormat format(2);
  for (const std::uint32_t levels : {2U, 31U, 32U, 33U, 200U, 5000U, 65534U})
    for (const std::uint32_t step : {1U, 3U, 40U, 700U}) {
      std::vector<std::uint32_t> set;
      for (std::uint32_t level = levels - 1; level < levels && set.size() < levels - 1; level -= step)
        set.insert(set.begin(), level);
      std::vector<std::uint16_t> words = {7};
      const std::uint32_t all[] = {0, levels}, bits = store_set(set, levels, words);
      const Categories categories{all, words};
      for (const bool missing_left : {false, true}) {
        const Node node = format.by_bits(bits, 1, missing_left);
        CHECK(set_ok(categories, format, node));
        for (std::uint32_t level = 0; level < levels; ++level) {
          const bool inside = std::binary_search(set.begin(), set.end(), level);
          CHECK(goes_left(categories, 1, node, missing_left, static_cast<float>(level)) == (inside != missing_left));
        }
        for (const float none : {-1.0F, static_cast<float>(levels), NAN, 1e30F, -INFINITY})
          CHECK(goes_left(categories, 1, node, missing_left, none) == missing_left);
      }
      if (levels <= kInlineLevels) continue;
      CHECK(!set_ok({all, std::span(words).first(words.size() - 1)}, format, format.by_bits(bits, 1, false)));
      CHECK(!set_ok(categories, format, format.by_bits(static_cast<std::uint32_t>(words.size()), 1, false)));
    }
}
