// What the first pass learns about each feature: which values occur, as long as they are few, and whether any are
// missing. Features with few distinct values are stored as one- or two-byte codes afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace oldgrowth {

// Codes are 16 bits, and the highest one stands for a missing value.
inline constexpr std::size_t kMaxDistinct = 65535;

class FeatureProfile {
 public:
  void add(float value);
  bool has_missing() const { return has_missing_; }
  bool is_wide() const { return wide_; }
  std::size_t distinct() const { return distinct_; }
  std::size_t bytes() const { return integers_.size() * sizeof integers_[0] + hash_.size() * sizeof hash_[0]; }
  void restore(bool wide, bool missing);
  // The distinct values in ascending order; empty for a wide feature.
  std::vector<float> values() const;
  // Changes whenever something new was learned.
  std::size_t news() const { return distinct_ + (wide_ ? kMaxDistinct : 0) + (has_missing_ ? 2 * kMaxDistinct : 0); }
  // The range of whole numbers around the last one added that have all occurred: lowest, and how many above it.
  std::pair<std::int32_t, std::uint32_t> known_range() const;
  // The size of the hash table that replaces one of this size.
  static std::size_t next_hash_size(std::size_t size);

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

// Known values of all features, as arrays: most values are known, and eight are checked at a time.
struct KnownValues {
  std::vector<std::int32_t> lowest;    // known whole numbers start here
  std::vector<std::uint32_t> highest;  // and end this far above it
  std::vector<std::uint32_t> numbers;  // all bits set: any number is known
  std::vector<std::uint32_t> missing;  // all bits set: a missing value is known
  std::vector<std::size_t> news;       // news() of the feature when this was determined

  explicit KnownValues(std::size_t n_features);
  void update(std::size_t f, const FeatureProfile& feature);
};

class Profile {
 public:
  explicit Profile(std::size_t n_features) : features_(n_features), known_(n_features) {}

  // Adds the columns [first, last) of `n` rows that are `stride` values apart.
  void add(const float* rows, std::size_t n, std::size_t stride, std::size_t first, std::size_t last);
  // Restores a feature from the state of another profile.
  void restore(std::size_t f, bool wide, bool missing, std::span<const float> values);
  // Merges the profile of other rows; the order of merging does not matter.
  void merge(const Profile& other);
  std::size_t size() const { return features_.size(); }
  const FeatureProfile& feature(std::size_t f) const { return features_[f]; }
  // Bytes in use now.
  std::size_t bytes() const;
  // Maximum bytes for a feature with `distinct` different values that are not whole numbers.
  static std::size_t bytes_of_feature(std::size_t distinct);

 private:
  std::vector<FeatureProfile> features_;
  KnownValues known_;
};

}  // namespace oldgrowth
