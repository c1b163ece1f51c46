#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "rows/sample.hpp"
#include "tests/check.hpp"

using namespace oldgrowth;

void samples_are_uniform_and_among_the_candidates() {
  std::vector<int> hits(10);
  for (std::uint64_t top = 0; top < 1000; ++top) {
    const auto rows = draw_sample(100, 5, top, 1000);
    CHECK(rows.size() == 100);
    for (const auto row : rows) ++hits[row / 100];
  }
  for (const int hit : hits) CHECK(std::abs(hit - 10000) < 500);
  const auto candidates = candidate_rows(100, 5, {0, 3}, 0, 10000, 10000);
  CHECK(candidates.size() < 1000 && std::is_sorted(candidates.begin(), candidates.end()));
  for (std::uint64_t top = 0; top < 3; ++top) {
    CHECK(draw_from_candidates(100, 5, top, 10000, candidates) == draw_sample(100, 5, top, 10000));
    const auto own = candidates_of_top(100, 5, top, 10000, candidates);
    CHECK(own.size() < candidates.size() / 2);
    CHECK(draw_from_candidates(100, 5, top, 10000, own) == draw_sample(100, 5, top, 10000));
  }
}

// Rows beyond 2^33 are numbered in full: their random numbers differ from those of the rows that share their low bits.
void rows_beyond_32_bits_have_numbers_of_their_own() {
  constexpr std::uint64_t kFirst = std::uint64_t{1} << 33, kRows = 100000;
  const auto candidates = candidate_rows(500, 7, {0, 2}, kFirst, kRows, kRows);
  CHECK(candidates.size() > 500 && candidates.size() < 5000);
  CHECK(candidates.front() >= kFirst && candidates.back() < kFirst + kRows);
  auto low = candidate_rows(500, 7, {0, 2}, 0, kRows, kRows);
  for (std::uint64_t& row : low) row += kFirst;
  CHECK(candidates != low);
  const auto sample = draw_from_candidates(500, 7, 1, kRows, candidates);
  CHECK(sample.size() == 500 && std::is_sorted(sample.begin(), sample.end()));
  CHECK(std::includes(candidates.begin(), candidates.end(), sample.begin(), sample.end()));
  // Wherever the range is cut, the candidates are the same.
  auto pieces = candidate_rows(500, 7, {0, 2}, kFirst, 40000, kRows);
  const auto rest = candidate_rows(500, 7, {0, 2}, kFirst + 40000, kRows - 40000, kRows);
  pieces.insert(pieces.end(), rest.begin(), rest.end());
  CHECK(pieces == candidates);
}

void too_few_candidates_are_refused() {
  bool refused = false;
  try {
    draw_from_candidates(10, 1, 0, 1000, std::vector<std::uint64_t>{1, 2, 3});
  } catch (const std::invalid_argument&) {
    refused = true;
  }
  CHECK(refused);
  CHECK(draw_from_candidates(10, 1, 0, 3, std::vector<std::uint64_t>{0, 1, 2}) == draw_sample(10, 1, 0, 3));
}

int main() {
  samples_are_uniform_and_among_the_candidates();
  rows_beyond_32_bits_have_numbers_of_their_own();
  too_few_candidates_are_refused();
}
