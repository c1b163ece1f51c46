// Transposes 16-bit codes from rows to columns or vice versa.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oldgrowth {

// The lines of a matrix of codes; the first codes of neighbouring lines are `apart` from each other.
struct CodeLines {
  const std::uint16_t* codes;
  std::size_t lines, length, apart;
};

// to[j * apart + i] becomes code j of line i.
void transpose(const CodeLines& from, std::uint16_t* to, std::size_t apart);

}  // namespace oldgrowth
