// Open addressing for sets of floats, by their bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/rng.hpp"

namespace oldgrowth {

inline constexpr std::uint32_t kFreeSlot = 0x7fc00001;  // a NaN, so never a value

// The first slot to try in a table of `size` slots, a power of two.
constexpr std::size_t slot_of(std::uint32_t bits, std::size_t size) { return (bits * kGolden >> 32) & (size - 1); }

}  // namespace oldgrowth
