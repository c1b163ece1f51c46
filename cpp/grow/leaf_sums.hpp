// A tree that is a single leaf, from rows that come part by part and in order: a bucket that cannot be split may be
// far larger than memory. Gives what growing on the whole bucket would give, bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "grow/bucket.hpp"
#include "grow/oob.hpp"

namespace oldgrowth {

// Some rows of a bucket, with what count() of CopyCounter says of them.
struct LeafRows {
  std::size_t n;
  const std::uint64_t* keys;
  const std::uint32_t* copies;
  const double* targets;
  const double* weights;  // may be null
};

template <class Stats>
class LeafSums {
 public:
  LeafSums(const Bootstrap& bootstrap, std::uint64_t tree, std::uint32_t n_classes, double target_scale,
           std::vector<double> class_weights)
      : draw_(bootstrap, tree),
        n_classes_(n_classes),
        target_scale_(target_scale),
        class_weights_(std::move(class_weights)),
        plain_(n_classes),
        weighted_(n_classes) {
    plain_.clear();
    weighted_.clear();
    one_.weights.resize(1);
    one_.classes.resize(1);
    one_.values.resize(1);
    plain_.use(one_);
    weighted_.use(one_);
  }
  LeafSums(const LeafSums&) = delete;  // its sums look at `one_`

  void add(const LeafRows& rows) {
    for (std::size_t i = 0; i < rows.n; ++i, ++row_) {
      if (const double weight = draw_.weight(rows, i); weight > 0) add(rows.targets[i], weight);
      const std::uint64_t number = draw_.number(rows, i);
      if (row_ > 0 && number >= lowest_number_) continue;
      lowest_number_ = number;
      lowest_row_ = row_;
      lowest_target_ = rows.targets[i];
      lowest_weight_ = RowDraw::own_weight(rows, i);
    }
  }

  // After the last row: the leaf.
  GrownTree finish() {
    none_drawn_ = !(plain_.weight() > 0);
    if (none_drawn_) add(lowest_target_, lowest_weight_);
    uses_class_weights_ = !class_weights_.empty() && weighted_.weight() > 0;
    Stats& stats = uses_class_weights_ ? weighted_ : plain_;
    stats.close();
    GrownTree tree;
    append_leaf(tree, stats, target_scale_);
    return tree;
  }

  // The weight of each class, without weights of classes.
  std::vector<double> class_totals() const {
    std::vector<double> totals(n_classes_);
    for (std::size_t k = 0; k < n_classes_; ++k) totals[k] = plain_.total(k);
    return totals;
  }

  // After finish(): what the leaf says to those of the rows, from number `first` on, that the tree did not see.
  void vote(const LeafRows& rows, std::size_t first, const GrownTree& tree, const OobSums& oob) const {
    for (std::size_t i = 0; i < rows.n; ++i) {
      const bool drawn = none_drawn_ ? first + i == lowest_row_ : draw_.weight(rows, i) > 0;
      if (drawn && class_weight(rows.targets[i]) > 0) continue;
      add_vote(oob, i, Stats::kClassification, tree.nodes[0], tree.table.data());
    }
  }

 private:
  double class_weight(double target) const {
    return uses_class_weights_ ? class_weights_[static_cast<std::size_t>(target)] : 1.0;
  }

  void add(double target, double weight) {
    if constexpr (Stats::kClassification)
      one_.classes[0] = static_cast<std::uint32_t>(target);
    else
      one_.values[0] = target / target_scale_;
    one_.weights[0] = weight;
    plain_.add(0);
    if (class_weights_.empty()) return;
    one_.weights[0] = weight * class_weights_[static_cast<std::size_t>(target)];
    if (one_.weights[0] > 0) weighted_.add(0);
  }

  RowDraw draw_;
  std::uint32_t n_classes_;
  double target_scale_;
  std::vector<double> class_weights_;
  Stats plain_, weighted_;  // the latter with the weights of classes
  Targets one_;
  std::size_t row_ = 0, lowest_row_ = 0;
  std::uint64_t lowest_number_ = std::numeric_limits<std::uint64_t>::max();
  double lowest_target_ = 0, lowest_weight_ = 0;
  bool none_drawn_ = false, uses_class_weights_ = false;
};

}  // namespace oldgrowth
