// Random rows for the tests: many duplicates, few values, continuous values, missing ones.
#pragma once

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "grow/bucket.hpp"

namespace oldgrowth::test {

struct TestRows {
  std::size_t n, d;
  std::vector<float> x;
  std::vector<double> targets;
  std::vector<std::uint64_t> target_bits;
  RowCodec codec;
  std::vector<std::uint8_t> records;
  std::vector<std::uint64_t> keys;

  TestRows(std::size_t n, std::size_t d, std::vector<float> values, std::vector<double> y)
      : n(n), d(d), x(std::move(values)), targets(std::move(y)), codec(profile_of(x, n, d)) {
    records.resize(n * codec.record_bytes());
    keys.resize(n);
    for (const double t : targets) target_bits.push_back(std::bit_cast<std::uint64_t>(t));
    encoded = codec.encode({x.data(), n, d}, target_bits.data(), {records.data(), codec.record_bytes()}, keys.data());
  }

  Bucket bucket(bool classification) const {
    return make_bucket(codec, {records.data(), keys.data(), targets.data(), nullptr}, {}, n, classification);
  }

  bool encoded = false;

 private:
  static Profile profile_of(const std::vector<float>& x, std::size_t n, std::size_t d) {
    Profile profile(d);
    profile.add(x.data(), n, d, 0, d);
    return profile;
  }
};

// Feature f is continuous (0), small integers (1), fractions of few values (2), or as 0 with missing (3).
inline TestRows random_rows(std::size_t n, std::size_t d, std::uint32_t n_classes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(n * d);
  std::vector<double> y(n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t f = 0; f < d; ++f) {
      const float value = normal(random);
      float& at = x[i * d + f];
      if (f % 4 == 0) at = value;
      if (f % 4 == 1) at = std::round(value * 3);
      if (f % 4 == 2) at = std::round(value * 4) / 7;
      if (f % 4 == 3) at = random() % 5 == 0 ? std::numeric_limits<float>::quiet_NaN() : value;
    }
    y[i] = n_classes > 0 ? static_cast<double>(random() % n_classes) : static_cast<double>(normal(random));
  }
  return {n, d, std::move(x), std::move(y)};
}

}  // namespace oldgrowth::test
