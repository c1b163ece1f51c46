#include <stdexcept>
#include <vector>

#include "rows/row_index.hpp"
#include "tests/check.hpp"

using namespace oldgrowth;

void lists_of_both_widths_give_the_same_rows() {
  const std::vector<std::uint32_t> narrow{7, 0, 4294967295U};
  const std::vector<std::uint64_t> wide{7, 0, 4294967295U, std::uint64_t{1} << 33};
  for (std::size_t i = 0; i < narrow.size(); ++i) CHECK(RowIndex(narrow.data())[i] == RowIndex(wide.data())[i]);
  CHECK(RowIndex(wide.data())[3] == std::uint64_t{1} << 33);
  CHECK(RowIndex()[std::size_t{1} << 33] == std::uint64_t{1} << 33);
  CHECK(fits_32_bits(std::uint64_t{1} << 32) && !fits_32_bits((std::uint64_t{1} << 32) + 1));
}

void rows_are_grouped_in_order() {
  const std::vector<std::uint32_t> buckets{2, 0, 2, 2, 0};
  std::vector<std::uint32_t> narrow;
  std::vector<std::uint64_t> wide;
  CHECK(group_by_bucket(buckets, 4, narrow) == (std::vector<std::uint64_t>{0, 2, 2, 5, 5}));
  CHECK(group_by_bucket(buckets, 4, wide) == (std::vector<std::uint64_t>{0, 2, 2, 5, 5}));
  CHECK(narrow == (std::vector<std::uint32_t>{1, 4, 0, 2, 3}));
  CHECK(wide == std::vector<std::uint64_t>(narrow.begin(), narrow.end()));
  bool refused = false;
  try {
    group_by_bucket(buckets, 2, narrow);
  } catch (const std::invalid_argument&) {
    refused = true;
  }
  CHECK(refused);
}

int main() {
  lists_of_both_widths_give_the_same_rows();
  rows_are_grouped_in_order();
}
