// Prediction: rows are routed through each top tree, grouped by bucket, and walked through the bucket's
// bottom trees, which are then still in the cache.
#pragma once

#include <cstddef>
#include <cstdint>

#include "predict/forest.hpp"

namespace oldgrowth {

// Rows to predict, row-major.
struct RowsIn {
  const float* x;
  std::size_t n;
  bool may_miss;  // there are NaN among the values
  // The forest is mapped from a file and too large for memory: all rows go through it together, and each
  // tree is evicted after use.
  bool evict = false;
};

// Sums, for each row, the predictions of its leaves: shares of the classes (or one vote each, if `hard`), or values.
// `sums` has n x outputs() places, set by this function. Trees are added in one order whatever n is, so batches
// do not change a sum.
void predict_sums(const Forest& forest, const RowsIn& rows, bool hard, double* sums);

// Bytes that a thread needs to predict: for each row, and in addition.
struct PredictionBytes {
  std::size_t row, thread;
};
PredictionBytes prediction_bytes(const Forest& forest, bool evict);

// For each row and tree, the number of its leaf among all nodes of the tree; `leaves` is n x n_trees.
void apply(const Forest& forest, const RowsIn& rows, std::int64_t* leaves);

}  // namespace oldgrowth
