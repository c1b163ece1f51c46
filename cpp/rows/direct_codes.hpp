// Codes without lookup: whole numbers of a dense range are stored as the difference from the lowest one.
// Neighbouring features of this kind are encoded together, row by row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace oldgrowth {

// Neighbouring features whose codes have the same width and are adjacent in the record.
struct DirectRun {
  std::size_t first;   // feature
  std::size_t offset;  // of the first code in the record
  bool one_byte;       // else two
  std::vector<std::int32_t> lowest;
  std::vector<std::uint32_t> highest;  // code
  std::vector<std::uint32_t> missing;  // all bits set where values may be missing

  std::size_t size() const { return lowest.size(); }
};

// Rows of floats: the first one, their number, and the floats from one to the next.
struct FloatBlock {
  const float* values;
  std::size_t n, stride;
};

// Where records are written: the first one, and the bytes from one to the next.
struct RecordBlock {
  std::uint8_t* bytes;
  std::size_t stride;
};

// Writes the codes of rows into their records. Returns false if a value is outside its range.
bool encode_direct(const DirectRun& run, FloatBlock rows, RecordBlock records);

}  // namespace oldgrowth
