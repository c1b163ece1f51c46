// Rows of 16-bit codes to columns, or the other way round.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oldgrowth {

// Codes of one side of a matrix, `apart` from the first of one line to the first of the next.
struct CodeLines {
  const std::uint16_t* codes;
  std::size_t lines, length, apart;
};

// to[j * apart + i] becomes code j of line i.
void transpose(const CodeLines& from, std::uint16_t* to, std::size_t apart);

}  // namespace oldgrowth
