#include "sort_keys.hpp"

#include <algorithm>
#include <limits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace oldgrowth {
namespace {

// Equal keys get the same rank and leave the slots behind it at zero; the running maximum fills them.
void fill_gaps(std::uint32_t* out, std::size_t n) {
  std::uint32_t highest = 0;
  for (std::size_t i = 0; i < n; ++i) out[i] = highest = std::max(highest, out[i]);
}

void sort_baseline(const std::uint32_t* in, std::size_t n, std::uint32_t* out) {
  std::fill_n(out, n, 0U);
  for (std::size_t i = 0; i < n; ++i) {
    std::uint32_t rank = 0;
    for (std::size_t j = 0; j < n; ++j) rank += in[j] < in[i];
    out[rank] = in[i];
  }
  fill_gaps(out, n);
}

#if defined(__x86_64__)
// Ranks of kLanes * 8 keys at once: how many of the n keys (with flipped sign bits) are smaller.
template <std::size_t kLanes>
[[gnu::target("avx2")]] inline void count_smaller(const std::int32_t* flipped, std::size_t n, std::size_t first,
                                                  std::uint32_t* ranks) {
  __m256i keys[kLanes], smaller[kLanes];
  for (std::size_t v = 0; v < kLanes; ++v) {
    keys[v] = _mm256_load_si256(reinterpret_cast<const __m256i*>(flipped + first + v * 8));
    smaller[v] = _mm256_setzero_si256();
  }
  for (std::size_t j = 0; j < n; ++j) {
    const __m256i key = _mm256_set1_epi32(flipped[j]);
    for (std::size_t v = 0; v < kLanes; ++v) smaller[v] = _mm256_sub_epi32(smaller[v], _mm256_cmpgt_epi32(keys[v], key));
  }
  for (std::size_t v = 0; v < kLanes; ++v)
    _mm256_store_si256(reinterpret_cast<__m256i*>(ranks + first + v * 8), smaller[v]);
}

[[gnu::target("avx2")]] void sort_avx2(const std::uint32_t* in, std::size_t n, std::uint32_t* out) {
  const __m256i sign = _mm256_set1_epi32(std::numeric_limits<std::int32_t>::min());
  alignas(32) std::int32_t flipped[kShortSort + 8];
  alignas(32) std::uint32_t ranks[kShortSort + 8];
  const std::size_t lanes = (n + 7) / 8;
  for (std::size_t v = 0; v < lanes; ++v) {
    const __m256i keys = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + v * 8));
    _mm256_store_si256(reinterpret_cast<__m256i*>(flipped + v * 8), _mm256_xor_si256(keys, sign));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + v * 8), _mm256_setzero_si256());
  }
  std::size_t v = 0;
  for (; v + 4 <= lanes; v += 4) count_smaller<4>(flipped, n, v * 8, ranks);
  if (v + 2 <= lanes) {
    count_smaller<2>(flipped, n, v * 8, ranks);
    v += 2;
  }
  if (v < lanes) count_smaller<1>(flipped, n, v * 8, ranks);
  for (std::size_t i = 0; i < n; ++i) out[ranks[i]] = in[i];
  fill_gaps(out, n);
}
#endif

}  // namespace

ShortSort short_sort_baseline() { return sort_baseline; }

ShortSort short_sort() {
#if defined(__x86_64__)
  static const bool avx2 = __builtin_cpu_supports("avx2");
  if (avx2) return sort_avx2;
#endif
  return sort_baseline;
}

}  // namespace oldgrowth
