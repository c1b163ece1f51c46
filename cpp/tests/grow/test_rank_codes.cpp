#include <cmath>
#include <vector>

#include "grow/rank_codes.hpp"
#include "tests/check.hpp"
#include "tests/rows.hpp"

using namespace oldgrowth;
using namespace oldgrowth::test;

bool same(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

template <class Code>
void codes_give_back_the_values(const TestRows& rows, std::size_t n) {
  const Block<Code> block = make_block<Code>(rows.codec, rows.records.data(), {}, n);
  for (std::size_t f = 0; f < rows.d; ++f) {
    const auto [column, stride] = block.column(f);
    for (std::size_t i = 0; i < n; ++i) {
      const Code code = column[i * stride];
      if constexpr (kHasRows<Code>) CHECK(code == block.row(i)[f]);
      const float value = code == kMissing<Code> ? std::nanf("") : block.values[f][code];
      CHECK(same(value, rows.x[i * rows.d + f]));
    }
    for (std::size_t c = 1; c < rows.codec.feature(f).values.size(); ++c)
      CHECK(block.values[f][c - 1] < block.values[f][c]);
  }
}

void blocks_hold_the_values_of_their_records() {
  const TestRows small = random_rows(3000, 8, 3, 1);
  codes_give_back_the_values<std::uint16_t>(small, small.n);
  codes_give_back_the_values<std::uint32_t>(small, small.n);
  const TestRows in_columns = random_rows(60000, 8, 3, 5);  // no feature is ranked, and columns are worth it
  CHECK(in_columns.codec.feature(0).width == Width::two);
  codes_give_back_the_values<std::uint16_t>(in_columns, in_columns.n);
  const TestRows large = random_rows(70000, 6, 3, 2);  // continuous features do not fit 16-bit codes
  CHECK(large.codec.feature(0).width == Width::four);
  codes_give_back_the_values<std::uint32_t>(large, large.n);
  codes_give_back_the_values<std::uint16_t>(large, 65535);
}

void narrowed_blocks_hold_the_same_values() {
  const TestRows large = random_rows(70000, 5, 3, 3);
  const Block<std::uint32_t> wide = make_block<std::uint32_t>(large.codec, large.records.data(), {}, large.n);
  std::vector<std::uint32_t> picked;
  for (std::uint32_t i = 5; i < large.n; i += 17) picked.push_back(i);
  Block<std::uint16_t> narrow;
  narrow_block(wide, picked.data(), picked.size(), narrow);
  for (std::size_t i = 0; i < picked.size(); ++i)
    for (std::size_t f = 0; f < large.d; ++f) {
      const std::uint16_t code = narrow.row(i)[f];
      const float value = code == kMissing<std::uint16_t> ? std::nanf("") : narrow.values[f][code];
      CHECK(same(value, large.x[picked[i] * large.d + f]));
    }
}

void rows_are_taken_by_numbers_of_either_width() {
  const TestRows rows = random_rows(500, 5, 3, 6);
  std::vector<std::uint32_t> narrow;
  for (std::uint32_t i = 3; i < rows.n; i += 7) narrow.push_back(i);
  const std::vector<std::uint64_t> wide(narrow.begin(), narrow.end());
  const auto a = make_block<std::uint16_t>(rows.codec, rows.records.data(), RowIndex(narrow.data()), narrow.size());
  const auto b = make_block<std::uint16_t>(rows.codec, rows.records.data(), RowIndex(wide.data()), wide.size());
  CHECK(a.codes == b.codes);
  for (std::size_t i = 0; i < narrow.size(); ++i) {
    const std::uint16_t code = a.row(i)[0];
    CHECK(a.values[0][code] == rows.x[narrow[i] * rows.d]);
  }
}

int main() {
  blocks_hold_the_values_of_their_records();
  narrowed_blocks_hold_the_same_values();
  rows_are_taken_by_numbers_of_either_width();
}
