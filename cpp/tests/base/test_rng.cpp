#include <algorithm>
#include <cmath>
#include <vector>

#include "base/rng.hpp"
#include "rows/sample.hpp"
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

void samples_are_uniform_and_among_those_told() {
  std::vector<int> hits(10);
  for (std::uint64_t top = 0; top < 1000; ++top) {
    const auto rows = draw_sample(100, 5, top, 1000);
    CHECK(rows.size() == 100);
    for (const auto row : rows) ++hits[row / 100];
  }
  for (const int hit : hits) CHECK(std::abs(hit - 10000) < 500);
  const auto told = maybe_sampled(100, 5, 3, 0, 10000, 10000);
  CHECK(told.size() < 1000 && std::is_sorted(told.begin(), told.end()));
  for (std::uint64_t top = 0; top < 3; ++top)
    for (const auto row : draw_sample(100, 5, top, 10000)) CHECK(std::binary_search(told.begin(), told.end(), row));
}

int main() {
  draws_depend_on_key_and_counter_only();
  below_is_uniform();
  poisson_has_its_mean_and_variance();
  samples_are_uniform_and_among_those_told();
}
