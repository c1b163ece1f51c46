#include "base/transpose.hpp"

#include <algorithm>

#include "base/cpu.hpp"

namespace oldgrowth {
namespace {

void transpose_plainly(const CodeLines& from, std::size_t first, std::uint16_t* to, std::size_t apart) {
  for (std::size_t i = first; i < from.lines; ++i)
    for (std::size_t j = 0; j < from.length; ++j) to[j * apart + i] = from.codes[i * from.apart + j];
}

#if defined(__x86_64__)
constexpr std::size_t kLanes = 8;

// Transposes eight codes of eight lines with SSE2, which every x86-64 has.
inline void transpose_tile(const std::uint16_t* from, std::size_t from_apart, std::uint16_t* to, std::size_t to_apart) {
  __m128i line[kLanes], pair[kLanes], quad[kLanes];
  for (std::size_t i = 0; i < kLanes; ++i)
    line[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * from_apart));
  for (std::size_t i = 0; i < kLanes; i += 2) {
    pair[i] = _mm_unpacklo_epi16(line[i], line[i + 1]);
    pair[i + 1] = _mm_unpackhi_epi16(line[i], line[i + 1]);
  }
  for (std::size_t i = 0; i < kLanes; i += 4)
    for (std::size_t half = 0; half < 2; ++half) {
      quad[i + 2 * half] = _mm_unpacklo_epi32(pair[i + half], pair[i + half + 2]);
      quad[i + 2 * half + 1] = _mm_unpackhi_epi32(pair[i + half], pair[i + half + 2]);
    }
  for (std::size_t i = 0; i < kLanes / 2; ++i) {
    const __m128i low = _mm_unpacklo_epi64(quad[i], quad[i + 4]), high = _mm_unpackhi_epi64(quad[i], quad[i + 4]);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 2 * i * to_apart), low);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + (2 * i + 1) * to_apart), high);
  }
}

// Transposes as many lines as fit whole tiles; returns their number.
std::size_t transpose_in_tiles(const CodeLines& from, std::uint16_t* to, std::size_t apart) {
  const std::size_t in_tiles = from.length < kLanes ? 0 : from.lines / kLanes * kLanes;
  for (std::size_t i = 0; i < in_tiles; i += kLanes)
    for (std::size_t j = 0; j < from.length; j += kLanes) {
      const std::size_t first = std::min(j, from.length - kLanes);  // the last tile overlaps the one before
      transpose_tile(from.codes + i * from.apart + first, from.apart, to + first * apart + i, apart);
    }
  return in_tiles;
}
#endif

}  // namespace

void transpose(const CodeLines& from, std::uint16_t* to, std::size_t apart) {
  std::size_t done = 0;
#if defined(__x86_64__)
  done = transpose_in_tiles(from, to, apart);
#endif
  transpose_plainly(from, done, to, apart);
}

}  // namespace oldgrowth
