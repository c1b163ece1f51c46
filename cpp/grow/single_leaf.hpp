// A tree that is a single leaf, from rows that arrive part by part and in order: a bucket that cannot be split may be
// far larger than memory. The result is that of growing on the whole bucket, bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "grow/bootstrap.hpp"
#include "grow/grower.hpp"
#include "grow/oob.hpp"

namespace oldgrowth {

// Some rows of a bucket, with the results of CopyCounter::count().
struct LeafRows {
  std::size_t n;
  const std::uint64_t* keys;
  const std::uint64_t* copies;
  const double* targets;
  const double* weights;  // may be null
};

class SingleLeaf {
 public:
  virtual ~SingleLeaf() = default;
  virtual void add(const LeafRows& rows) = 0;
  // After the last row: the leaf.
  virtual const GrownTree& finish() = 0;
  virtual const GrownTree& tree() const = 0;
  // The weight of each class in the tree's bootstrap, class weights aside.
  virtual std::vector<double> class_totals() const = 0;
  // After finish(): adds the votes of the leaf for those rows that the tree did not see. The first row has the place
  // `first` in the bucket.
  virtual void vote(const LeafRows& rows, std::size_t first, const OobSums& oob) const = 0;
};

std::unique_ptr<SingleLeaf> make_single_leaf(const TreeRules& rules, const Bootstrap& bootstrap, std::uint64_t tree,
                                             std::vector<double> class_weights);

}  // namespace oldgrowth
