// A bucket loaded for growing: rank codes, targets, weights, and the bootstrap of its rows.
//
// A row's bootstrap count depends on its content (values and target) and on how many copies of it came
// before, not on its place in the data. Equal rows always share a bucket, so the copies can be counted
// here; a row of weight 3 counts as three copies and gets exactly what three equal rows would get.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/rng.hpp"
#include "grow/grower.hpp"
#include "grow/rank_codes.hpp"
#include "rows/row_codec.hpp"

namespace oldgrowth {

struct Bucket {
  std::size_t rows = 0;
  Block<std::uint16_t> narrow;  // filled for up to 65,535 rows
  Block<std::uint32_t> wide;    // filled beyond
  std::vector<std::uint32_t> classes;
  std::vector<double> values;
  std::vector<double> weights;        // empty: every row weighs one
  std::vector<std::uint64_t> keys;    // hash of a row's content
  std::vector<std::uint32_t> copies;  // copies of the same row that came before it; for a bootstrap
};

// What rows are like, as far as memory depends on it.
struct RowKind {
  std::size_t features, ranked;  // `ranked` of them have more values than codes hold
  bool classification, weighted, bootstrap;
};

// What a bucket of so many rows takes, and what make_bucket takes for a while beside.
std::size_t bucket_bytes(std::size_t rows, const RowKind& kind);
std::size_t making_bytes(std::size_t rows, const RowKind& kind);

// All rows of the training data as records, in memory; `targets` are class numbers or values.
struct RowSource {
  const std::uint8_t* records;
  const std::uint64_t* keys;
  const double* targets;
  const double* weights;  // may be null
  double scale = 1;       // values come divided by it: see TreeRules
};

// The rows index[0..n) of the source; without an index its first n rows. Trees without bootstrap need not know
// which rows are copies.
Bucket make_bucket(const RowCodec& codec, const RowSource& source, const std::uint32_t* index, std::size_t n,
                   bool classification, bool for_bootstrap = true);

struct Bootstrap {
  bool draw = true;
  double mean = 1;  // expected count of a row
  std::uint64_t seed = 0;
};

// How many copies of each row came before it; a row counts as often as its weight has whole units.
class CopyCounter {
 public:
  explicit CopyCounter(std::size_t expected_keys = 0);
  // Rows in order: the copies of the i-th go to copies[i]. `weights` may be null.
  void count(const std::uint64_t* keys, const double* weights, std::size_t n, std::uint32_t* copies);
  // Different keys so far.
  std::size_t keys() const { return keys_; }
  static std::size_t bytes(std::size_t keys) { return slots_for(keys) * sizeof(Slot); }

 private:
  struct Slot {
    std::uint64_t key;
    std::uint32_t copies;  // zero: free
  };
  static std::size_t slots_for(std::size_t keys);
  Slot& slot_of(std::uint64_t key);
  void grow();

  std::vector<Slot> slots_;
  std::size_t keys_ = 0;
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
  double drawn_weight(std::uint64_t key, std::uint32_t copy, double weight) const;

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

// The leaf of a tree that row `i` of the bucket falls into.
Node leaf_of(const Bucket& bucket, const Node* nodes, std::size_t i);

}  // namespace oldgrowth
