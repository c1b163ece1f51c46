// The Gini search with whole weights, which most nodes of most forests use. With weight W in the node, T_k of it in
// class k, a split that puts weight w left, L_k of it in class k, scores
//
//   sum over k of (L_k * W - w * T_k)^2 / (w * (W - w)),
//
// which is W times the impurity decrease, and an exact quotient of whole numbers as long as they fit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace oldgrowth {

// Limits of the vector kernels: the number of classes present in a node, and 15 bits for its weight.
inline constexpr std::size_t kVectorClasses = 8;
inline constexpr std::int64_t kVectorWeight = 32767;

struct CountedNode {
  std::size_t n_classes = 0;  // those present
  std::int32_t weight = 0;    // W
  std::array<std::uint32_t, kVectorClasses> classes{};
  std::array<std::int32_t, kVectorClasses> totals{};  // T_k
  std::array<std::size_t, kVectorClasses> rows{};

  // `left` has the L_k of the classes present.
  double score(const std::int32_t* left) const;
};

// A boundary between two neighbours that scores higher than a given score, if there is one.
struct CountedBest {
  double score = 0;
  std::size_t last_left = 0;  // the index of the key or bin before it
  std::int32_t weight_left = 0;
  bool found = false;
};

struct CountedScratch {
  std::vector<std::uint32_t> sums;  // running sums, class by class, `room` apart
  std::size_t room = 0;
  std::vector<float> scores;
  std::vector<std::uint8_t> promising;  // for each bin

  // After find_promising(): rows << 16 | weight of a class before a bin.
  std::uint32_t before(std::size_t slot, std::size_t bin) const { return sums[slot * room + kZeros - 1 + bin]; }

  static constexpr std::size_t kZeros = 8;  // in front of the sums of each class
};

// Bins hold rows << 16 | weight, class by class, `stride` apart; their number is rounded up to a multiple of eight
// with empty ones.
struct CountedBins {
  const std::uint32_t* bins;
  std::size_t stride;
  std::size_t n_bins;
};

struct CodeRange {
  std::uint16_t lowest, highest;
};

// `min_leaf` is at most half of the node's rows.
struct CountedKernels {
  // The first best split of n sorted keys (code << 16 | class << 4 | weight), with at least min_leaf on each side.
  CountedBest (*scan_keys)(const std::uint32_t* keys, std::size_t n, const CountedNode& node, std::size_t min_leaf,
                           double score, CountedScratch& scratch);
  // The same for bins in order.
  CountedBest (*scan_bins)(const CountedBins& bins, const CountedNode& node, std::size_t min_leaf, double score,
                           CountedScratch& scratch);
  // Marks the bins in or beside which a split may score higher than `score` and highest of all; returns how many
  // rows they have, and leaves the sums before each bin in scratch. Null if not supported: all bins are then promising.
  std::size_t (*find_promising)(const CountedBins& bins, const CountedNode& node, std::size_t min_leaf, double score,
                                CountedScratch& scratch);
  CodeRange (*find_range)(const std::uint16_t* codes, std::size_t n);
  // Rows << 16 | weight of the codes beyond `last`. Without entries each row weighs one.
  std::uint32_t (*count_above)(const std::uint16_t* codes, const std::uint32_t* entries, std::size_t n,
                               std::uint16_t last);
};
const CountedKernels& counted_kernels();           // the best for this machine
const CountedKernels& counted_kernels_baseline();  // for any machine: the reference in tests

}  // namespace oldgrowth
