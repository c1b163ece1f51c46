#include <cmath>
#include <vector>

#include "base/level_map.hpp"
#include "tests/check.hpp"

using namespace oldgrowth;

namespace {

// Each new level goes where its present code went; levels that the tree has not seen, where missing values go.
void check_recoded(std::uint32_t levels, std::uint32_t new_levels, std::uint32_t stride, bool pooled) {
  std::vector<std::uint32_t> codes(new_levels, kNoLevel);
  for (std::uint32_t level = 0; level < new_levels; ++level) {
    const std::uint32_t code = level * stride % (2 * new_levels);
    if (code < levels) codes[level] = code;
    if (code >= levels && pooled) codes[level] = levels - 1;
  }
  const NodeFormat format(3);
  const std::vector<std::uint32_t> all = {0, levels, 0}, others = {0, new_levels, 0};
  std::vector<std::uint16_t> words, recoded_words;
  std::vector<Node> nodes = {format.inner(1.5F, 0, true), leaf(3)};
  for (const std::uint32_t step : {1U, 2U, 7U})
    for (const bool missing_left : {false, true}) {
      std::vector<std::uint32_t> set;
      for (std::uint32_t level = step - 1; level < levels; level += step) set.push_back(level);
      if (!set.empty()) nodes.push_back(format.by_bits(store_set(set, levels, words), 1, missing_left));
    }
  std::vector<Node> recoded = nodes;
  LevelMap(all, {{}, codes, {}}).recode(recoded, words, recoded_words);
  const Categories before{all, words}, after{others, recoded_words};
  CHECK(recoded[0] == nodes[0] && recoded[1] == nodes[1]);
  for (std::size_t i = 2; i < nodes.size(); ++i) {
    CHECK(set_ok(after, format, recoded[i]));
    const bool missing_left = format.missing_left(nodes[i]);
    CHECK(missing_left == format.missing_left(recoded[i]));
    CHECK(goes_left(after, 1, recoded[i], missing_left, NAN) == missing_left);
    for (std::uint32_t level = 0; level < new_levels; ++level) {
      const float code = codes[level] == kNoLevel ? NAN : static_cast<float>(codes[level]);
      CHECK(goes_left(after, 1, recoded[i], missing_left, static_cast<float>(level)) ==
            goes_left(before, 1, nodes[i], missing_left, code));
    }
  }
}

}  // namespace

int main() {
  for (const std::uint32_t levels : {2U, 31U, 32U, 33U, 200U, 3000U})
    for (const std::uint32_t new_levels : {2U, 32U, 33U, 400U, 6000U})
      for (const std::uint32_t stride : {1U, 3U, 11U})
        for (const bool pooled : {false, true}) check_recoded(levels, new_levels, stride, pooled);
}
