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

void sort_baseline(std::uint32_t* in, std::size_t n, std::uint32_t* out) {
  std::fill_n(out, n, 0U);
  for (std::size_t i = 0; i < n; ++i) {
    std::uint32_t rank = 0;
    for (std::size_t j = 0; j < n; ++j) rank += in[j] < in[i];
    out[rank] = in[i];
  }
  fill_gaps(out, n);
}

#if defined(__x86_64__)
[[gnu::target("avx2,popcnt")]] void sort_avx2(std::uint32_t* in, std::size_t n, std::uint32_t* out) {
  const __m256i sign = _mm256_set1_epi32(std::numeric_limits<std::int32_t>::min());
  constexpr std::size_t kMaxLanes = (kShortSort + 7) / 8;
  const std::size_t lanes = (n + 7) / 8;
  for (std::size_t i = n; i < lanes * 8; ++i) in[i] = std::numeric_limits<std::uint32_t>::max();
  __m256i keys[kMaxLanes];
  for (std::size_t v = 0; v < lanes; ++v) {
    keys[v] = _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + v * 8)), sign);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + v * 8), _mm256_setzero_si256());
  }
  alignas(32) std::uint32_t ranks[kMaxLanes * 8];
  for (std::size_t v = 0; v < lanes; ++v) {
    __m256i less = _mm256_setzero_si256();
    for (std::size_t j = 0; j < n; ++j) {
      const __m256i key = _mm256_xor_si256(_mm256_set1_epi32(static_cast<int>(in[j])), sign);
      less = _mm256_sub_epi32(less, _mm256_cmpgt_epi32(keys[v], key));
    }
    _mm256_store_si256(reinterpret_cast<__m256i*>(ranks + v * 8), less);
  }
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
