#include <cmath>
#include <vector>

#include "base/rng.hpp"
#include "tests/check.hpp"

using namespace oldgrowth;

void draws_depend_on_key_and_counter_only() {
  CHECK(draw(1, 2) == draw(1, 2));
  CHECK(draw(1, 2) != draw(1, 3));
  CHECK(draw(1, 2) != draw(2, 2));
  CHECK(tree_key(0, Purpose::bootstrap, 0) != tree_key(0, Purpose::bottom_tree, 0));
  // Known values: a change of the generator would change every forest.
  CHECK(mix(1) == 0x5692161d100b05e5ULL);
}

void below_is_uniform() {
  std::vector<int> counts(10);
  for (std::uint64_t i = 0; i < 100000; ++i) ++counts[below(static_cast<std::uint32_t>(draw(7, i)), 10)];
  for (const int count : counts) CHECK(std::abs(count - 10000) < 500);
}

void poisson_has_its_mean_and_variance() {
  for (const double mean : {1.0, 0.3}) {
    const Poisson poisson(mean);
    double sum = 0, squares = 0;
    constexpr int kDraws = 400000;
    for (std::uint64_t i = 0; i < kDraws; ++i) {
      const double count = poisson(draw(3, i));
      sum += count;
      squares += count * count;
    }
    const double found = sum / kDraws;
    CHECK(std::abs(found - mean) < 0.01);
    CHECK(std::abs(squares / kDraws - found * found - mean) < 0.02);
  }
}

int main() {
  draws_depend_on_key_and_counter_only();
  below_is_uniform();
  poisson_has_its_mean_and_variance();
}
