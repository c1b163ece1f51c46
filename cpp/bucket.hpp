// A bucket loaded for growing: rank codes, targets, weights, and the bootstrap of its rows.
//
// A row's bootstrap count depends on its content (values and target) and on how many copies of it came
// before, not on its place in the data. Equal rows always share a bucket, so the copies can be counted
// here; a row of weight 3 counts as three copies and gets exactly what three equal rows would get.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "grow.hpp"
#include "rank_codes.hpp"
#include "rng.hpp"
#include "row_codec.hpp"

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

struct TreeWeights {
  std::vector<double> rows;
  bool whole = true;  // small whole numbers
};

TreeWeights tree_weights(const Bucket& bucket, const Bootstrap& bootstrap, std::uint64_t tree,
                         const std::vector<double>& class_weights);

// The leaf that row `i` of the bucket falls into.
Node leaf_of(const Bucket& bucket, const GrownTree& tree, std::size_t i);

}  // namespace oldgrowth
