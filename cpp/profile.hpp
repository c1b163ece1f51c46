// What the first pass learns of each feature: which values occur (as long as they are few) and whether
// any are missing. Features with few distinct values are stored as one- or two-byte codes afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace oldgrowth {

// Codes are 16 bits, and the highest one stands for a missing value.
inline constexpr std::size_t kMaxDistinct = 65535;

class FeatureProfile {
 public:
  void add(float value);
  bool has_missing() const { return has_missing_; }
  bool is_wide() const { return wide_; }
  void restore(bool wide, bool missing);
  // The distinct values in ascending order; empty for a wide feature.
  std::vector<float> values() const;

 private:
  void add_to_hash(std::uint32_t bits);
  void grow_hash();
  void became_wide();

  std::vector<std::uint64_t> integers_;  // a bit for each integer from kLowest on
  std::vector<std::uint32_t> hash_;      // open addressing, for all other values
  std::size_t distinct_ = 0;
  std::size_t hashed_ = 0;
  float last_ = 0;
  bool any_ = false;
  bool has_missing_ = false;
  bool wide_ = false;
};

class Profile {
 public:
  explicit Profile(std::size_t n_features) : features_(n_features) {}

  // Adds the columns [first, last) of `n` rows that are `stride` values apart.
  void add(const float* rows, std::size_t n, std::size_t stride, std::size_t first, std::size_t last);
  // Takes up a feature where another profile left it.
  void restore(std::size_t f, bool wide, bool missing, std::span<const float> values);
  std::size_t size() const { return features_.size(); }
  const FeatureProfile& feature(std::size_t f) const { return features_[f]; }

 private:
  std::vector<FeatureProfile> features_;
};

}  // namespace oldgrowth
