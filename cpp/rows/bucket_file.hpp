// The blocks that buckets consist of on disk. A block holds rows of one bucket that were distributed
// together: a header and then the rows, each as the codec's record followed by what else belongs to it.
// docs/formats.md describes the bytes; they are read and written here alone.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oldgrowth {

// A row is record | key (8) | target (8, or 1, 2 or 4 for class numbers) | weight (8, if any) | number (4, if kept).
struct RowLayout {
  std::size_t record_bytes = 0;
  std::size_t target_bytes = 8;  // 8: a value; less: a class number
  bool weighted = false;
  bool numbered = false;

  std::size_t key_at() const { return record_bytes; }
  std::size_t target_at() const { return key_at() + 8; }
  std::size_t weight_at() const { return target_at() + target_bytes; }
  std::size_t number_at() const { return weight_at() + (weighted ? 8 : 0); }
  std::size_t row_bytes() const { return number_at() + (numbered ? 4 : 0); }
};

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

// The rows' own fields as separate arrays; weights and numbers may be null.
struct RowFields {
  std::uint8_t* records;
  std::uint64_t* keys;
  double* targets;
  double* weights;
  std::uint32_t* numbers;
};

// Writes what follows the record of each of `n` rows; records are already in place.
void pack_fields(const RowLayout& layout, std::size_t n, const std::uint64_t* keys, const double* targets,
                 const double* weights, std::uint32_t first_number, std::uint8_t* rows);

// One block of the rows order[0..n) at `out`; returns its size.
std::size_t write_block(const RowLayout& layout, const std::uint8_t* rows, const std::uint32_t* order, std::size_t n,
                        std::uint64_t owner, std::uint64_t sequence, std::uint8_t* out);

enum class BlockError { none, header, checksum };

// Whether the block at `bytes` is whole and is the one expected.
BlockError check_block(const std::uint8_t* bytes, std::size_t size, std::uint64_t owner, std::size_t rows,
                       std::size_t row_bytes);

// Takes the rows apart.
void unpack_rows(const RowLayout& layout, const std::uint8_t* rows, std::size_t n, const RowFields& out);

}  // namespace oldgrowth
