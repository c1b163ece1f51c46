#include "rows/profile.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <tuple>

#include "base/cpu.hpp"
#include "rows/float_slots.hpp"

namespace oldgrowth {
namespace {

// Integers in this range are found by a bit, without hashing: imagery, counts, categories.
constexpr std::int32_t kLowest = -32768;
constexpr std::int32_t kHighest = 98303;
constexpr std::size_t kRowsAtATime = 64;  // a block of rows stays in the cache over all its columns
constexpr std::size_t kEight = 8;         // values that are checked together
constexpr std::int32_t kNoInteger = std::numeric_limits<std::int32_t>::max();  // no float has this value

#if defined(__x86_64__)
OLDGROWTH_AVX2 inline __m256i load(const auto& from, std::size_t f) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from.data() + f));
}

// Whether eight values, of the features from f on, are all known already.
OLDGROWTH_AVX2 bool all_known(const KnownValues& known, std::size_t f, const float* values) {
  const __m256 value = _mm256_loadu_ps(values);
  const __m256i whole = _mm256_cvttps_epi32(value);
  const __m256i equal = _mm256_castps_si256(_mm256_cmp_ps(_mm256_cvtepi32_ps(whole), value, _CMP_EQ_OQ));
  const __m256i above = _mm256_sub_epi32(whole, load(known.lowest, f));
  const __m256i within = _mm256_cmpeq_epi32(_mm256_min_epu32(above, load(known.highest, f)), above);
  const __m256i number = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_ORD_Q));
  const __m256i old =
      _mm256_or_si256(_mm256_and_si256(equal, within), _mm256_and_si256(number, load(known.numbers, f)));
  return _mm256_movemask_epi8(_mm256_or_si256(old, _mm256_andnot_si256(number, load(known.missing, f)))) == -1;
}
#else
bool all_known(const KnownValues&, std::size_t, const float*) { return false; }
#endif

}  // namespace

void FeatureProfile::add(float value) {
  if (value != value) {
    has_missing_ = true;
    return;
  }
  if (wide_ || (any_ && value == last_)) return;
  any_ = true;
  last_ = value;
  if (value >= kLowest && value <= kHighest) {
    const auto whole = static_cast<std::int32_t>(value);
    if (static_cast<float>(whole) == value) {
      if (integers_.empty()) integers_.resize((kHighest - kLowest + 1) / 64);
      const auto at = static_cast<std::uint32_t>(whole - kLowest);
      std::uint64_t& word = integers_[at / 64];
      const std::uint64_t bit = 1ULL << (at % 64);
      if ((word & bit) == 0) {
        word |= bit;
        if (++distinct_ > kMaxDistinct) became_wide();
      }
      return;
    }
  }
  add_to_hash(std::bit_cast<std::uint32_t>(value));
}

void FeatureProfile::add_to_hash(std::uint32_t bits) {
  if (hashed_ * 2 >= hash_.size()) grow_hash();
  std::size_t slot = slot_of(bits, hash_.size());
  while (hash_[slot] != kFreeSlot) {
    if (hash_[slot] == bits) return;
    slot = (slot + 1) & (hash_.size() - 1);
  }
  hash_[slot] = bits;
  ++hashed_;
  if (++distinct_ > kMaxDistinct) became_wide();
}

// Many tables grow at once: all features with float values fill up at the same time.
std::size_t FeatureProfile::next_hash_size(std::size_t size) {
  return std::max<std::size_t>(64, size * (size < 16384 ? 4 : 2));
}

std::size_t Profile::bytes() const {
  std::size_t bytes = 0;
  for (const FeatureProfile& feature : features_) bytes += feature.bytes();
  return bytes;
}

std::size_t Profile::bytes_of_feature(std::size_t distinct) {
  std::size_t slots = 0;
  while (slots < 2 * std::min(distinct, kMaxDistinct)) slots = FeatureProfile::next_hash_size(slots);
  return slots * sizeof(std::uint32_t) + sizeof(FeatureProfile) + 5 * sizeof(std::size_t);
}

void FeatureProfile::grow_hash() {
  std::vector<std::uint32_t> old(next_hash_size(hash_.size()), kFreeSlot);
  old.swap(hash_);
  for (const std::uint32_t bits : old) {
    if (bits == kFreeSlot) continue;
    std::size_t slot = slot_of(bits, hash_.size());
    while (hash_[slot] != kFreeSlot) slot = (slot + 1) & (hash_.size() - 1);
    hash_[slot] = bits;
  }
}

void FeatureProfile::became_wide() {
  wide_ = true;
  integers_ = {};
  hash_ = {};
}

void FeatureProfile::restore(bool wide, bool missing) {
  has_missing_ = missing;
  if (wide) became_wide();
}

void Profile::restore(std::size_t f, bool wide, bool missing, std::span<const float> values) {
  for (const float value : values) features_[f].add(value);
  features_[f].restore(wide, missing);
}

void Profile::merge(const Profile& other) {
  for (std::size_t f = 0; f < size(); ++f) {
    const FeatureProfile& theirs = other.feature(f);
    restore(f, features_[f].is_wide() || theirs.is_wide(), features_[f].has_missing() || theirs.has_missing(),
            theirs.values());
  }
}

std::vector<float> FeatureProfile::values() const {
  std::vector<float> values;
  values.reserve(wide_ ? 0 : distinct_);
  for (std::size_t w = 0; w < integers_.size(); ++w)
    for (std::uint64_t word = integers_[w]; word != 0; word &= word - 1)
      values.push_back(static_cast<float>(static_cast<std::int32_t>(w * 64 + std::countr_zero(word)) + kLowest));
  for (const std::uint32_t bits : hash_)
    if (bits != kFreeSlot) values.push_back(std::bit_cast<float>(bits));
  std::sort(values.begin(), values.end());
  return values;
}

std::pair<std::int32_t, std::uint32_t> FeatureProfile::known_range() const {
  const auto has = [&](std::int32_t whole) {
    if (integers_.empty() || whole < kLowest || whole > kHighest) return false;
    const auto at = static_cast<std::uint32_t>(whole - kLowest);
    return (integers_[at / 64] >> (at % 64) & 1) != 0;
  };
  const std::int32_t middle = last_ >= kLowest && last_ <= kHighest ? static_cast<std::int32_t>(last_) : kLowest - 1;
  if (!has(middle)) return {kNoInteger, 0};
  std::int32_t lowest = middle, highest = middle;
  while (has(lowest - 1)) --lowest;
  while (has(highest + 1)) ++highest;
  return {lowest, static_cast<std::uint32_t>(highest - lowest)};
}

KnownValues::KnownValues(std::size_t n_features)
    : lowest(n_features, kNoInteger), highest(n_features), numbers(n_features), missing(n_features), news(n_features) {}

void KnownValues::update(std::size_t f, const FeatureProfile& feature) {
  if (feature.news() == news[f]) return;
  news[f] = feature.news();
  std::tie(lowest[f], highest[f]) = feature.known_range();
  numbers[f] = feature.is_wide() ? ~0U : 0U;
  missing[f] = feature.has_missing() ? ~0U : 0U;
}

void Profile::add(const float* rows, std::size_t n, std::size_t stride, std::size_t first, std::size_t last) {
  for (std::size_t f = first; f < last; ++f) known_.update(f, features_[f]);
  const bool skips = has_avx2();
  for (std::size_t start = 0; start < n; start += kRowsAtATime) {
    const std::size_t end = std::min(n, start + kRowsAtATime);
    for (std::size_t f = first; f < last; f += kEight) {
      const std::size_t width = std::min(kEight, last - f);
      for (std::size_t i = start; i < end; ++i) {
        const float* values = rows + i * stride + f;
        if (skips && width == kEight && all_known(known_, f, values)) continue;
        for (std::size_t j = 0; j < width; ++j) features_[f + j].add(values[j]);
      }
    }
  }
}

}  // namespace oldgrowth
