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

// Writes the codes of n rows, `stride` floats apart, into records `apart` bytes from each other. Returns false
// if a value is outside its range.
bool encode_direct(const DirectRun& run, const float* rows, std::size_t n, std::size_t stride, std::uint8_t* records,
                   std::size_t apart);

}  // namespace oldgrowth
