// Growing trees.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <optional>
#include <string>

#include "grow/oob.hpp"
#include "grow/single_leaf.hpp"
#include "grow/trees.hpp"
#include "python/arrays.hpp"

namespace oldgrowth {

using namespace nb::literals;

namespace {

nb::tuple grow_top(const Bucket& bucket, const TreeRules& rules, std::uint64_t seed, std::uint64_t turn,
                   std::uint64_t place, std::size_t depth, const std::vector<double>& class_weights) {
  GrownTree tree;
  {
    nb::gil_scoped_release release;
    tree = grow_top_tree(bucket, rules, {seed, turn, place, depth}, class_weights);
  }
  return nb::make_tuple(to_numpy(std::move(tree.nodes)), to_numpy(std::move(tree.leaf_depths)),
                        to_numpy(std::move(tree.importances)), to_numpy(std::move(tree.sets)));
}

struct Oob {
  Out2<std::int64_t> sums;
  Out1<std::uint32_t> trees;
  double scale, offset;
  bool hard;

  OobSums core() const { return {sums.data(), trees.data(), sums.shape(1), scale, offset, hard}; }
};

// The last item of the result has a bit for each row that the tree has seen, if asked for.
nb::tuple grow_bottom(const Bucket& bucket, const TreeRules& rules, const Bootstrap& bootstrap, std::uint64_t tree_id,
                      std::uint64_t bucket_id, std::size_t depth, const std::vector<double>& class_weights,
                      bool tell_drawn) {
  BottomTree grown;
  {
    nb::gil_scoped_release release;
    grown = grow_bottom_tree(bucket, rules, bootstrap, {tree_id, bucket_id, depth}, class_weights, tell_drawn);
  }
  GrownTree& tree = grown.tree;
  return nb::make_tuple(to_numpy(std::move(tree.nodes)), to_numpy(std::move(tree.table)),
                        to_numpy(std::move(tree.importances)), tree.depth, to_numpy(std::move(tree.sets)),
                        to_numpy(std::move(grown.drawn)));
}

struct Voter {
  In1<std::uint64_t> nodes;
  In1<float> table;
  In1<std::uint16_t> sets;
  std::vector<std::uint32_t> levels;

  VotingTree core() const { return {nodes.data(), table.data(), {levels, span_of(sets)}}; }
};

void add_oob_votes(const Bucket& bucket, In1<std::uint8_t> drawn, const Voter& tree, std::size_t first,
                   const Oob& oob) {
  const std::size_t last = first + oob.trees.shape(0);
  require(last <= bucket.rows && drawn.shape(0) == DrawnRows::bytes(bucket.rows) && tree.nodes.shape(0) > 0,
          "other out-of-bag rows");
  nb::gil_scoped_release release;
  add_oob(bucket, DrawnRows(drawn.data()), tree.core(), {first, last}, oob.core());
}

LeafRows leaf_rows(const In1<std::uint64_t>& keys, const In1<std::uint64_t>& copies, const In1<double>& targets,
                   const std::optional<In1<double>>& weights) {
  const std::size_t n = keys.shape(0);
  require(copies.shape(0) == n && targets.shape(0) == n && (!weights || weights->shape(0) == n),
          "arrays of other lengths");
  return {n, keys.data(), copies.data(), targets.data(), weights ? weights->data() : nullptr};
}

// Set by one thread, read by others.
struct Stop {
  std::atomic<bool> flag = false;
};

}  // namespace

void bind_growing(nb::module_& m) {
  nb::class_<Stop>(m, "Stop", "Stops the growth of trees whose rules refer to it.")
      .def(nb::init<>())
      .def("set", [](Stop& self) { self.flag = true; })
      .def("is_set", [](const Stop& self) { return self.flag.load(); });
  nb::class_<TreeRules>(m, "TreeRules", "How a tree is grown.")
      .def(nb::init<>())
      .def_rw("random_thresholds", &TreeRules::random_thresholds)
      .def_rw("top_tree", &TreeRules::top_tree)
      .def_rw("n_classes", &TreeRules::n_classes)
      .def_rw("max_features", &TreeRules::max_features)
      .def_rw("max_depth", &TreeRules::max_depth)
      .def_rw("min_samples_split", &TreeRules::min_samples_split)
      .def_rw("min_samples_leaf", &TreeRules::min_samples_leaf)
      .def_rw("min_weight_leaf", &TreeRules::min_weight_leaf)
      .def_rw("min_impurity_decrease", &TreeRules::min_impurity_decrease)
      .def_rw("total_weight", &TreeRules::total_weight)
      .def_rw("balance", &TreeRules::balance)
      .def_rw("target_scale", &TreeRules::target_scale)
      .def_rw("levels", &TreeRules::levels)
      .def(
          "stop_by", [](TreeRules& self, const Stop& stop) { self.stop = &stop.flag; }, "stop"_a,
          nb::keep_alive<1, 2>())
      .def_prop_rw(
          "criterion",
          [](const TreeRules& self) {
            return visit_criterion(self.criterion, []<class C>(C) { return std::string(C::kNames[0]); });
          },
          [](TreeRules& self, const std::string& name) {
            const std::optional<Criterion> found = find_criterion(name);
            require(found.has_value(), "no such criterion");
            self.criterion = *found;
          },
          "The name of the criterion.");
  m.def("criteria", &criterion_names, "classification"_a,
        "The names of the criteria for classification, or for regression.");
  nb::class_<Bootstrap>(m, "Bootstrap", "How many times each row counts in a tree.")
      .def(
          "__init__",
          [](Bootstrap* self, bool draw, double mean, std::uint64_t seed) { new (self) Bootstrap{draw, mean, seed}; },
          "draw"_a, "mean"_a, "seed"_a);
  nb::class_<Oob>(m, "Oob", "Sums of the out-of-bag predictions of a bucket's rows.")
      .def(
          "__init__",
          [](Oob* self, Out2<std::int64_t> sums, Out1<std::uint32_t> trees, double scale, double offset, bool hard) {
            require(sums.shape(0) == trees.shape(0), "sums and trees differ in length");
            new (self) Oob{sums, trees, scale, offset, hard};
          },
          "sums"_a, "trees"_a, "scale"_a, "offset"_a, "hard"_a);
  nb::class_<RowKind>(m, "RowKind", "The properties of rows that determine how much memory they need.")
      .def(
          "__init__",
          [](RowKind* self, std::size_t features, std::size_t ranked, bool classification, bool weighted,
             bool bootstrap) { new (self) RowKind{features, ranked, classification, weighted, bootstrap}; },
          "features"_a, "ranked"_a, "classification"_a, "weighted"_a, "bootstrap"_a);
  m.def("bucket_bytes", &bucket_bytes, "rows"_a, "kind"_a, "Bytes of a bucket.");
  m.def("making_bytes", &making_bytes, "rows"_a, "kind"_a, "Bytes that making a bucket needs in addition to it.");
  m.def("growing_bytes", &growing_bytes, "rows"_a, "kind"_a, "rules"_a, "whole_weights"_a, "mixed_leaves"_a,
        "Bytes that growing a tree needs in addition to the bucket, the tree included.");
  m.def("grow_top", &grow_top, "bucket"_a, "rules"_a, "seed"_a, "turn"_a, "place"_a, "depth"_a, "class_weights"_a);
  m.def("grow_bottom", &grow_bottom, "bucket"_a, "rules"_a, "bootstrap"_a, "tree"_a, "bucket_id"_a, "depth"_a,
        "class_weights"_a, "tell_drawn"_a);
  nb::class_<Voter>(m, "VotingTree", "A tree of a bucket that votes for rows.")
      .def(
          "__init__",
          [](Voter* self, In1<std::uint64_t> nodes, In1<float> table, In1<std::uint16_t> sets,
             std::vector<std::uint32_t> levels) { new (self) Voter{nodes, table, sets, std::move(levels)}; },
          "nodes"_a, "table"_a, "sets"_a, "levels"_a);
  m.def("add_oob_votes", &add_oob_votes, "bucket"_a, "drawn"_a, "tree"_a, "first"_a, "oob"_a,
        "Adds the votes of a tree for the bucket's rows from `first` on, as many as there are sums.");
  nb::class_<SingleLeaf>(m, "Leaf", "A tree that is a single leaf, from the rows of a bucket part by part.")
      .def(nb::new_(&make_single_leaf), "rules"_a, "bootstrap"_a, "tree"_a, "class_weights"_a)
      .def(
          "add",
          [](SingleLeaf& self, In1<std::uint64_t> keys, In1<std::uint64_t> copies, In1<double> targets,
             std::optional<In1<double>> weights) {
            const LeafRows rows = leaf_rows(keys, copies, targets, weights);
            nb::gil_scoped_release release;
            self.add(rows);
          },
          "keys"_a, "copies"_a, "targets"_a, "weights"_a.none())
      .def(
          "finish",
          [](SingleLeaf& self) {
            const GrownTree& tree = self.finish();
            return nb::make_tuple(to_numpy(std::vector<Node>(tree.nodes)), to_numpy(std::vector<float>(tree.table)));
          },
          "After the last row: nodes and table of the tree.")
      .def(
          "class_totals", [](const SingleLeaf& self) { return to_numpy(self.class_totals()); },
          "The weight of each class in the tree's bootstrap, without weights of classes.")
      .def(
          "vote",
          [](const SingleLeaf& self, In1<std::uint64_t> keys, In1<std::uint64_t> copies, In1<double> targets,
             std::optional<In1<double>> weights, std::size_t first, const Oob& oob) {
            const LeafRows rows = leaf_rows(keys, copies, targets, weights);
            require(oob.trees.shape(0) == rows.n && self.tree().nodes.size() == 1, "other out-of-bag rows");
            nb::gil_scoped_release release;
            self.vote(rows, first, oob.core());
          },
          "keys"_a, "copies"_a, "targets"_a, "weights"_a.none(), "first"_a, "oob"_a,
          "Adds the votes of the finished leaf for these rows, the first of which has the place `first` in the "
          "bucket.");
}

}  // namespace oldgrowth
