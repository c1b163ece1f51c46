#include "grow/counted.hpp"

#include <algorithm>
#include <numeric>

#include "base/cpu.hpp"
#include "grow/targets.hpp"

namespace oldgrowth {

double CountedNode::score(const std::int32_t* left) const {
  std::int64_t w = 0;
  for (std::size_t k = 0; k < n_classes; ++k) w += left[k];
  std::uint64_t sum = 0;  // at most 8 * 2^60
  for (std::size_t k = 0; k < n_classes; ++k) {
    const std::int64_t apart = std::int64_t{left[k]} * weight - w * totals[k];
    sum += static_cast<std::uint64_t>(apart * apart);
  }
  return static_cast<double>(sum) / static_cast<double>(w * (weight - w));
}

namespace {

using Left = std::array<std::int32_t, kVectorClasses>;

CountedBest scan_keys_baseline(const std::uint32_t* keys, std::size_t n, const CountedNode& node, std::size_t min_leaf,
                               double score, CountedScratch&) {
  CountedBest best{score};
  Left left{};
  for (std::size_t i = 0; i + 1 < n; ++i) {
    const std::uint32_t k = (keys[i] & 0xffff) >> kWeightBits;
    for (std::size_t s = 0; s < node.n_classes; ++s)
      if (node.classes[s] == k) left[s] += static_cast<std::int32_t>(keys[i] & kWeightMask);
    if (i + 1 < min_leaf || i + 1 + min_leaf > n || keys[i] >> 16 == keys[i + 1] >> 16) continue;
    const double found = node.score(left.data());
    if (found > best.score) best = {found, i, std::accumulate(left.begin(), left.end(), 0), true};
  }
  return best;
}

CountedBest scan_bins_baseline(const CountedBins& bins, const CountedNode& node, std::size_t min_leaf, double score,
                               CountedScratch&) {
  CountedBest best{score};
  Left left{};
  std::size_t n = 0, rows = 0;
  for (std::size_t s = 0; s < node.n_classes; ++s) n += node.rows[s];
  for (std::size_t c = 0; c < bins.n_bins; ++c) {
    const std::size_t before = rows;
    for (std::size_t s = 0; s < node.n_classes; ++s) {
      const std::uint32_t bin = bins.bins[s * bins.stride + c];
      left[s] += static_cast<std::int32_t>(bin & 0xffff);
      rows += bin >> 16;
    }
    if (rows == before || rows == n || rows < min_leaf || rows + min_leaf > n) continue;
    const double found = node.score(left.data());
    if (found > best.score) best = {found, c, std::accumulate(left.begin(), left.end(), 0), true};
  }
  return best;
}

// Vectorized by the compiler, for the baseline and for AVX2.
[[gnu::always_inline]] inline CodeRange range_of(const std::uint16_t* codes, std::size_t n) {
  CodeRange range{codes[0], codes[0]};
  for (std::size_t i = 1; i < n; ++i) {
    range.lowest = std::min(range.lowest, codes[i]);
    range.highest = std::max(range.highest, codes[i]);
  }
  return range;
}

[[gnu::always_inline]] inline std::uint32_t above(const std::uint16_t* codes, const std::uint32_t* entries,
                                                  std::size_t n, std::uint16_t last) {
  if (entries == nullptr) {
    std::uint16_t rows = 0;
    for (std::size_t i = 0; i < n; ++i) rows = static_cast<std::uint16_t>(rows + (codes[i] > last));
    return rows * 0x10001U;
  }
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += codes[i] > last ? 1U << 16 | (entries[i] & kWeightMask) : 0U;
  return sum;
}

CodeRange find_range_baseline(const std::uint16_t* codes, std::size_t n) { return range_of(codes, n); }
std::uint32_t count_above_baseline(const std::uint16_t* codes, const std::uint32_t* entries, std::size_t n,
                                   std::uint16_t last) {
  return above(codes, entries, n, last);
}

#if defined(__x86_64__)

// Scores are first found in float, eight at a time. They are sums of squares of whole numbers below 2^31, so each
// is off by less than 12 * 2^-24 of itself; whatever comes within kMargin of the highest is then scored exactly,
// in order. The result is that of the baseline.
constexpr double kMargin = 2e-6;

OLDGROWTH_AVX2 inline __m256i load(const std::uint32_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
OLDGROWTH_AVX2 inline void store(std::uint32_t* to, __m256i v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v);
}

// Running sums of both halves of each word, from `carry` on, which becomes the last of them.
OLDGROWTH_AVX2 inline __m256i running_sum(__m256i v, __m256i& carry) {
  v = _mm256_add_epi32(v, _mm256_slli_si256(v, 4));
  v = _mm256_add_epi32(v, _mm256_slli_si256(v, 8));
  const __m256i low_total = _mm256_permutevar8x32_epi32(v, _mm256_set1_epi32(3));
  v = _mm256_add_epi32(v, _mm256_blend_epi32(_mm256_setzero_si256(), low_total, 0xf0));
  v = _mm256_add_epi32(v, carry);
  carry = _mm256_permutevar8x32_epi32(v, _mm256_set1_epi32(7));
  return v;
}

// With L_k << 16 | w in a word, one instruction gives L_k * W - w * T_k.
OLDGROWTH_AVX2 inline __m256i factors(const CountedNode& node, std::size_t s) {
  return _mm256_set1_epi32(static_cast<int>(static_cast<std::uint32_t>(node.weight) << 16 |
                                            (static_cast<std::uint32_t>(-node.totals[s]) & 0xffff)));
}
OLDGROWTH_AVX2 inline __m256 squared(__m256i v) {
  const __m256 f = _mm256_cvtepi32_ps(v);
  return _mm256_mul_ps(f, f);
}
OLDGROWTH_AVX2 inline __m256 sizes(__m256i w, __m256i all) {
  return _mm256_cvtepi32_ps(_mm256_mullo_epi32(w, _mm256_sub_epi32(all, w)));
}

OLDGROWTH_AVX2 inline float highest_of(__m256 v) {
  alignas(32) float lanes[8];
  _mm256_store_ps(lanes, v);
  return *std::max_element(lanes, lanes + 8);
}

// The first place with the highest exact score, among those whose float scores are close to the highest.
template <class LeftAt>
OLDGROWTH_AVX2 inline CountedBest exact_best(const CountedNode& node, const float* scores, std::size_t n, float high,
                                             double score, const LeftAt& left_at) {
  CountedBest best{score};
  const auto wanted = static_cast<float>(std::max<double>(high, score) * (1 - kMargin));
  if (high < 0 || high < wanted) return best;
  const __m256 limit = _mm256_set1_ps(wanted);
  for (std::size_t i = 0; i < n; i += 8) {
    auto hits =
        static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(scores + i), limit, _CMP_GE_OQ)));
    for (; hits != 0; hits &= hits - 1) {
      const std::size_t at = i + static_cast<unsigned>(__builtin_ctz(hits));
      const Left left = left_at(at);
      const double found = node.score(left.data());
      if (found > best.score) best = {found, at, std::accumulate(left.begin(), left.end(), 0), true};
    }
  }
  return best;
}

OLDGROWTH_AVX2 CountedBest scan_keys_avx2(const std::uint32_t* keys, std::size_t n, const CountedNode& node,
                                          std::size_t min_leaf, double score, CountedScratch& scratch) {
  if (n < 2 * min_leaf || n < 2) return {score};
  const std::size_t counted = node.n_classes - 1;  // the last class follows from the others
  const std::size_t padded = (n + 7) / 8 * 8;
  if (scratch.sums.size() < counted * padded) scratch.sums.resize(2 * counted * padded);
  if (scratch.scores.size() < padded) scratch.scores.resize(2 * padded);
  std::uint32_t* sums = scratch.sums.data();
  float* scores = scratch.scores.data();
  const __m256i weight_mask = _mm256_set1_epi32(kWeightMask), class_mask = _mm256_set1_epi32(0xffff & ~kWeightMask);
  const __m256i all = _mm256_set1_epi32(node.weight), low_half = _mm256_set1_epi32(0xffff);
  const __m256 never = _mm256_set1_ps(-1.0F);
  __m256i carry[kVectorClasses], factor[kVectorClasses], marked[kVectorClasses];
  for (std::size_t s = 0; s < counted; ++s) {
    carry[s] = _mm256_setzero_si256();
    factor[s] = factors(node, s);
    marked[s] = _mm256_set1_epi32(static_cast<int>(node.classes[s] << kWeightBits));
  }
  __m256 highest = never;
  const std::size_t first = min_leaf - 1, last = n - min_leaf;  // boundaries behind [first, last)
  for (std::size_t i = 0; i < last; i += 8) {
    const __m256i key = load(keys + i), next = load(keys + i + 1);
    const __m256i w = _mm256_and_si256(key, weight_mask), k = _mm256_and_si256(key, class_mask);
    __m256i left = _mm256_setzero_si256(), others = _mm256_setzero_si256();
    __m256 squares = _mm256_setzero_ps();
    for (std::size_t s = 0; s < counted; ++s) {
      const __m256i mine = _mm256_and_si256(_mm256_cmpeq_epi32(k, marked[s]), w);
      const __m256i sum = running_sum(_mm256_or_si256(w, _mm256_slli_epi32(mine, 16)), carry[s]);
      store(sums + s * padded + i, sum);
      const __m256i apart = _mm256_madd_epi16(sum, factor[s]);
      others = _mm256_add_epi32(others, apart);
      squares = _mm256_add_ps(squares, squared(apart));
      left = _mm256_and_si256(sum, low_half);
    }
    squares = _mm256_add_ps(squares, squared(others));
    __m256 s = _mm256_div_ps(squares, sizes(left, all));
    const __m256i same = _mm256_cmpeq_epi32(_mm256_srli_epi32(key, 16), _mm256_srli_epi32(next, 16));
    s = _mm256_blendv_ps(s, never, _mm256_castsi256_ps(same));
    _mm256_storeu_ps(scores + i, s);
    if (i >= first && i + 8 <= last) {
      highest = _mm256_max_ps(s, highest);
    } else {
      for (std::size_t j = i; j < i + 8; ++j) {
        if (j < first || j >= last) scores[j] = -1.0F;
      }
      highest = _mm256_max_ps(_mm256_loadu_ps(scores + i), highest);
    }
  }
  return exact_best(node, scores, last, highest_of(highest), score, [&](std::size_t at) {
    Left left{};
    std::int32_t rest = static_cast<std::int32_t>(sums[at] & 0xffff);
    for (std::size_t s = 0; s < counted; ++s) rest -= left[s] = static_cast<std::int32_t>(sums[s * padded + at] >> 16);
    left[counted] = rest;
    return left;
  });
}

// Running sums of the bins into scratch, behind eight zeros for each class, and the score of the boundary behind each.
// Returns the highest.
OLDGROWTH_AVX2 float score_bins(const CountedBins& bins, const CountedNode& node, std::size_t min_leaf,
                                CountedScratch& scratch) {
  const std::size_t padded = (bins.n_bins + 7) / 8 * 8, room = padded + CountedScratch::kZeros;
  scratch.room = room;
  if (scratch.sums.size() < node.n_classes * room) scratch.sums.resize(2 * node.n_classes * room);
  if (scratch.scores.size() < padded) scratch.scores.resize(2 * padded);
  std::size_t n = 0;
  __m256i carry[kVectorClasses], factor[kVectorClasses];
  for (std::size_t s = 0; s < node.n_classes; ++s) {
    n += node.rows[s];
    carry[s] = _mm256_setzero_si256();
    factor[s] = factors(node, s);
    store(scratch.sums.data() + s * room, carry[s]);
  }
  const __m256i all = _mm256_set1_epi32(node.weight), low_half = _mm256_set1_epi32(0xffff);
  const __m256i fewest = _mm256_set1_epi32(static_cast<int>(min_leaf)),
                most = _mm256_set1_epi32(static_cast<int>(n) - static_cast<int>(min_leaf));
  const __m256 never = _mm256_set1_ps(-1.0F);
  __m256 highest = never;
  for (std::size_t c = 0; c < padded; c += 8) {
    __m256i here = _mm256_setzero_si256(), total = here, others = here;
    __m256i sum[kVectorClasses];
    for (std::size_t s = 0; s < node.n_classes; ++s) {
      const __m256i bin = load(bins.bins + s * bins.stride + c);
      here = _mm256_or_si256(here, bin);
      sum[s] = running_sum(bin, carry[s]);
      store(scratch.sums.data() + s * room + CountedScratch::kZeros + c, sum[s]);
      total = _mm256_add_epi32(total, sum[s]);
    }
    const __m256i w = _mm256_and_si256(total, low_half), rows = _mm256_srli_epi32(total, 16);
    __m256 squares = _mm256_setzero_ps();
    for (std::size_t s = 0; s + 1 < node.n_classes; ++s) {
      const __m256i apart = _mm256_madd_epi16(_mm256_or_si256(_mm256_slli_epi32(sum[s], 16), w), factor[s]);
      others = _mm256_add_epi32(others, apart);
      squares = _mm256_add_ps(squares, squared(apart));
    }
    squares = _mm256_add_ps(squares, squared(others));
    __m256 s = _mm256_div_ps(squares, sizes(w, all));
    const __m256i empty = _mm256_cmpeq_epi32(here, _mm256_setzero_si256());
    const __m256i too_few = _mm256_or_si256(_mm256_cmpgt_epi32(fewest, rows), _mm256_cmpgt_epi32(rows, most));
    s = _mm256_blendv_ps(s, never, _mm256_castsi256_ps(_mm256_or_si256(empty, too_few)));
    _mm256_storeu_ps(scratch.scores.data() + c, s);
    highest = _mm256_max_ps(s, highest);
  }
  return highest_of(highest);
}

OLDGROWTH_AVX2 CountedBest scan_bins_avx2(const CountedBins& bins, const CountedNode& node, std::size_t min_leaf,
                                          double score, CountedScratch& scratch) {
  const float high = score_bins(bins, node, min_leaf, scratch);
  const std::size_t padded = (bins.n_bins + 7) / 8 * 8, room = scratch.room;
  return exact_best(node, scratch.scores.data(), padded, high, score, [&](std::size_t at) {
    Left left{};
    for (std::size_t s = 0; s < node.n_classes; ++s)
      left[s] = static_cast<std::int32_t>(scratch.sums[s * room + CountedScratch::kZeros + at] & 0xffff);
    return left;
  });
}

// The contribution of one class to the score with L_k = k of w on the left; nothing at the ends of a node.
OLDGROWTH_AVX2 inline __m256 corner(__m256i w, __m256i k, __m256i factor, __m256i all) {
  const __m256 size = _mm256_max_ps(sizes(w, all), _mm256_set1_ps(1.0F));
  return _mm256_div_ps(squared(_mm256_madd_epi16(_mm256_or_si256(_mm256_slli_epi32(k, 16), w), factor)), size);
}

// The score is a sum of convex functions of (w, L_k), one for each class. While the rows of a bin move one by one, in
// whatever order, (w, L_k) stays within a parallelogram, and a convex function is highest in a corner of it. The
// corners are the two ends and the two ways between them, class k first or all others first; the ends are never the
// highest, since adding rows of whichever side is already too many there raises the score. The sum over the classes
// bounds the score.
OLDGROWTH_AVX2 std::size_t find_promising_avx2(const CountedBins& bins, const CountedNode& node, std::size_t min_leaf,
                                               double score, CountedScratch& scratch) {
  const float high = score_bins(bins, node, min_leaf, scratch);
  const std::size_t padded = (bins.n_bins + 7) / 8 * 8, room = scratch.room;
  if (scratch.promising.size() < padded) scratch.promising.resize(2 * padded);
  const __m256i all = _mm256_set1_epi32(node.weight), low_half = _mm256_set1_epi32(0xffff);
  const __m256 wanted = _mm256_set1_ps(static_cast<float>(std::max<double>(high, score) * (1 - kMargin)));
  const std::size_t terms = node.n_classes == 2 ? 1 : node.n_classes;
  const __m256 scale = _mm256_set1_ps(node.n_classes == 2 ? 2.0F : 1.0F);
  __m256i factor[kVectorClasses];
  for (std::size_t s = 0; s < terms; ++s) factor[s] = factors(node, s);
  std::size_t rows = 0;
  for (std::size_t c = 0; c < padded; c += 8) {
    __m256i from = _mm256_setzero_si256(), to = from;
    for (std::size_t s = 0; s < node.n_classes; ++s) {
      from = _mm256_add_epi32(from, load(scratch.sums.data() + s * room + CountedScratch::kZeros - 1 + c));
      to = _mm256_add_epi32(to, load(scratch.sums.data() + s * room + CountedScratch::kZeros + c));
    }
    const __m256i w1 = _mm256_and_si256(from, low_half), w2 = _mm256_and_si256(to, low_half);
    __m256 bound = _mm256_setzero_ps();
    for (std::size_t s = 0; s < terms; ++s) {
      const __m256i k1 =
          _mm256_and_si256(load(scratch.sums.data() + s * room + CountedScratch::kZeros - 1 + c), low_half);
      const __m256i k2 = _mm256_and_si256(load(scratch.sums.data() + s * room + CountedScratch::kZeros + c), low_half);
      const __m256i more = _mm256_sub_epi32(k2, k1);
      bound = _mm256_add_ps(bound, _mm256_max_ps(corner(_mm256_add_epi32(w1, more), k2, factor[s], all),
                                                 corner(_mm256_sub_epi32(w2, more), k1, factor[s], all)));
    }
    const __m256i empty = _mm256_cmpeq_epi32(from, to);
    const __m256 good =
        _mm256_andnot_ps(_mm256_castsi256_ps(empty), _mm256_cmp_ps(_mm256_mul_ps(bound, scale), wanted, _CMP_GE_OQ));
    const auto mask = static_cast<unsigned>(_mm256_movemask_ps(good));
    for (unsigned j = 0; j < 8; ++j) scratch.promising[c + j] = mask >> j & 1;
    if (mask == 0) continue;
    alignas(32) std::uint32_t here[8];
    store(here, _mm256_srli_epi32(_mm256_sub_epi32(to, from), 16));
    for (unsigned j = 0; j < 8; ++j) rows += mask >> j & 1 ? here[j] : 0;
  }
  return rows;
}

OLDGROWTH_AVX2 CodeRange find_range_avx2(const std::uint16_t* codes, std::size_t n) { return range_of(codes, n); }
OLDGROWTH_AVX2 std::uint32_t count_above_avx2(const std::uint16_t* codes, const std::uint32_t* entries, std::size_t n,
                                              std::uint16_t last) {
  return above(codes, entries, n, last);
}
#endif

}  // namespace

const CountedKernels& counted_kernels_baseline() {
  static const CountedKernels kernels{scan_keys_baseline, scan_bins_baseline, nullptr, find_range_baseline,
                                      count_above_baseline};
  return kernels;
}

const CountedKernels& counted_kernels() {
#if defined(__x86_64__)
  static const CountedKernels kernels{scan_keys_avx2, scan_bins_avx2, find_promising_avx2, find_range_avx2,
                                      count_above_avx2};
  if (has_avx2()) return kernels;
#endif
  return counted_kernels_baseline();
}

}  // namespace oldgrowth
