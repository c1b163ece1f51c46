// Randomness as a function: every decision is draw(key, counter), where the key is derived from
// (seed, purpose, tree, row or node). Nothing here has state, so results depend neither on the order
// of the work nor on the number of threads.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

namespace oldgrowth {

enum class Purpose : std::uint64_t { top_sample = 1, bootstrap = 2, top_tree = 3, bottom_tree = 4 };

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection with full avalanche.
constexpr std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

// 2^64 / golden ratio: steps of this size visit the 64-bit ring evenly.
inline constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ULL;

constexpr std::uint64_t derive(std::uint64_t key, std::uint64_t tag) {
  return mix(mix(key + kGolden) ^ (tag * kGolden));
}

constexpr std::uint64_t forest_key(std::uint64_t seed, Purpose purpose) {
  return derive(seed, static_cast<std::uint64_t>(purpose));
}

constexpr std::uint64_t tree_key(std::uint64_t seed, Purpose purpose, std::uint64_t tree) {
  return derive(forest_key(seed, purpose), tree);
}

constexpr std::uint64_t draw(std::uint64_t key, std::uint64_t counter) { return mix(key + (counter + 1) * kGolden); }

// Maps 32 random bits to [0, n) by multiplication; the bias is below n / 2^32.
constexpr std::uint32_t below(std::uint32_t bits, std::uint32_t n) {
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(bits) * n) >> 32);
}

// A double in [0, 1) from the upper 53 bits.
constexpr double unit(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1.0p-53; }

// Poisson counts by inversion of one 64-bit draw, cut at kMax: for a mean of 1 a larger count has
// probability 1e-14.
class Poisson {
 public:
  static constexpr std::uint32_t kMax = 15;

  explicit Poisson(double mean) {
    double p = std::exp(-mean);
    double cumulative = 0;
    for (std::uint32_t k = 0; k < kMax; ++k) {
      cumulative += p;
      p *= mean / (k + 1);
      const double scaled = cumulative * 0x1.0p64;
      limit_[k] = scaled >= 0x1.0p64 ? ~0ULL : static_cast<std::uint64_t>(scaled);
    }
  }

  std::uint32_t operator()(std::uint64_t bits) const {
    std::uint32_t count = (bits >= limit_[0]) + (bits >= limit_[1]) + (bits >= limit_[2]);
    if (count == 3)
      while (count < kMax && bits >= limit_[count]) ++count;
    return count;
  }

 private:
  std::array<std::uint64_t, kMax> limit_;
};

}  // namespace oldgrowth
