#include <stdexcept>
#include <vector>

#include "grow/bootstrap.hpp"
#include "grow/copies.hpp"
#include "tests/check.hpp"

using namespace oldgrowth;

struct Drawn {
  std::vector<std::uint64_t> keys, copies;
  const double* weights = nullptr;
};

// A row that is the copy of so many others is drawn by its full count, and as before where 32 bits hold that.
void counts_beyond_32_bits_draw_on_their_own() {
  const RowDraw draws({true, 1, 5}, 3);
  Drawn rows{std::vector<std::uint64_t>(1000, 9), {}};
  constexpr std::uint64_t kFar = std::uint64_t{1} << 32;
  for (std::uint64_t i = 0; i < 500; ++i) rows.copies.push_back(i);
  for (std::uint64_t i = 0; i < 500; ++i) rows.copies.push_back(kFar + i);
  std::size_t same = 0;
  double sum = 0;
  const std::uint64_t key = tree_key(5, Purpose::bootstrap, 3) ^ 9;
  const Poisson poisson(1);
  for (std::size_t i = 0; i < 1000; ++i) {
    CHECK(draws.weight(rows, i) == poisson(draw(key, rows.copies[i])));
    sum += draws.weight(rows, i);
    if (i < 500) same += draws.number(rows, i) == draws.number(rows, i + 500);
  }
  CHECK(same == 0 && sum > 850 && sum < 1150);
}

void copies_are_counted_over_parts() {
  CopyCounter counter;
  const std::vector<std::uint64_t> keys{4, 5, 4, 4, 5};
  const std::vector<double> weights{1, 2.5, 3, 0, 100};
  std::vector<std::uint64_t> copies(5);
  counter.count(keys.data(), weights.data(), 5, copies.data());
  CHECK(copies == (std::vector<std::uint64_t>{0, 0, 1, 0, 2}));
  std::vector<std::uint32_t> narrow(5);
  counter.count(keys.data(), nullptr, 5, narrow.data());
  CHECK(narrow == (std::vector<std::uint32_t>{4, 66, 5, 6, 67}));
  CHECK(counter.keys() == 2);
}

void counts_have_the_bytes_that_they_need() {
  CHECK(CopyCounter::count_bytes(std::uint64_t{1} << 32, false) == 4);
  CHECK(CopyCounter::count_bytes((std::uint64_t{1} << 32) + 1, false) == 8);
  CHECK(CopyCounter::count_bytes(std::uint64_t{1} << 26, true) == 4);
  CHECK(CopyCounter::count_bytes((std::uint64_t{1} << 26) + 1, true) == 8);
}

int main() {
  counts_beyond_32_bits_draw_on_their_own();
  copies_are_counted_over_parts();
  counts_have_the_bytes_that_they_need();
}
