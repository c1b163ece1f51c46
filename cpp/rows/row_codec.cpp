#include "rows/row_codec.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/crc32c.hpp"
#include "rows/float_slots.hpp"

namespace oldgrowth {
namespace {

constexpr std::int64_t kIntegerSpan = 1 << 18;  // of a lookup table by integer; wider sets are hashed
constexpr std::size_t kRowsAtATime = 64;
constexpr std::uint16_t kUnknown = 0xffff;

bool small_integers(const std::vector<float>& values) {
  if (values.empty() || values.front() < -1e9F || values.back() > 1e9F) return false;
  if (static_cast<std::int64_t>(values.back()) - static_cast<std::int64_t>(values.front()) >= kIntegerSpan)
    return false;
  return std::all_of(values.begin(), values.end(),
                     [](float v) { return static_cast<float>(static_cast<std::int32_t>(v)) == v; });
}

// Assigns codes to the integers between the values too, if codes become no wider and few are added.
bool made_dense(std::vector<float>& values) {
  if (!small_integers(values)) return false;
  const auto span = static_cast<std::size_t>(values.back() - values.front()) + 1;
  const std::size_t most = values.size() <= kMissing8 ? kMissing8 : kMissing16;
  if (span > most || span > values.size() + values.size() / 8) return false;
  const auto lowest = static_cast<std::int32_t>(values.front());
  values.resize(span);
  for (std::size_t i = 0; i < span; ++i) values[i] = static_cast<float>(lowest + static_cast<std::int32_t>(i));
  return true;
}

// Looks up the codes of the first feature of rows, whole numbers: table[i] is the code of lowest + i. Returns false if
// a value is unknown, and then writes nothing that matters.
template <class Code>
bool encode_integers(const std::vector<std::uint16_t>& table, std::int32_t lowest, bool has_missing, FloatBlock rows,
                     RecordBlock records) {
  bool known = true;
  for (std::size_t i = 0; i < rows.n; ++i) {
    const float value = rows.values[i * rows.stride];
    const bool missing = value != value;
    const bool in_range = value >= -1e9F && value <= 1e9F;
    const std::int32_t whole = in_range ? static_cast<std::int32_t>(value) : 0;
    const auto at = static_cast<std::uint32_t>(whole - lowest);
    const bool found = in_range && static_cast<float>(whole) == value && at < table.size();
    const std::uint16_t code = found ? table[at] : kUnknown;  // the code of a missing value has all bits set, too
    known &= missing ? has_missing : code != kUnknown;
    const auto narrow = static_cast<Code>(code);
    std::memcpy(records.bytes + i * records.stride, &narrow, sizeof narrow);
  }
  return known;
}

// A hash of a record and its target. Words are distributed over four lanes, because multiplications within one
// lane depend on each other.
std::uint64_t key_of(const std::uint8_t* record, std::size_t bytes, std::uint64_t target_bits) {
  std::uint64_t lane[4] = {target_bits, 1, 2, 3};
  const auto take = [&](std::size_t at, std::size_t lane_number, std::size_t length) {
    std::uint64_t word = 0;
    std::memcpy(&word, record + at, length);
    std::uint64_t& key = lane[lane_number];
    key = (key ^ word) * kGolden;
    key ^= key >> 32;
  };
  std::size_t at = 0, word = 0;
  for (; at + 32 <= bytes; at += 32)
    for (std::size_t j = 0; j < 4; ++j) take(at + 8 * j, j, 8);
  for (; at < bytes; at += 8, ++word) take(at, word, std::min<std::size_t>(8, bytes - at));
  return mix(mix(mix(mix(lane[0]) ^ lane[1]) ^ lane[2]) ^ lane[3]);
}

}  // namespace

RowCodec::RowCodec(const Profile& profile) : features_(profile.size()), lookups_(profile.size()) {
  std::vector<char> direct(features_.size(), 0);
  for (std::size_t f = 0; f < features_.size(); ++f) {
    FeatureCodec& codec = features_[f];
    codec.has_missing = profile.feature(f).has_missing();
    if (profile.feature(f).is_wide()) continue;
    codec.values = profile.feature(f).values();
    direct[f] = made_dense(codec.values);
    codec.width = width_of(profile.feature(f));
    if (!direct[f]) lookups_[f] = Lookup(codec.values);
  }
  for (const Width width : {Width::four, Width::two, Width::one})  // so that wide fields stay aligned
    for (FeatureCodec& codec : features_)
      if (codec.width == width) {
        codec.offset = used_bytes_;
        used_bytes_ += static_cast<std::size_t>(width);
      }
  record_bytes_ = (used_bytes_ + 3) / 4 * 4;
  for (std::size_t f = 0; f < features_.size(); ++f) {
    const bool joins = f > 0 && direct[f - 1] && features_[f - 1].width == features_[f].width;
    direct[f] ? add_direct(f, joins) : looked_up_.push_back(f);
  }
}

Profile RowCodec::profile() const {
  Profile profile(features_.size());
  for (std::size_t f = 0; f < features_.size(); ++f)
    profile.restore(f, features_[f].width == Width::four, features_[f].has_missing, features_[f].values);
  return profile;
}

std::size_t RowCodec::Lookup::slots_for(std::size_t values) { return std::bit_ceil(values + values / 3 + 2); }

std::size_t RowCodec::bytes_of_feature(std::size_t distinct) {
  return distinct * sizeof(float) + Lookup::slots_for(distinct) * (sizeof(std::uint32_t) + sizeof(std::uint16_t)) +
         sizeof(FeatureCodec) + sizeof(Lookup);
}

std::size_t RowCodec::bytes_for(const Profile& profile) {
  std::size_t bytes = 0;
  for (std::size_t f = 0; f < profile.size(); ++f)
    if (!profile.feature(f).is_wide()) bytes += bytes_of_feature(profile.feature(f).distinct());
  return bytes;
}

Width RowCodec::width_of(const FeatureProfile& feature) {
  return feature.is_wide() ? Width::four : feature.distinct() <= kMissing8 ? Width::one : Width::two;
}

std::size_t RowCodec::bytes() const {
  std::size_t bytes = features_.size() * (sizeof(FeatureCodec) + sizeof(Lookup));
  for (const FeatureCodec& codec : features_) bytes += codec.values.capacity() * sizeof(float);
  for (const Lookup& lookup : lookups_)
    bytes += lookup.bits.size() * sizeof lookup.bits[0] +
             (lookup.codes.size() + lookup.by_integer.size()) * sizeof lookup.codes[0];
  return bytes;
}

RowCodec::Lookup::Lookup(const std::vector<float>& values) {
  if (small_integers(values)) {
    lowest = static_cast<std::int32_t>(values.front());
    by_integer.assign(static_cast<std::size_t>(values.back() - values.front()) + 1, kUnknown);
    for (std::size_t c = 0; c < values.size(); ++c)
      by_integer[static_cast<std::size_t>(static_cast<std::int32_t>(values[c]) - lowest)] =
          static_cast<std::uint16_t>(c);
    return;
  }
  const std::size_t size = slots_for(values.size());
  bits.assign(size, kFreeSlot);
  codes.resize(size);
  for (std::size_t c = 0; c < values.size(); ++c) {
    const auto value = std::bit_cast<std::uint32_t>(values[c]);
    std::size_t slot = slot_of(value, size);
    while (bits[slot] != kFreeSlot) slot = (slot + 1) & (size - 1);
    bits[slot] = value;
    codes[slot] = static_cast<std::uint16_t>(c);
  }
}

void RowCodec::add_direct(std::size_t f, bool joins) {
  const FeatureCodec& codec = features_[f];
  if (!joins) runs_.push_back({f, codec.offset, codec.width == Width::one, {}, {}, {}});
  runs_.back().lowest.push_back(static_cast<std::int32_t>(codec.values.front()));
  runs_.back().highest.push_back(static_cast<std::uint32_t>(codec.values.size() - 1));
  runs_.back().missing.push_back(codec.has_missing ? ~0U : 0U);
}

bool RowCodec::encode(FloatBlock rows, const std::uint64_t* target_bits, RecordBlock records,
                      std::uint64_t* keys) const {
  for (std::size_t start = 0; start < rows.n; start += kRowsAtATime) {
    const FloatBlock some{rows.values + start * rows.stride, std::min(kRowsAtATime, rows.n - start), rows.stride};
    const RecordBlock out{records.bytes + start * records.stride, records.stride};
    for (std::size_t i = 0; i < some.n; ++i)
      std::memset(out.bytes + i * out.stride + used_bytes_, 0, record_bytes_ - used_bytes_);
    for (const DirectRun& run : runs_)
      if (!encode_direct(run, some, out)) return false;
    for (const std::size_t f : looked_up_)
      if (!encode_feature(f, some, out)) return false;
    for (std::size_t i = 0; i < some.n; ++i)
      keys[start + i] = key_of(out.bytes + i * out.stride, record_bytes_, target_bits[start + i]);
  }
  return true;
}

void RowCodec::decode(const std::uint8_t* record, float* values) const {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (std::size_t f = 0; f < features_.size(); ++f) {
    const FeatureCodec& codec = features_[f];
    const std::uint8_t* from = record + codec.offset;
    if (codec.width == Width::one) {
      values[f] = *from < codec.values.size() ? codec.values[*from] : kNan;
    } else if (codec.width == Width::two) {
      std::uint16_t code;
      std::memcpy(&code, from, sizeof code);
      values[f] = code < codec.values.size() ? codec.values[code] : kNan;
    } else {
      std::uint32_t bits;
      std::memcpy(&bits, from, sizeof bits);
      values[f] = bits == kMissing32 ? kNan : from_ordered_bits(bits);
    }
  }
}

bool RowCodec::knows(const std::uint8_t* records, std::size_t n) const {
  for (std::size_t i = 0; i < n; ++i, records += record_bytes_)
    for (const FeatureCodec& codec : features_) {
      const std::uint8_t* from = records + codec.offset;
      if (codec.width == Width::one) {
        if (*from >= codec.values.size() && !(*from == kMissing8 && codec.has_missing)) return false;
      } else if (codec.width == Width::two) {
        std::uint16_t code;
        std::memcpy(&code, from, sizeof code);
        if (code >= codec.values.size() && !(code == kMissing16 && codec.has_missing)) return false;
      } else {
        std::uint32_t bits;
        std::memcpy(&bits, from, sizeof bits);
        if (bits == kMissing32 ? !codec.has_missing : !std::isfinite(from_ordered_bits(bits))) return false;
      }
    }
  return true;
}

bool RowCodec::has_keys(const std::uint8_t* records, std::size_t n, const std::uint64_t* target_bits,
                        const std::uint64_t* keys) const {
  for (std::size_t i = 0; i < n; ++i)
    if (keys[i] != key_of(records + i * record_bytes_, record_bytes_, target_bits[i])) return false;
  return true;
}

std::uint32_t RowCodec::checksum() const {
  std::uint32_t crc = 0;
  for (const FeatureCodec& codec : features_) {
    const std::uint8_t head[2] = {static_cast<std::uint8_t>(codec.width), codec.has_missing};
    crc = crc32c(head, sizeof head, crc);
    crc = crc32c(codec.values.data(), codec.values.size() * sizeof(float), crc);
  }
  return crc;
}

bool RowCodec::encode_feature(std::size_t f, FloatBlock rows, RecordBlock records) const {
  const FeatureCodec& codec = features_[f];
  const Lookup& lookup = lookups_[f];
  rows.values += f;
  records.bytes += codec.offset;
  if (!lookup.by_integer.empty()) {
    const auto encode = codec.width == Width::one ? encode_integers<std::uint8_t> : encode_integers<std::uint16_t>;
    return encode(lookup.by_integer, lookup.lowest, codec.has_missing, rows, records);
  }
  const auto code_of = [&](float value) -> std::uint32_t {
    if (value != value) return codec.has_missing ? kMissing16 : kMissing32;
    if (lookup.bits.empty()) return kMissing32;
    const auto bits = std::bit_cast<std::uint32_t>(value + 0.0F);
    std::size_t slot = slot_of(bits, lookup.bits.size());
    while (lookup.bits[slot] != bits) {
      if (lookup.bits[slot] == kFreeSlot) return kMissing32;
      slot = (slot + 1) & (lookup.bits.size() - 1);
    }
    return lookup.codes[slot];
  };
  for (std::size_t i = 0; i < rows.n; ++i) {
    const float value = rows.values[i * rows.stride];
    std::uint8_t* const out = records.bytes + i * records.stride;
    if (codec.width == Width::four) {
      const std::uint32_t bits = ordered_bits(value);
      if (bits == kMissing32 && !codec.has_missing) return false;
      std::memcpy(out, &bits, 4);
      continue;
    }
    const std::uint32_t code = code_of(value);
    if (code == kMissing32) return false;
    if (codec.width == Width::one) {
      *out = static_cast<std::uint8_t>(code);  // the missing code keeps all its bits set
    } else {
      const auto code16 = static_cast<std::uint16_t>(code);
      std::memcpy(out, &code16, 2);
    }
  }
  return true;
}

}  // namespace oldgrowth
