// Sums of the votes of class leaves for the rows of a batch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "predict/forest.hpp"

namespace oldgrowth {

// Nearly all leaves are pure: each is one vote. Votes are counted in bytes, eight classes to a word, so that the
// counts of a batch stay in the cache; shares of mixed leaves go to the sums at once.
class ClassSums {
 public:
  // `sums` has a place for each row and class, all zero.
  ClassSums(const Forest& forest, bool hard, std::size_t n, double* sums)
      : forest_(forest), hard_(hard), k_(forest.n_classes), words_((k_ + 7) / 8), sums_(sums), votes_(n * words_) {}

  // Votes of a row that can be counted before `finish`.
  static constexpr std::size_t kMost = 255;

  // The leaves of a row in some bottom trees: leaf(j) of the j-th.
  template <class Leaf>
  void add(std::size_t row, std::size_t bottom, std::size_t trees, const Leaf& leaf) {
    std::uint64_t* votes = votes_.data() + row * words_;
    std::uint64_t packed = 0;
    for (std::size_t j = 0; j < trees; ++j) {
      const Node node = leaf(j);
      const std::uint64_t c = is_pure(node) ? payload(node) : mixed(row, bottom + j, node);
      if (words_ == 1)
        packed += vote(c);
      else if (c < k_)
        votes[c / 8] += vote(c % 8);
      else if (c != kNoVote)
        throw DamagedTree(bottom + j);  // it changed after it was checked
    }
    if (words_ == 1) *votes += packed;
  }

  void fetch(std::size_t row) const { __builtin_prefetch(votes_.data() + row * words_, 1); }

  // Adds the votes to the sums: those of a row, or of all.
  void finish(std::size_t row) {
    for (std::size_t c = 0; c < k_; ++c)
      sums_[row * k_ + c] += static_cast<double>(votes_[row * words_ + c / 8] >> (8 * (c % 8)) & 255);
    std::fill_n(votes_.begin() + static_cast<std::ptrdiff_t>(row * words_), words_, 0);
  }
  void finish() {
    for (std::size_t row = 0; row < votes_.size() / words_; ++row) finish(row);
  }

 private:
  static constexpr std::uint64_t kNoVote = ~std::uint64_t{0};

  static bool is_pure(Node leaf) { return (leaf & kMixedBit) == 0; }
  static std::uint64_t vote(std::uint64_t c) { return c == kNoVote ? 0 : std::uint64_t{1} << (8 * c & 63); }

  // Adds the shares of a mixed leaf; or the class that it votes for.
  std::uint64_t mixed(std::size_t row, std::size_t bottom, Node leaf) {
    const std::uint64_t at = forest_.table_start[bottom] + (payload(leaf) & ~kMixedBit);
    if (at >= forest_.table_start[bottom + 1]) throw DamagedTree(bottom);  // it changed after it was checked
    const float* shares = forest_.table.data() + at * k_;
    if (hard_) return static_cast<std::uint64_t>(std::max_element(shares, shares + k_) - shares);
    for (std::size_t c = 0; c < k_; ++c) sums_[row * k_ + c] += static_cast<double>(shares[c]);
    return kNoVote;
  }

  const Forest& forest_;
  bool hard_;
  std::size_t k_, words_;
  double* sums_;
  std::vector<std::uint64_t> votes_;
};

}  // namespace oldgrowth
