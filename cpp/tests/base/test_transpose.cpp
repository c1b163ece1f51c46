// Tiles and what is left of them against the definition, for all shapes around the size of a tile.
#include <vector>

#include "base/transpose.hpp"
#include "tests/check.hpp"

using namespace oldgrowth;

int main() {
  for (std::size_t lines = 0; lines <= 19; ++lines)
    for (std::size_t length = 0; length <= 19; ++length) {
      const std::size_t from_apart = length + 3, to_apart = lines + 2;
      std::vector<std::uint16_t> from(lines * from_apart + 1), to(length * to_apart + 1, 7);
      for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::uint16_t>(100 + 31 * i);
      std::vector<std::uint16_t> expected = to;
      for (std::size_t i = 0; i < lines; ++i)
        for (std::size_t j = 0; j < length; ++j) expected[j * to_apart + i] = from[i * from_apart + j];
      transpose({from.data(), lines, length, from_apart}, to.data(), to_apart);
      CHECK(to == expected);  // nothing beside it was written, either
    }
  return 0;
}
