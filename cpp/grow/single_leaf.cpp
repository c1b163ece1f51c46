#include "grow/single_leaf.hpp"

#include <limits>
#include <stdexcept>
#include <utility>

namespace oldgrowth {
namespace {

template <class Stats>
class LeafOf final : public SingleLeaf {
 public:
  LeafOf(const TreeRules& rules, const Bootstrap& bootstrap, std::uint64_t tree, std::vector<double> class_weights)
      : draw_(bootstrap, tree),
        n_classes_(rules.n_classes),
        target_scale_(rules.target_scale),
        class_weights_(std::move(class_weights)),
        plain_(rules.n_classes),
        weighted_(rules.n_classes) {
    plain_.clear();
    weighted_.clear();
    one_.weights.resize(1);
    one_.classes.resize(1);
    one_.values.resize(1);
    plain_.use(one_);
    weighted_.use(one_);
  }
  LeafOf(const LeafOf&) = delete;  // its sums refer to `one_`

  void add(const LeafRows& rows) override {
    if constexpr (Stats::kClassification)
      for (std::size_t i = 0; i < rows.n; ++i)
        if (!(rows.targets[i] >= 0 && rows.targets[i] < n_classes_))
          throw std::invalid_argument("a class number out of range");
    for (std::size_t i = 0; i < rows.n; ++i, ++row_) {
      if (const double weight = draw_.weight(rows, i); weight > 0) add_row(rows.targets[i], weight);
      const std::uint64_t number = draw_.number(rows, i);
      if (row_ > 0 && number >= lowest_number_) continue;
      lowest_number_ = number;
      lowest_row_ = row_;
      lowest_target_ = rows.targets[i];
      lowest_weight_ = RowDraw::own_weight(rows, i);
    }
  }

  const GrownTree& finish() override {
    none_drawn_ = !(plain_.weight() > 0);
    if (none_drawn_) add_row(lowest_target_, lowest_weight_);
    uses_class_weights_ = !class_weights_.empty() && weighted_.weight() > 0;
    Stats& stats = uses_class_weights_ ? weighted_ : plain_;
    stats.close();
    tree_ = {};
    append_leaf(tree_, stats, target_scale_);
    return tree_;
  }

  const GrownTree& tree() const override { return tree_; }

  std::vector<double> class_totals() const override {
    if constexpr (Stats::kClassification) {
      std::vector<double> totals(n_classes_);
      for (std::size_t k = 0; k < n_classes_; ++k) totals[k] = plain_.total(k);
      return totals;
    } else {
      throw std::invalid_argument("a regression has no classes");
    }
  }

  void vote(const LeafRows& rows, std::size_t first, const OobSums& oob) const override {
    for (std::size_t i = 0; i < rows.n; ++i) {
      const bool drawn = none_drawn_ ? first + i == lowest_row_ : draw_.weight(rows, i) > 0;
      if (drawn && class_weight(rows.targets[i]) > 0) continue;
      add_vote(oob, i, Stats::kClassification, tree_.nodes[0], tree_.table.data());
    }
  }

 private:
  double class_weight(double target) const {
    return uses_class_weights_ ? class_weights_[static_cast<std::size_t>(target)] : 1.0;
  }

  void add_row(double target, double weight) {
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
  Stats plain_, weighted_;  // without and with class weights
  Targets one_;             // the row that is added
  std::size_t row_ = 0, lowest_row_ = 0;
  std::uint64_t lowest_number_ = std::numeric_limits<std::uint64_t>::max();
  double lowest_target_ = 0, lowest_weight_ = 0;
  bool none_drawn_ = false, uses_class_weights_ = false;
  GrownTree tree_;
};

}  // namespace

std::unique_ptr<SingleLeaf> make_single_leaf(const TreeRules& rules, const Bootstrap& bootstrap, std::uint64_t tree,
                                             std::vector<double> class_weights) {
  return visit_criterion(rules.criterion, [&]<class C>(C) -> std::unique_ptr<SingleLeaf> {
    using Stats = typename C::template Stats<false>;
    if (!class_weights.empty() && class_weights.size() < rules.n_classes)
      throw std::invalid_argument("too few class weights");
    return std::make_unique<LeafOf<Stats>>(rules, bootstrap, tree, std::move(class_weights));
  });
}

}  // namespace oldgrowth
