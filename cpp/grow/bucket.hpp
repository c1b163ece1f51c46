// A bucket loaded for growing: rank codes, targets, weights, and which of its rows are equal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/level_set.hpp"
#include "base/node.hpp"
#include "grow/rank_codes.hpp"
#include "rows/row_codec.hpp"
#include "rows/row_index.hpp"

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

// The properties of rows that determine how much memory they need.
struct RowKind {
  std::size_t features, ranked;  // `ranked` of them have more values than codes hold
  bool classification, weighted, bootstrap;
};

// Bytes of a bucket with this many rows, and additional bytes that make_bucket needs while it runs.
std::size_t bucket_bytes(std::size_t rows, const RowKind& kind);
std::size_t making_bytes(std::size_t rows, const RowKind& kind);

// All rows of the training data as records, in memory; `targets` are class numbers or values.
struct RowSource {
  const std::uint8_t* records;
  const std::uint64_t* keys;
  const double* targets;
  const double* weights;  // may be null
  double scale = 1;       // values are divided by it: see TreeRules
};

// The rows index[0..n) of the source. Trees without a bootstrap need not know which rows are copies.
Bucket make_bucket(const RowCodec& codec, const RowSource& source, const RowIndex& index, std::size_t n,
                   bool classification, bool for_bootstrap = true);

// The leaf of a tree that row `i` of the bucket falls into.
Node leaf_of(const Bucket& bucket, const Node* nodes, std::size_t i, const Categories& categories = {});

}  // namespace oldgrowth
