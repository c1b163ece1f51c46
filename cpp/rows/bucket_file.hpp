// Blocks of buckets on disk. A block has rows of one bucket that were distributed together: a header, then
// the rows, each as the record of the codec followed by key, target, weight and number. Rows that can be had again by
// their number have no record and no key. docs/formats.md describes the bytes; only this file reads and writes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rows/row_index.hpp"

namespace oldgrowth {

// A row is record | key (8) | target (8, or 1, 2 or 4 for class numbers) | weight (8, if any) | number (4 or 8, if
// any); a row without a record has no key.
struct RowLayout {
  std::size_t record_bytes = 0;
  std::size_t target_bytes = 8;  // 8: a value; less: a class number
  bool weighted = false;
  std::size_t number_bytes = 0;  // 0: rows have no numbers

  std::size_t key_at() const { return record_bytes; }
  std::size_t target_at() const { return key_at() + (record_bytes > 0 ? 8 : 0); }
  std::size_t weight_at() const { return target_at() + target_bytes; }
  std::size_t number_at() const { return weight_at() + (weighted ? 8 : 0); }
  std::size_t row_bytes() const { return number_at() + number_bytes; }
};

// Bytes of a row number if there are this many rows.
constexpr std::size_t row_number_bytes(std::uint64_t rows) { return fits_32_bits(rows) ? 4 : 8; }

struct BlockHeader {
  std::uint32_t magic;
  std::uint32_t crc;  // of the rest of the header and of the rows
  std::uint64_t owner;
  std::uint64_t sequence;  // blocks of an owner in the order of their rows
  std::uint32_t rows;
  std::uint32_t row_bytes;
};
static_assert(sizeof(BlockHeader) == 32);

inline constexpr std::uint32_t kBlockMagic = 0x4b42474f;  // "OGBK"

// The fields of rows as separate arrays; weights and numbers may be null, and so may records and keys if rows have
// none.
struct RowFields {
  std::uint8_t* records;
  std::uint64_t* keys;
  double* targets;
  double* weights;
  std::uint64_t* numbers;
};

// The fields of consecutive rows besides their records; weights may be null, and keys if rows have no records.
struct OtherFields {
  std::size_t n;
  const std::uint64_t* keys;
  const double* targets;
  const double* weights;
  std::uint64_t first_number;
};

// Writes the fields that follow the records of rows; the records are already in place.
void pack_fields(const RowLayout& layout, const OtherFields& fields, std::uint8_t* rows);

// Writes a block of the rows at the places in `order` to `out`; returns its size.
std::size_t write_block(const RowLayout& layout, const std::uint8_t* rows, std::span<const std::uint32_t> order,
                        std::uint64_t owner, std::uint64_t sequence, std::uint8_t* out);

// Rows of some buckets: those of bucket b are order[start[b]..start[b + 1]), and its block belongs to owners[b].
struct GroupedRows {
  std::span<const std::uint8_t> rows;
  std::span<const std::uint32_t> order;
  std::span<const std::uint64_t> start, owners;
};

// Writes a block for each non-empty bucket to `out`; returns the total size. Throws std::invalid_argument if anything
// is out of range.
std::size_t write_blocks(const RowLayout& layout, const GroupedRows& grouped, std::uint64_t sequence,
                         std::span<std::uint8_t> out);

enum class BlockError { none, header, checksum };

// Whether the block at `bytes` is intact and the expected one.
BlockError check_block(const std::uint8_t* bytes, std::size_t size, std::uint64_t owner, std::size_t rows,
                       std::size_t row_bytes);

// Splits rows into their fields.
void unpack_rows(const RowLayout& layout, const std::uint8_t* rows, std::size_t n, const RowFields& out);

}  // namespace oldgrowth
