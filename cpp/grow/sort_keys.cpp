#include "grow/sort_keys.hpp"

#include <algorithm>
#include <limits>

#include "base/cpu.hpp"

namespace oldgrowth {
namespace {

void sort_baseline(std::uint32_t* in, std::size_t n, std::uint32_t* out) {
  std::copy_n(in, n, out);
  std::sort(out, out + n);
}

#if defined(__x86_64__)

// Up to this many keys are ranked: for each, the smaller ones are counted.
constexpr std::size_t kRanked = 24;

// Ranks of kLanes * 8 keys at once: how many of the n keys (with flipped sign bits) are smaller.
template <std::size_t kLanes>
OLDGROWTH_AVX2 inline void count_smaller(const std::int32_t* flipped, std::size_t n, std::uint32_t* ranks) {
  __m256i keys[kLanes], smaller[kLanes];
  for (std::size_t v = 0; v < kLanes; ++v) {
    keys[v] = _mm256_load_si256(reinterpret_cast<const __m256i*>(flipped + v * 8));
    smaller[v] = _mm256_setzero_si256();
  }
  for (std::size_t j = 0; j < n; ++j) {
    const __m256i key = _mm256_set1_epi32(flipped[j]);
    for (std::size_t v = 0; v < kLanes; ++v)
      smaller[v] = _mm256_sub_epi32(smaller[v], _mm256_cmpgt_epi32(keys[v], key));
  }
  for (std::size_t v = 0; v < kLanes; ++v) _mm256_store_si256(reinterpret_cast<__m256i*>(ranks + v * 8), smaller[v]);
}

OLDGROWTH_AVX2 void sort_by_rank(const std::uint32_t* in, std::size_t n, std::uint32_t* out) {
  const __m256i sign = _mm256_set1_epi32(std::numeric_limits<std::int32_t>::min());
  alignas(32) std::int32_t flipped[kRanked];
  alignas(32) std::uint32_t ranks[kRanked];
  const std::size_t lanes = (n + 7) / 8;
  for (std::size_t v = 0; v < lanes; ++v) {
    const __m256i keys = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + v * 8));
    _mm256_store_si256(reinterpret_cast<__m256i*>(flipped + v * 8), _mm256_xor_si256(keys, sign));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + v * 8), _mm256_setzero_si256());
  }
  if (lanes == 1)
    count_smaller<1>(flipped, n, ranks);
  else if (lanes == 2)
    count_smaller<2>(flipped, n, ranks);
  else
    count_smaller<3>(flipped, n, ranks);
  for (std::size_t i = 0; i < n; ++i) out[ranks[i]] = in[i];
  // Equal keys have the same rank and leave the slots behind it at zero; the running maximum fills them.
  std::uint32_t highest = 0;
  for (std::size_t i = 0; i < n; ++i) out[i] = highest = std::max(highest, out[i]);
}

OLDGROWTH_AVX2 inline void exchange(__m256i& a, __m256i& b) {
  const __m256i low = _mm256_min_epu32(a, b);
  b = _mm256_max_epu32(a, b);
  a = low;
}

OLDGROWTH_AVX2 inline __m256i reversed(__m256i v) {
  return _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0));
}

// Sorts a bitonic vector: halves, quarters, neighbours.
OLDGROWTH_AVX2 inline __m256i sorted_bitonic(__m256i v) {
  __m256i other = _mm256_permute2x128_si256(v, v, 1);
  v = _mm256_blend_epi32(_mm256_min_epu32(v, other), _mm256_max_epu32(v, other), 0xf0);
  other = _mm256_shuffle_epi32(v, 0x4e);
  v = _mm256_blend_epi32(_mm256_min_epu32(v, other), _mm256_max_epu32(v, other), 0xcc);
  other = _mm256_shuffle_epi32(v, 0xb1);
  return _mm256_blend_epi32(_mm256_min_epu32(v, other), _mm256_max_epu32(v, other), 0xaa);
}

// Merges two sorted runs of kVectors / 2 vectors each, in place.
template <std::size_t kVectors>
OLDGROWTH_AVX2 inline void merge(__m256i* v) {
  constexpr std::size_t kHalf = kVectors / 2;
  __m256i upper[kHalf];
  for (std::size_t i = 0; i < kHalf; ++i) upper[i] = reversed(v[kVectors - 1 - i]);
  for (std::size_t i = 0; i < kHalf; ++i) {
    v[kHalf + i] = _mm256_max_epu32(v[i], upper[i]);
    v[i] = _mm256_min_epu32(v[i], upper[i]);
  }
  for (std::size_t stride = kHalf / 2; stride > 0; stride /= 2)
    for (std::size_t i = 0; i < kVectors; ++i)
      if ((i & stride) == 0) exchange(v[i], v[i + stride]);
  for (std::size_t i = 0; i < kVectors; ++i) v[i] = sorted_bitonic(v[i]);
}

OLDGROWTH_AVX2 inline void transpose(__m256i* v) {
  __m256i a[8], b[8];
  for (std::size_t i = 0; i < 8; i += 2) {
    a[i] = _mm256_unpacklo_epi32(v[i], v[i + 1]);
    a[i + 1] = _mm256_unpackhi_epi32(v[i], v[i + 1]);
  }
  for (std::size_t i = 0; i < 8; i += 4) {
    b[i] = _mm256_unpacklo_epi64(a[i], a[i + 2]);
    b[i + 1] = _mm256_unpackhi_epi64(a[i], a[i + 2]);
    b[i + 2] = _mm256_unpacklo_epi64(a[i + 1], a[i + 3]);
    b[i + 3] = _mm256_unpackhi_epi64(a[i + 1], a[i + 3]);
  }
  for (std::size_t i = 0; i < 4; ++i) {
    v[i] = _mm256_permute2x128_si256(b[i], b[i + 4], 0x20);
    v[i + 4] = _mm256_permute2x128_si256(b[i], b[i + 4], 0x31);
  }
}

// Sorts 64 keys: the eight lanes by a network of 19 exchanges, then runs of 8, 16 and 32 are merged.
OLDGROWTH_AVX2 inline void sort_64(__m256i* v) {
  constexpr std::uint8_t kNetwork[19][2] = {{0, 2}, {1, 3}, {4, 6}, {5, 7}, {0, 4}, {1, 5}, {2, 6},
                                            {3, 7}, {0, 1}, {2, 3}, {4, 5}, {6, 7}, {2, 4}, {3, 5},
                                            {1, 4}, {3, 6}, {1, 2}, {3, 4}, {5, 6}};
#pragma GCC unroll 19
  for (const auto& pair : kNetwork) exchange(v[pair[0]], v[pair[1]]);
  transpose(v);
  for (std::size_t i = 0; i < 8; i += 2) merge<2>(v + i);
  for (std::size_t i = 0; i < 8; i += 4) merge<4>(v + i);
  merge<8>(v);
}

OLDGROWTH_AVX2 void sort_avx2(std::uint32_t* in, std::size_t n, std::uint32_t* out) {
  if (n <= kRanked) {
    sort_by_rank(in, n, out);
    return;
  }
  const std::size_t padded = n <= 64 ? 64 : n <= 128 ? 128 : 256;
  std::fill(in + n, in + padded, std::numeric_limits<std::uint32_t>::max());
  __m256i v[kShortSort / 8];
  for (std::size_t block = 0; block < padded / 8; block += 8) {
    for (std::size_t i = block; i < block + 8; ++i)
      v[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + i * 8));
    sort_64(v + block);
  }
  if (padded >= 128) merge<16>(v);
  if (padded == 256) {
    merge<16>(v + 16);
    merge<32>(v);
  }
  for (std::size_t i = 0; i < padded / 8; ++i) _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i * 8), v[i]);
}
#endif

}  // namespace

ShortSort short_sort_baseline() { return sort_baseline; }

ShortSort short_sort() {
#if defined(__x86_64__)
  if (has_avx2()) return sort_avx2;
#endif
  return sort_baseline;
}

}  // namespace oldgrowth
