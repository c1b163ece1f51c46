// A bucket prepared for growing: a row-major block of rank codes, one per row and feature. Codes have 16 bits
// if all ranks fit, otherwise 32. Equal codes are equal values and larger codes larger values,
// so a split found on codes is the split an exact search on floats would find.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "rows/row_codec.hpp"
#include "rows/row_index.hpp"

namespace oldgrowth {

template <class Code>
inline constexpr Code kMissing = std::numeric_limits<Code>::max();

// A block of more codes than this is larger than a usual L2 cache. The rows of a node are then far apart,
// but close within a column.
inline constexpr std::size_t kWorthColumns = 256 * 1024;

// A block of 32-bit codes has columns only: its nodes are large, and their rows are narrowed soon.
template <class Code>
inline constexpr bool kHasRows = sizeof(Code) == 2;

template <class Code>
struct Block {
  Block() = default;
  Block(Block&&) = default;  // `values` points into `own`, so a block is moved, never copied
  Block& operator=(Block&&) = default;

  std::size_t rows = 0;
  std::size_t features = 0;
  std::vector<Code> codes;                // rows x features; see kHasRows
  std::vector<Code> columns;              // features x rows; empty for small blocks
  std::vector<const float*> values;       // per feature: the value of each code, ascending
  std::vector<Code> lowest, highest;      // per feature: the codes lie between, missing ones included
  std::vector<std::uint8_t> has_missing;  // per feature
  std::vector<std::uint8_t> ranked;       // per feature: ranked in this block, its values in `own`
  std::vector<std::vector<float>> own;

  // Maximum bytes if this many of the features are ranked.
  static std::size_t bytes(std::size_t rows, std::size_t features, std::size_t ranked) {
    return rows * features * sizeof(Code) * (kHasRows<Code> ? 2 : 1) + rows * ranked * sizeof(float) +
           features * (2 * sizeof(Code) + 2 + sizeof(const float*) + sizeof(std::vector<float>));
  }

  const Code* row(std::size_t i) const { return codes.data() + i * features; }
  void find_ranges();
  // The codes of a feature: their first address and their stride.
  std::pair<const Code*, std::size_t> column(std::size_t f) const {
    if (columns.empty()) return {codes.data() + f, features};
    return {columns.data() + f * rows, 1};
  }
};

// Bytes that make_block needs in addition to the block.
std::size_t rank_scratch_bytes(std::size_t rows, std::size_t ranked);

// The records of the rows index[0..n).
template <class Code>
Block<Code> make_block(const RowCodec& codec, const std::uint8_t* records, const RowIndex& index, std::size_t n);

// The rows[0..n) of a large block as a block of 16-bit codes; n must be at most 65,535.
void narrow_block(const Block<std::uint32_t>& from, const std::uint32_t* rows, std::size_t n, Block<std::uint16_t>& to);

}  // namespace oldgrowth
