#include <cstring>
#include <vector>

#include "rows/bucket_file.hpp"
#include "tests/check.hpp"

using namespace oldgrowth;

struct Made {
  RowLayout layout;
  std::vector<std::uint8_t> rows, block;
};

Made make(std::size_t target_bytes, bool weighted, bool numbered) {
  Made made{{5, target_bytes, weighted, numbered}, {}, {}};
  const std::size_t width = made.layout.row_bytes();
  made.rows.resize(4 * width);
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t b = 0; b < 5; ++b) made.rows[i * width + b] = static_cast<std::uint8_t>(10 * i + b);
  const std::uint64_t keys[] = {7, 8, 9, ~0ULL};
  const double targets[] = {0, 1, 200, 3}, weights[] = {0.5, 1, 2, 1e300};
  pack_fields(made.layout, 4, keys, targets, weighted ? weights : nullptr, 1000, made.rows.data());
  const std::uint32_t order[] = {3, 1};
  made.block.resize(sizeof(BlockHeader) + 2 * width);
  CHECK(write_block(made.layout, made.rows.data(), order, 2, 42, 5, made.block.data()) == made.block.size());
  return made;
}

void rows_come_back_as_they_were() {
  for (const std::size_t target_bytes : {1, 2, 4, 8})
    for (const bool weighted : {false, true}) {
      const Made made = make(target_bytes, weighted, true);
      CHECK(check_block(made.block.data(), made.block.size(), 42, 2, made.layout.row_bytes()) == BlockError::none);
      std::uint8_t records[10];
      std::uint64_t keys[2];
      double targets[2], weights[2];
      std::uint32_t numbers[2];
      unpack_rows(made.layout, made.block.data() + sizeof(BlockHeader), 2,
                  {records, keys, targets, weighted ? weights : nullptr, numbers});
      CHECK(records[0] == 30 && records[9] == 14);
      CHECK(keys[0] == ~0ULL && keys[1] == 8);
      CHECK(targets[0] == 3 && targets[1] == 1);
      CHECK(!weighted || (weights[0] == 1e300 && weights[1] == 1));
      CHECK(numbers[0] == 1003 && numbers[1] == 1001);
    }
}

void every_flipped_bit_is_found() {
  Made made = make(1, true, false);
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
  every_flipped_bit_is_found();
}
