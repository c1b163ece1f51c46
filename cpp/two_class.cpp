#include "two_class.hpp"

#include <algorithm>

#include "stats.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace oldgrowth {
namespace {

TwoClassBest scan_baseline(const std::uint32_t* keys, std::size_t n, const TwoClassNode& node, std::size_t min_leaf,
                           double score) {
  TwoClassBest best{score, 0, false};
  std::int64_t w = 0, c = 0;
  for (std::size_t i = 0; i + min_leaf < n; ++i) {
    const std::uint32_t payload = keys[i] & 0xffff;
    w += payload & kWeightMask;
    c += (payload >> kWeightBits) == node.marked_class ? payload & kWeightMask : 0;
    if (i + 1 < min_leaf || keys[i] >> 16 == keys[i + 1] >> 16) continue;
    if (!node.may_exceed(w, c, best.score)) continue;
    const double s = node.score(w, c);
    if (s > best.score) best = {s, i, true};
  }
  return best;
}

#if defined(__x86_64__)

// Both sums of a node must fit 15 bits, so that their products fit 31.
constexpr std::int64_t kMaxWeight = 32767;
constexpr std::size_t kMaxKeys = 4096;

// Scores are first found in float, eight at a time. Every operand is a whole number below 2^31, so a float
// score is off by less than 5 * 2^-24 of itself; whatever comes within 1e-6 of the highest is then scored
// exactly, in order. The result is that of the baseline.
[[gnu::target("avx2")]] TwoClassBest scan_avx2(const std::uint32_t* keys, std::size_t n, const TwoClassNode& node,
                                               std::size_t min_leaf, double score) {
  if (node.weight > kMaxWeight || n > kMaxKeys || n < 2) return scan_baseline(keys, n, node, min_leaf, score);
  alignas(32) std::uint32_t sums[kMaxKeys + 8];
  alignas(32) float scores[kMaxKeys + 8];
  const __m256i weight_mask = _mm256_set1_epi32(kWeightMask), class_mask = _mm256_set1_epi32(0xffff >> kWeightBits);
  const __m256i marked = _mm256_set1_epi32(static_cast<int>(node.marked_class));
  const __m256i all = _mm256_set1_epi32(static_cast<int>(node.weight));
  const __m256i all_marked = _mm256_set1_epi32(static_cast<int>(node.marked));
  const __m256i low_half = _mm256_set1_epi32(0xffff);
  const __m256 never = _mm256_set1_ps(-1.0F);
  __m256i carry = _mm256_setzero_si256();
  __m256 highest = never;
  const std::size_t last = n - 1;  // a split needs a key on its right
  for (std::size_t i = 0; i < last; i += 8) {
    const __m256i key = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(keys + i));
    const __m256i next = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(keys + i + 1));
    const __m256i w = _mm256_and_si256(key, weight_mask);
    const __m256i is_marked =
        _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_srli_epi32(key, kWeightBits), class_mask), marked);
    // Marked weight in the upper half, weight in the lower; then running sums of both at once.
    __m256i sum = _mm256_or_si256(w, _mm256_slli_epi32(_mm256_and_si256(is_marked, w), 16));
    sum = _mm256_add_epi32(sum, _mm256_slli_si256(sum, 4));
    sum = _mm256_add_epi32(sum, _mm256_slli_si256(sum, 8));
    const __m256i low_total = _mm256_permutevar8x32_epi32(sum, _mm256_setr_epi32(3, 3, 3, 3, 3, 3, 3, 3));
    sum = _mm256_add_epi32(sum, _mm256_blend_epi32(_mm256_setzero_si256(), low_total, 0xf0));
    sum = _mm256_add_epi32(sum, carry);
    carry = _mm256_permutevar8x32_epi32(sum, _mm256_set1_epi32(7));
    const __m256i left = _mm256_and_si256(sum, low_half), left_marked = _mm256_srli_epi32(sum, 16);
    const __m256i apart = _mm256_sub_epi32(_mm256_mullo_epi32(left_marked, all), _mm256_mullo_epi32(left, all_marked));
    const __m256 apart_f = _mm256_cvtepi32_ps(apart);
    const __m256 sizes = _mm256_cvtepi32_ps(_mm256_mullo_epi32(left, _mm256_sub_epi32(all, left)));
    __m256 s = _mm256_div_ps(_mm256_mul_ps(apart_f, apart_f), sizes);
    const __m256i same = _mm256_cmpeq_epi32(_mm256_srli_epi32(key, 16), _mm256_srli_epi32(next, 16));
    s = _mm256_blendv_ps(s, never, _mm256_castsi256_ps(same));
    _mm256_store_si256(reinterpret_cast<__m256i*>(sums + i), sum);
    _mm256_store_ps(scores + i, s);
    if (i + 8 <= last && i + 1 >= min_leaf && i + 8 + min_leaf <= n)
      highest = _mm256_max_ps(highest, s);
    else
      for (std::size_t j = i; j < i + 8; ++j) {
        if (j + 1 < min_leaf || j + min_leaf >= n) scores[j] = -1.0F;
        highest = _mm256_max_ps(highest, _mm256_set1_ps(scores[j]));
      }
  }
  alignas(32) float lanes[8];
  _mm256_store_ps(lanes, highest);
  const double high = *std::max_element(lanes, lanes + 8);
  TwoClassBest best{score, 0, false};
  const auto wanted = static_cast<float>(std::max(high, score) * (1 - 1e-6));
  if (high < 0 || high < wanted) return best;
  const __m256 limit = _mm256_set1_ps(wanted);
  for (std::size_t i = 0; i < last; i += 8) {
    auto hits = static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(_mm256_load_ps(scores + i), limit, _CMP_GE_OQ)));
    for (; hits != 0; hits &= hits - 1) {
      const std::size_t at = i + static_cast<unsigned>(__builtin_ctz(hits));
      const double s = node.score(sums[at] & 0xffff, sums[at] >> 16);
      if (s > best.score) best = {s, at, true};
    }
  }
  return best;
}
#endif

}  // namespace

TwoClassScan two_class_scan_baseline() { return scan_baseline; }

TwoClassScan two_class_scan() {
#if defined(__x86_64__)
  static const bool avx2 = __builtin_cpu_supports("avx2");
  if (avx2) return scan_avx2;
#endif
  return scan_baseline;
}

}  // namespace oldgrowth
