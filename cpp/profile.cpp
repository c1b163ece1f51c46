#include "profile.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "float_slots.hpp"

namespace oldgrowth {
namespace {

// Integers in this range are found by a bit, without hashing: imagery, counts, categories.
constexpr std::int32_t kLowest = -32768;
constexpr std::int32_t kHighest = 98303;
constexpr std::size_t kRowsAtATime = 64;  // a block of rows stays in the cache over all its columns

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

void FeatureProfile::grow_hash() {
  std::vector<std::uint32_t> old(std::max<std::size_t>(64, hash_.size() * 4), kFreeSlot);
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

std::vector<float> FeatureProfile::values() const {
  std::vector<float> values;
  for (std::size_t w = 0; w < integers_.size(); ++w)
    for (std::uint64_t word = integers_[w]; word != 0; word &= word - 1)
      values.push_back(static_cast<float>(static_cast<std::int32_t>(w * 64 + std::countr_zero(word)) + kLowest));
  for (const std::uint32_t bits : hash_)
    if (bits != kFreeSlot) values.push_back(std::bit_cast<float>(bits));
  std::sort(values.begin(), values.end());
  return values;
}

void Profile::add(const float* rows, std::size_t n, std::size_t stride, std::size_t first, std::size_t last) {
  for (std::size_t start = 0; start < n; start += kRowsAtATime) {
    const std::size_t end = std::min(n, start + kRowsAtATime);
    for (std::size_t f = first; f < last; ++f) {
      FeatureProfile& feature = features_[f];
      for (std::size_t i = start; i < end; ++i) feature.add(rows[i * stride + f]);
    }
  }
}

}  // namespace oldgrowth
