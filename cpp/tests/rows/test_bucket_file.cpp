#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "rows/bucket_file.hpp"
#include "tests/check.hpp"

using namespace oldgrowth;

struct Made {
  RowLayout layout;
  std::vector<std::uint8_t> rows, block;
};

constexpr std::uint64_t kFirst = (std::uint64_t{1} << 33) + 1000;

Made make(std::size_t target_bytes, bool weighted, std::size_t number_bytes) {
  Made made{{5, target_bytes, weighted, number_bytes}, {}, {}};
  const std::size_t width = made.layout.row_bytes();
  made.rows.resize(4 * width);
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t b = 0; b < 5; ++b) made.rows[i * width + b] = static_cast<std::uint8_t>(10 * i + b);
  const std::uint64_t keys[] = {7, 8, 9, ~0ULL};
  const double targets[] = {0, 1, 200, 3}, weights[] = {0.5, 1, 2, 1e300};
  const std::uint64_t first_number = number_bytes == 8 ? kFirst : 1000;
  pack_fields(made.layout, {4, keys, targets, weighted ? weights : nullptr, first_number}, made.rows.data());
  const std::uint32_t order[] = {3, 1};
  made.block.resize(sizeof(BlockHeader) + 2 * width);
  CHECK(write_block(made.layout, made.rows.data(), order, 42, 5, made.block.data()) == made.block.size());
  return made;
}

void rows_come_back_as_they_were() {
  for (const std::size_t target_bytes : {1, 2, 4, 8})
    for (const bool weighted : {false, true})
      for (const std::size_t number_bytes : {4, 8}) {
        const Made made = make(target_bytes, weighted, number_bytes);
        CHECK(check_block(made.block.data(), made.block.size(), 42, 2, made.layout.row_bytes()) == BlockError::none);
        std::uint8_t records[10];
        std::uint64_t keys[2];
        double targets[2], weights[2];
        std::uint64_t numbers[2];
        unpack_rows(made.layout, made.block.data() + sizeof(BlockHeader), 2,
                    {records, keys, targets, weighted ? weights : nullptr, numbers});
        CHECK(records[0] == 30 && records[9] == 14);
        CHECK(keys[0] == ~0ULL && keys[1] == 8);
        CHECK(targets[0] == 3 && targets[1] == 1);
        CHECK(!weighted || (weights[0] == 1e300 && weights[1] == 1));
        const std::uint64_t first = number_bytes == 8 ? kFirst : 1000;
        CHECK(numbers[0] == first + 3 && numbers[1] == first + 1);
      }
}

void rows_take_no_more_bytes_than_their_numbers_need() {
  CHECK(row_number_bytes(std::uint64_t{1} << 32) == 4 && row_number_bytes((std::uint64_t{1} << 32) + 1) == 8);
  const std::size_t without = make(1, false, 0).layout.row_bytes();
  CHECK(make(1, false, 4).layout.row_bytes() == without + 4 && make(1, false, 8).layout.row_bytes() == without + 8);
}

void blocks_of_several_buckets_lie_in_order() {
  const Made made = make(1, false, 0);
  const std::size_t width = made.layout.row_bytes();
  const std::uint32_t order[] = {3, 1, 0, 2};
  const std::uint64_t start[] = {0, 2, 2, 4}, owners[] = {42, 43, 44};
  std::vector<std::uint8_t> out(2 * (sizeof(BlockHeader) + 2 * width));
  CHECK(write_blocks(made.layout, {made.rows, order, start, owners}, 5, out) == out.size());
  CHECK(std::equal(made.block.begin(), made.block.end(), out.begin()));
  CHECK(check_block(out.data() + out.size() / 2, out.size() / 2, 44, 2, width) == BlockError::none);
  const auto refused = [&](const GroupedRows& grouped, std::span<std::uint8_t> room) {
    try {
      write_blocks(made.layout, grouped, 5, room);
    } catch (const std::invalid_argument&) {
      return true;
    }
    return false;
  };
  const std::uint32_t beyond[] = {3, 1, 0, 4};
  const std::uint64_t falling[] = {0, 2, 1, 4}, too_far[] = {0, 2, 2, 5};
  CHECK(refused({made.rows, beyond, start, owners}, out));
  CHECK(refused({made.rows, order, falling, owners}, out));
  CHECK(refused({made.rows, order, too_far, owners}, out));
  CHECK(refused({made.rows, order, start, owners}, std::span(out).first(out.size() - 1)));
}

void every_flipped_bit_is_found() {
  Made made = make(1, true, 0);
  const std::size_t width = made.layout.row_bytes();
  for (std::size_t bit = 0; bit < made.block.size() * 8; ++bit) {
    made.block[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
    CHECK(check_block(made.block.data(), made.block.size(), 42, 2, width) != BlockError::none);
    made.block[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
  }
  CHECK(check_block(made.block.data(), made.block.size(), 43, 2, width) == BlockError::header);
  CHECK(check_block(made.block.data(), made.block.size() - 1, 42, 2, width) == BlockError::header);
}

int main() {
  rows_come_back_as_they_were();
  rows_take_no_more_bytes_than_their_numbers_need();
  blocks_of_several_buckets_lie_in_order();
  every_flipped_bit_is_found();
}
