// Forests and the files that they are mapped from.
#include "predict/forest.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <system_error>

#include "predict/mapped_file.hpp"
#include "predict/predict.hpp"
#include "predict/route.hpp"
#include "python/arrays.hpp"

namespace oldgrowth {

using namespace nb::literals;

namespace {

// The arrays that only a forest with categorical features has.
struct CategoryArrays {
  In1<std::uint32_t> levels;
  In1<std::uint16_t> top_sets;
  In1<std::uint64_t> top_set_start;
  In1<std::uint16_t> sets;
  In1<std::uint64_t> set_start;

  void show(Forest& forest) const {
    forest.levels = span_of(levels);
    forest.top_sets = span_of(top_sets);
    forest.top_set_start = span_of(top_set_start);
    forest.sets = span_of(sets);
    forest.set_start = span_of(set_start);
  }
};

// The arrays of a forest, kept alive with it.
struct OwnedForest {
  In1<std::uint64_t> top_nodes, top_start, bucket_start, trees_of_top, bottom_start, nodes, node_start, table_start;
  In1<float> table;
  In1<std::uint32_t> tree_crc;
  nb::list held_files;
  std::optional<CategoryArrays> categories;
  Forest forest;
  std::unique_ptr<TreeChecks> checks;
  std::vector<const MappedFile*> files;

  void check(std::size_t first, std::size_t last) const {
    while_unchanged(forest, [&](TreeChecks::Epoch epoch) {
      for (std::size_t b = first; b < last; ++b) checks->ensure(forest, b, epoch);
    });
  }
};

void bind_mapped_file(nb::module_& m) {
  nb::class_<MappedFile>(m, "MappedFile", "A memory-mapped file, which may change or be truncated while it is in use.")
      .def(
          "__init__",
          [](MappedFile* self, int fd) {
            try {
              new (self) MappedFile(fd);
            } catch (const std::system_error& error) {
              errno = error.code().value();
              PyErr_SetFromErrno(PyExc_OSError);
              throw nb::python_error();
            }
          },
          "fd"_a)
      .def_prop_ro("size", &MappedFile::size)
      .def_prop_ro("lost", &MappedFile::lost, "Whether a page could not be read.")
      .def_prop_ro(
          "stamp",
          [](const MappedFile& self) {
            const FileStamp stamp = self.stamp();
            return nb::make_tuple(stamp.size, stamp.modified, stamp.changed);
          },
          "The current size and times of the file.")
      .def_prop_ro(
          "bytes",
          [](nb::handle self) {
            const auto& file = nb::cast<const MappedFile&>(self);
            return nb::ndarray<nb::numpy, const std::uint8_t, nb::ndim<1>>(file.data(), {file.size()}, self);
          },
          "The current contents of the file.")
      .def(
          "evict",
          [](const MappedFile& self, nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu> part) {
            self.evict(part.data(), part.nbytes());
          },
          "part"_a, "Evict the pages of an array in this mapping; other arrays are ignored.");
  m.def("guard_mappings", &guard_mappings, "Make sure that reading a truncated file does not kill the process.");
}

void require_features(std::uint32_t n_features, const std::vector<std::uint32_t>& levels) {
  require(n_features > 0 && n_features <= kMaxFeatures, "number of features");
  require(levels.empty() || levels.size() == n_features, "not a number of levels for each feature");
}

}  // namespace

void bind_forest(nb::module_& m) {
  bind_mapped_file(m);
  nb::class_<CategoryArrays>(m, "CategoryArrays", "The arrays that only a forest with categorical features has.")
      .def(
          "__init__",
          [](CategoryArrays* self, In1<std::uint32_t> levels, In1<std::uint16_t> top_sets,
             In1<std::uint64_t> top_set_start, In1<std::uint16_t> sets, In1<std::uint64_t> set_start) {
            new (self) CategoryArrays{levels, top_sets, top_set_start, sets, set_start};
          },
          "levels"_a, "top_sets"_a, "top_set_start"_a, "sets"_a, "set_start"_a);
  m.def(
      "route",
      [](In1<std::uint64_t> nodes, const InRows& x, In1<std::uint16_t> sets, const std::vector<std::uint32_t>& levels) {
        require(nodes.shape(0) > 0, "a top tree without nodes");
        require(levels.empty() || levels.size() == x.shape(1), "not a number of levels for each feature");
        const NodeFormat format(static_cast<std::uint32_t>(x.shape(1)));
        std::vector<std::uint32_t> buckets(x.shape(0));
        as_floats(x, [&](std::size_t first, const float* rows, std::size_t n) {
          route(format, span_of(nodes), {levels, span_of(sets)}, {rows, x.shape(1), nullptr, n, !are_bytes(x)},
                buckets.data() + first);
        });
        return to_numpy(std::move(buckets));
      },
      "nodes"_a, "x"_a, "sets"_a, "levels"_a);
  m.def(
      "depths_of_buckets",
      [](In1<std::uint64_t> nodes, std::uint32_t n_features, In1<std::uint16_t> sets,
         const std::vector<std::uint32_t>& levels) {
        require_features(n_features, levels);
        return to_numpy(depths_of_buckets(span_of(nodes), n_features, {levels, span_of(sets)}));
      },
      "nodes"_a, "n_features"_a, "sets"_a, "levels"_a,
      "The depth of each bucket of a top tree; empty if the nodes are not a tree.");
  m.def(
      "check_bottom_tree",
      [](In1<std::uint64_t> nodes, std::uint32_t n_features, std::uint32_t n_classes, std::uint64_t table_rows,
         In1<std::uint16_t> sets, const std::vector<std::uint32_t>& levels) {
        require_features(n_features, levels);
        nb::gil_scoped_release release;
        return check_bottom_tree(span_of(nodes), n_features, n_classes, table_rows, {levels, span_of(sets)});
      },
      "nodes"_a, "n_features"_a, "n_classes"_a, "table_rows"_a, "sets"_a, "levels"_a,
      "Whether nothing in a bottom tree leads outside.");
  nb::exception<DamagedTree>(m, "DamagedTreeError", PyExc_ValueError);
  nb::exception<LostPages>(m, "LostPagesError", PyExc_ValueError);
  nb::exception<ChangingFile>(m, "ChangingFileError", PyExc_ValueError);
  nb::class_<OwnedForest>(m, "Forest", "A forest in flat arrays, whose trees are checked when they are first used.")
      .def(
          "__init__",
          [](OwnedForest* self, std::uint32_t n_features, std::uint32_t n_classes, In1<std::uint64_t> top_nodes,
             In1<std::uint64_t> top_start, In1<std::uint64_t> bucket_start, In1<std::uint64_t> trees_of_top,
             In1<std::uint64_t> bottom_start, In1<std::uint64_t> nodes, In1<std::uint64_t> node_start,
             In1<std::uint64_t> table_start, In1<float> table, In1<std::uint32_t> tree_crc, nb::list files,
             std::optional<CategoryArrays> categories) {
            Forest forest{n_features,
                          n_classes,
                          span_of(top_nodes),
                          span_of(top_start),
                          span_of(bucket_start),
                          span_of(trees_of_top),
                          span_of(bottom_start),
                          span_of(nodes),
                          span_of(node_start),
                          span_of(table_start),
                          span_of(table),
                          span_of(tree_crc)};
            if (categories) categories->show(forest);
            const std::string wrong = check_frame(forest);
            if (!wrong.empty()) throw nb::value_error(wrong.c_str());
            new (self) OwnedForest{top_nodes,   top_start, bucket_start, trees_of_top, bottom_start, nodes, node_start,
                                   table_start, table,     tree_crc,     files,        categories,   forest};
            self->checks = std::make_unique<TreeChecks>(forest.tree_crc.size());
            for (nb::handle file : files) self->files.push_back(nb::cast<const MappedFile*>(file));
            self->forest.checks = self->checks.get();
            self->forest.files = self->files;
          },
          "n_features"_a, "n_classes"_a, "top_nodes"_a, "top_start"_a, "bucket_start"_a, "trees_of_top"_a,
          "bottom_start"_a, "nodes"_a, "node_start"_a, "table_start"_a, "table"_a, "tree_crc"_a, "files"_a,
          "categories"_a.none())
      .def(
          "check",
          [](const OwnedForest& self) {
            nb::gil_scoped_release release;
            if (!self.files.empty()) self.checks->forget(0, self.forest.tree_crc.size());
            self.check(0, self.forest.tree_crc.size());
          },
          "Check all trees: all of a mapped forest, otherwise those not used yet.")
      .def(
          "prediction_bytes",
          [](const OwnedForest& self, bool evict) {
            const PredictionBytes bytes = prediction_bytes(self.forest, evict);
            return nb::make_tuple(bytes.row, bytes.thread);
          },
          "evict"_a, "Bytes that a thread needs to predict: for each row, and in addition.")
      .def(
          "predict_sums",
          [](const OwnedForest& self, In2<float> x, bool may_miss, bool hard, bool evict, Out2<double> sums) {
            require(x.shape(1) == self.forest.n_features && sums.shape(0) == x.shape(0) &&
                        sums.shape(1) == self.forest.outputs(),
                    "arrays of other shapes");
            nb::gil_scoped_release release;
            predict_sums(self.forest, {x.data(), x.shape(0), may_miss, evict}, hard, sums.data());
          },
          "x"_a, "may_miss"_a, "hard"_a, "evict"_a, "sums"_a)
      .def(
          "apply",
          [](const OwnedForest& self, In2<float> x, bool may_miss, bool evict, Out2<std::int64_t> leaves) {
            std::size_t trees = 0;
            for (const std::uint64_t t : self.forest.trees_of_top) trees += t;
            require(x.shape(1) == self.forest.n_features && leaves.shape(0) == x.shape(0) && leaves.shape(1) == trees,
                    "arrays of other shapes");
            nb::gil_scoped_release release;
            apply(self.forest, {x.data(), x.shape(0), may_miss, evict}, leaves.data());
          },
          "x"_a, "may_miss"_a, "evict"_a, "leaves"_a);
}

}  // namespace oldgrowth
