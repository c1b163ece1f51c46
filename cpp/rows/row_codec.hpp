// A row as a short record of bytes, lossless for float32: each feature in one byte (up to 255 distinct
// values), two bytes (up to 65,535) or four (the float itself, as bits that sort like the value).
// Buckets consist of records, in memory and on disk. Codes have the order of their values.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rows/direct_codes.hpp"
#include "rows/profile.hpp"

namespace oldgrowth {

enum class Width : std::uint8_t { one = 1, two = 2, four = 4 };

inline constexpr std::uint8_t kMissing8 = 0xff;
inline constexpr std::uint16_t kMissing16 = 0xffff;
inline constexpr std::uint32_t kMissing32 = 0xffffffff;

// The order of these integers is the order of the floats; -0 and 0 are one value; NaN comes last.
constexpr std::uint32_t ordered_bits(float value) {
  if (value != value) return kMissing32;
  const auto bits = std::bit_cast<std::uint32_t>(value + 0.0F);
  return bits & 0x80000000U ? ~bits : bits | 0x80000000U;
}
constexpr float from_ordered_bits(std::uint32_t bits) {
  return std::bit_cast<float>(bits & 0x80000000U ? bits & 0x7fffffffU : ~bits);
}

struct FeatureCodec {
  Width width = Width::four;
  bool has_missing = false;
  std::size_t offset = 0;     // of this feature's bytes in the record
  std::vector<float> values;  // ascending; a code is an index into it; empty for four bytes
};

class RowCodec {
 public:
  explicit RowCodec(const Profile& profile);

  // A profile that results in this codec.
  Profile profile() const;

  std::size_t n_features() const { return features_.size(); }
  std::size_t record_bytes() const { return record_bytes_; }
  // Bytes of the codec itself: values, and tables to find them.
  std::size_t bytes() const;
  // Maximum bytes for a feature with this many different values, and for all features of a profile.
  static std::size_t bytes_of_feature(std::size_t distinct);
  static std::size_t bytes_for(const Profile& profile);
  // The width of a feature with the values seen so far.
  static Width width_of(const FeatureProfile& feature);
  const FeatureCodec& feature(std::size_t f) const { return features_[f]; }

  // Writes the records of rows, and a key for each row that is a hash of its record and its target's bits.
  // Returns false if a value is not in the profile: the data changed between two passes.
  bool encode(FloatBlock rows, const std::uint64_t* target_bits, RecordBlock records, std::uint64_t* keys) const;

  // Decodes the original values of a record.
  void decode(const std::uint8_t* record, float* values) const;

  // Whether `encode` could have written these records: none has a code without a value.
  bool knows(const std::uint8_t* records, std::size_t n) const;

  // Whether these are the keys that `encode` wrote with these records.
  bool has_keys(const std::uint8_t* records, std::size_t n, const std::uint64_t* target_bits,
                const std::uint64_t* keys) const;

  // A checksum of all values and widths.
  std::uint32_t checksum() const;

 private:
  bool encode_feature(std::size_t f, FloatBlock rows, RecordBlock records) const;

  void add_direct(std::size_t f, bool joins);

  struct Lookup {
    Lookup() = default;
    explicit Lookup(const std::vector<float>& values);
    static std::size_t slots_for(std::size_t values);

    std::vector<std::uint16_t> by_integer;  // code of lowest + i
    std::int32_t lowest = 0;
    std::vector<std::uint32_t> bits;  // open addressing, for other values
    std::vector<std::uint16_t> codes;
  };

  std::vector<FeatureCodec> features_;
  std::vector<DirectRun> runs_;
  std::vector<std::size_t> looked_up_;  // the features outside of runs
  std::vector<Lookup> lookups_;
  std::size_t used_bytes_ = 0, record_bytes_ = 0;
};

}  // namespace oldgrowth
