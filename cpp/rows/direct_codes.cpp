#include "rows/direct_codes.hpp"

#include <cstring>

#include "base/cpu.hpp"

namespace oldgrowth {
namespace {

template <class Code>
bool encode_one(const DirectRun& run, std::size_t j, float value, std::uint8_t* codes) {
  const bool missing = value != value;
  const bool in_range = value >= -1e9F && value <= 1e9F;
  const std::int32_t whole = in_range ? static_cast<std::int32_t>(value) : 0;
  const auto code = static_cast<std::uint32_t>(whole) - static_cast<std::uint32_t>(run.lowest[j]);
  const bool known = in_range && static_cast<float>(whole) == value && code <= run.highest[j];
  const auto narrow = static_cast<Code>(missing ? ~0U : code);
  std::memcpy(codes + j * sizeof(Code), &narrow, sizeof narrow);
  return missing ? run.missing[j] != 0 : known;
}

template <class Code>
bool encode_baseline(const DirectRun& run, const float* values, std::uint8_t* codes) {
  bool known = true;
  for (std::size_t j = 0; j < run.size(); ++j) known &= encode_one<Code>(run, j, values[j], codes);
  return known;
}

#if defined(__x86_64__)
constexpr std::size_t kLanes = 8;

template <class T>
OLDGROWTH_AVX2 inline __m256i load(const std::vector<T>& from, std::size_t j) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from.data() + j));
}

// The codes of the run's features j to j + 7; updates `known` by which of them are in range.
template <class Code>
OLDGROWTH_AVX2 inline void encode_eight(const DirectRun& run, std::size_t j, const float* values, std::uint8_t* codes,
                                        __m256i& known) {
  const __m256 value = _mm256_loadu_ps(values + j);
  const __m256i whole = _mm256_cvttps_epi32(value);
  const __m256i equal = _mm256_castps_si256(_mm256_cmp_ps(_mm256_cvtepi32_ps(whole), value, _CMP_EQ_OQ));
  const __m256i missing =
      _mm256_and_si256(_mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q)), load(run.missing, j));
  __m256i code = _mm256_sub_epi32(whole, load(run.lowest, j));
  const __m256i within = _mm256_cmpeq_epi32(_mm256_min_epu32(code, load(run.highest, j)), code);
  known = _mm256_and_si256(known, _mm256_or_si256(_mm256_and_si256(equal, within), missing));
  code = _mm256_and_si256(_mm256_or_si256(code, missing), _mm256_set1_epi32(sizeof(Code) == 1 ? 0xff : 0xffff));
  __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(code), _mm256_extracti128_si256(code, 1));
  if constexpr (sizeof(Code) == 1) packed = _mm_packus_epi16(packed, packed);
  std::memcpy(codes + j * sizeof(Code), &packed, kLanes * sizeof(Code));
}

template <class Code>
OLDGROWTH_AVX2 bool encode_avx2(const DirectRun& run, const float* values, std::uint8_t* codes) {
  const std::size_t n = run.size();
  __m256i known = _mm256_set1_epi32(-1);
  for (std::size_t j = 0; j + kLanes <= n; j += kLanes) encode_eight<Code>(run, j, values, codes, known);
  if (n % kLanes != 0) encode_eight<Code>(run, n - kLanes, values, codes, known);
  return _mm256_movemask_epi8(known) == -1;
}
#endif

template <class Code>
auto choose(std::size_t size) {
#if defined(__x86_64__)
  if (has_avx2() && size >= kLanes) return encode_avx2<Code>;
#endif
  return encode_baseline<Code>;
}

}  // namespace

bool encode_direct(const DirectRun& run, FloatBlock rows, RecordBlock records) {
  const auto encode = run.one_byte ? choose<std::uint8_t>(run.size()) : choose<std::uint16_t>(run.size());
  bool known = true;
  for (std::size_t i = 0; i < rows.n; ++i)
    known &= encode(run, rows.values + i * rows.stride + run.first, records.bytes + i * records.stride + run.offset);
  return known;
}

}  // namespace oldgrowth
