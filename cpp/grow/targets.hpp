// The targets of a block's rows, and the payload by which an entry of the split search refers to them.
#pragma once

#include <cstdint>
#include <vector>

namespace oldgrowth {

// Rows of weight zero are left out of the search.
struct Targets {
  std::vector<std::uint32_t> classes;
  std::vector<double> values;
  std::vector<double> weights;  // empty when the payloads carry small whole weights
};

// In counting mode a payload is (class << 4) | weight; otherwise it is the row's place in its block.
inline constexpr std::uint32_t kWeightBits = 4;
inline constexpr std::uint32_t kWeightMask = (1U << kWeightBits) - 1;
inline constexpr std::uint32_t kMaxCountedClasses = 1U << (16 - kWeightBits);

}  // namespace oldgrowth
