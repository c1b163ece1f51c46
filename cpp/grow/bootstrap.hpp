// The bootstrap of a tree: how many times each row of a bucket counts.
//
// A row's count depends on its content (values and target) and on how many copies of it came before, not on its place
// in the data. Equal rows always share a bucket, so the copies are counted there (copies.hpp); a row of weight 3 counts
// as three copies and gets exactly what three equal rows would get.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/rng.hpp"
#include "grow/bucket.hpp"
#include "grow/copies.hpp"

namespace oldgrowth {

struct Bootstrap {
  bool draw = true;
  double mean = 1;  // expected count of a row
  std::uint64_t seed = 0;
};

// How often a tree's bootstrap draws a row, for rows with `keys`, `copies` and perhaps `weights`.
class RowDraw {
 public:
  RowDraw(const Bootstrap& bootstrap, std::uint64_t tree)
      : draw_(bootstrap.draw), poisson_(bootstrap.mean), key_(tree_key(bootstrap.seed, Purpose::bootstrap, tree)) {}

  // The row's weight in the tree: zero if it is not drawn.
  template <class Rows>
  double weight(const Rows& rows, std::size_t i) const {
    return draw_ ? drawn_weight(key_ ^ rows.keys[i], rows.copies[i], own_weight(rows, i)) : own_weight(rows, i);
  }
  // The row with the lowest number is taken if none is drawn.
  template <class Rows>
  std::uint64_t number(const Rows& rows, std::size_t i) const {
    return draw(key_ ^ rows.keys[i], draw_ ? rows.copies[i] : 0);
  }
  template <class Rows>
  static double own_weight(const Rows& rows, std::size_t i) {
    if constexpr (requires { rows.weights.empty(); })
      return rows.weights.empty() ? 1.0 : rows.weights[i];
    else
      return rows.weights == nullptr ? 1.0 : rows.weights[i];
  }

 private:
  double drawn_weight(std::uint64_t key, std::uint64_t copy, double weight) const {
    if (weight == 1) return poisson_(draw(key, copy));  // as most rows have
    const std::uint32_t copies = copies_of(weight);
    std::uint32_t drawn = 0;
    for (std::uint32_t c = 0; c < copies; ++c) drawn += poisson_(draw(key, copy + c));
    return copies == 0 ? 0.0 : drawn * (weight / copies);
  }

  bool draw_;
  Poisson poisson_;
  std::uint64_t key_;
};

struct TreeWeights {
  std::vector<double> rows;
  bool whole = true;  // small whole numbers
};

TreeWeights tree_weights(const Bucket& bucket, const Bootstrap& bootstrap, std::uint64_t tree,
                         const std::vector<double>& class_weights);

// A bit for each row of a bucket: whether a tree has seen it.
class DrawnRows {
 public:
  explicit DrawnRows(const std::uint8_t* bits) : bits_(bits) {}
  static std::size_t bytes(std::size_t rows) { return (rows + 7) / 8; }
  static std::vector<std::uint8_t> of(const TreeWeights& weights);
  bool has(std::size_t i) const { return (bits_[i / 8] >> (i % 8) & 1) != 0; }

 private:
  const std::uint8_t* bits_;
};

}  // namespace oldgrowth
