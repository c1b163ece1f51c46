// With bindings_files.cpp the only code that knows Python. It checks shapes, releases the GIL and calls the core.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <stdexcept>

#include "grow/bucket.hpp"
#include "predict/forest.hpp"
#include "predict/predict.hpp"
#include "predict/route.hpp"
#include "python/bindings.hpp"
#include "rows/profile.hpp"
#include "rows/row_codec.hpp"
#include "rows/sample.hpp"

namespace oldgrowth {

using namespace nb::literals;

namespace {

// The arrays a forest lies in, kept alive with it.
struct OwnedForest {
  In1<std::uint64_t> top_nodes, top_start, bucket_start, trees_of_top, bottom_start, nodes, node_start, table_start;
  In1<float> table;
  In1<std::uint32_t> tree_crc;
  nb::list held_files;
  Forest forest;
  std::unique_ptr<TreeChecks> checks;
  std::vector<const MappedFile*> files;

  void check(std::size_t first, std::size_t last) const {
    while_unchanged(forest, [&](TreeChecks::Epoch epoch) {
      for (std::size_t b = first; b < last; ++b) checks->ensure(forest, b, epoch);
    });
  }
};

struct Rows {
  In2<std::uint8_t> records;
  In1<std::uint64_t> keys;
  In1<double> targets;
  std::optional<In1<double>> weights;
  double scale;
};

Bucket bucket_of(const RowCodec& codec, const Rows& rows, std::optional<In1<std::uint32_t>> index, bool classification,
                 bool for_bootstrap) {
  const std::size_t n = rows.records.shape(0);
  require(rows.keys.shape(0) == n && rows.targets.shape(0) == n, "records, keys and targets differ in length");
  require(!rows.weights || rows.weights->shape(0) == n, "records and weights differ in length");
  require(rows.records.shape(1) == codec.record_bytes(), "records of another codec");
  if (index)
    for (const std::uint32_t i : span_of(*index)) require(i < n, "row index out of range");
  const RowSource source{rows.records.data(), rows.keys.data(), rows.targets.data(),
                         rows.weights ? rows.weights->data() : nullptr, rows.scale};
  nb::gil_scoped_release release;
  return make_bucket(codec, source, index ? index->data() : nullptr, index ? index->shape(0) : n, classification,
                     for_bootstrap);
}

nb::tuple group_by_bucket(In1<std::uint32_t> buckets, std::size_t n_buckets) {
  std::vector<std::uint64_t> start(n_buckets + 1);
  std::vector<std::uint32_t> order(buckets.shape(0));
  {
    nb::gil_scoped_release release;
    for (const std::uint32_t b : span_of(buckets)) {
      require(b < n_buckets, "bucket out of range");
      ++start[b + 1];
    }
    for (std::size_t b = 0; b < n_buckets; ++b) start[b + 1] += start[b];
    std::vector<std::uint64_t> next(start.begin(), start.end() - 1);
    for (std::size_t i = 0; i < order.size(); ++i) order[next[buckets(i)]++] = static_cast<std::uint32_t>(i);
  }
  return nb::make_tuple(to_numpy(std::move(order)), to_numpy(std::move(start)));
}

void bind_rows(nb::module_& m) {
  nb::class_<Profile>(m, "Profile", "What one pass learns of each feature's values.")
      .def(nb::init<std::size_t>(), "n_features"_a)
      .def_static("bytes_of_feature", &Profile::bytes_of_feature, "distinct"_a,
                  "At most, for so many different values.")
      .def(
          "add",
          [](Profile& self, const InRows& x, std::size_t first, std::size_t last) {
            require(x.shape(1) == self.size() && first <= last && last <= self.size(), "other number of features");
            as_floats(
                x, [&](std::size_t, const float* rows, std::size_t n) { self.add(rows, n, self.size(), first, last); });
          },
          "x"_a, "first"_a, "last"_a)
      .def(
          "widths",
          [](const Profile& self) {
            std::vector<int> widths;
            for (std::size_t f = 0; f < self.size(); ++f)
              widths.push_back(self.feature(f).is_wide() ? 4 : self.feature(f).distinct() <= kMissing8 ? 1 : 2);
            return widths;
          },
          "Bytes that each feature takes, if no more values come.")
      .def_prop_ro(
          "bytes",
          [](const Profile& self) {
            std::size_t bytes = 0;
            for (std::size_t f = 0; f < self.size(); ++f) bytes += self.feature(f).bytes();
            return bytes;
          },
          "What it takes now.")
      .def_prop_ro(
          "codec_bytes",
          [](const Profile& self) {
            std::size_t bytes = 0;
            for (std::size_t f = 0; f < self.size(); ++f)
              if (!self.feature(f).is_wide()) bytes += RowCodec::bytes_of_feature(self.feature(f).distinct());
            return bytes;
          },
          "What a codec of these values takes.")
      .def(
          "state",
          [](const Profile& self, std::size_t f) {
            require(f < self.size(), "no such feature");
            const FeatureProfile& feature = self.feature(f);
            return nb::make_tuple(feature.is_wide(), feature.has_missing(), to_numpy(feature.values()));
          },
          "feature"_a, "All that is known of a feature: whether it is wide, misses values, and its values.")
      .def(
          "restore",
          [](Profile& self, std::size_t f, bool wide, bool missing, In1<float> values) {
            require(f < self.size(), "no such feature");
            self.restore(f, wide, missing, span_of(values));
          },
          "feature"_a, "wide"_a, "missing"_a, "values"_a);
  nb::class_<RowCodec>(m, "RowCodec", "Rows as short records of bytes.")
      .def(nb::init<const Profile&>(), "profile"_a)
      .def_prop_ro("record_bytes", &RowCodec::record_bytes)
      .def_prop_ro("bytes", &RowCodec::bytes, "That the codec itself takes.")
      .def_static("bytes_of_feature", &RowCodec::bytes_of_feature, "distinct"_a,
                  "At most, for so many different values.")
      .def_prop_ro("widths",
                   [](const RowCodec& self) {
                     std::vector<int> widths;
                     for (std::size_t f = 0; f < self.n_features(); ++f)
                       widths.push_back(static_cast<int>(self.feature(f).width));
                     return widths;
                   })
      .def(
          "encode",
          [](const RowCodec& self, const InRows& x, In1<std::uint64_t> target_bits, Out2<std::uint8_t> records,
             Out1<std::uint64_t> keys) {
            const std::size_t n = x.shape(0);
            require(x.shape(1) == self.n_features() && target_bits.shape(0) == n && records.shape(0) == n &&
                        records.shape(1) >= self.record_bytes() && keys.shape(0) == n,
                    "arrays of other shapes");
            const std::size_t apart = records.shape(1);
            bool known = true;
            as_floats(x, [&](std::size_t first, const float* rows, std::size_t count) {
              known = known && self.encode(rows, count, self.n_features(), target_bits.data() + first,
                                           records.data() + first * apart, apart, keys.data() + first);
            });
            return known;
          },
          "x"_a, "target_bits"_a, "records"_a, "keys"_a, "Records may be longer than the codec needs.")
      .def(
          "decode",
          [](const RowCodec& self, In2<std::uint8_t> records, In1<std::uint32_t> index, Out2<float> x) {
            require(records.shape(1) == self.record_bytes() && x.shape(0) == index.shape(0) &&
                        x.shape(1) == self.n_features(),
                    "arrays of other shapes");
            nb::gil_scoped_release release;
            for (std::size_t i = 0; i < index.shape(0); ++i) {
              require(index(i) < records.shape(0), "row index out of range");
              self.decode(records.data() + index(i) * self.record_bytes(), x.data() + i * self.n_features());
            }
          },
          "records"_a, "index"_a, "x"_a, "The rows of these records, as they were encoded.")
      .def(
          "knows",
          [](const RowCodec& self, In2<std::uint8_t> records) {
            require(records.shape(1) == self.record_bytes(), "records of another codec");
            nb::gil_scoped_release release;
            return self.knows(records.data(), records.shape(0));
          },
          "records"_a, "Whether these records can have been encoded.");
  m.def(
      "draw_sample",
      [](std::size_t size, std::uint64_t seed, std::uint64_t top, std::size_t n) {
        std::vector<std::uint32_t> rows;
        {
          nb::gil_scoped_release release;
          rows = draw_sample(size, seed, top, n);
        }
        return to_numpy(std::move(rows));
      },
      "size"_a, "seed"_a, "top"_a, "n"_a, "A uniform sample of n rows, ascending.");
  m.def(
      "maybe_sampled",
      [](std::size_t size, std::uint64_t seed, std::size_t n_tops, std::uint64_t first, std::size_t n,
         std::uint64_t of) {
        std::vector<std::uint32_t> rows;
        {
          nb::gil_scoped_release release;
          rows = maybe_sampled(size, seed, n_tops, first, n, of);
        }
        return to_numpy(std::move(rows));
      },
      "size"_a, "seed"_a, "n_tops"_a, "first"_a, "n"_a, "of"_a,
      "Those of n rows from `first` on that may be in the sample of a top tree, if there are `of` rows or more.");
  nb::class_<Rows>(m, "Rows", "All rows of the training data as records.")
      .def(
          "__init__",
          [](Rows* self, In2<std::uint8_t> records, In1<std::uint64_t> keys, In1<double> targets,
             std::optional<In1<double>> weights,
             double scale) { new (self) Rows{records, keys, targets, weights, scale}; },
          "records"_a, "keys"_a, "targets"_a, "weights"_a.none(), "scale"_a);
  nb::class_<Bucket>(m, "Bucket", "The rows of a bucket, ready to grow on.")
      .def_ro("rows", &Bucket::rows)
      .def(
          "targets",
          [](const Bucket& self, double scale) {
            std::vector<double> targets(self.classes.begin(), self.classes.end());
            for (const double value : self.values) targets.push_back(value * scale);
            return to_numpy(std::move(targets));
          },
          "scale"_a, "Class numbers, or values as they were before they were divided by `scale`.");
  m.def("make_bucket", &bucket_of, "codec"_a, "rows"_a, "index"_a.none(), "classification"_a, "for_bootstrap"_a = true,
        nb::keep_alive<0, 1>());  // a bucket uses the codec's values
  m.def("group_by_bucket", &group_by_bucket, "buckets"_a, "n_buckets"_a);
}

void bind_forest(nb::module_& m) {
  m.def(
      "route",
      [](In1<std::uint64_t> nodes, const InRows& x) {
        require(nodes.shape(0) > 0, "a top tree without nodes");
        const NodeFormat format(static_cast<std::uint32_t>(x.shape(1)));
        std::vector<std::uint32_t> buckets(x.shape(0));
        as_floats(x, [&](std::size_t first, const float* rows, std::size_t n) {
          route(format, nodes.data(), {rows, x.shape(1), nullptr, n, !are_bytes(x)}, buckets.data() + first);
        });
        return to_numpy(std::move(buckets));
      },
      "nodes"_a, "x"_a);
  m.def(
      "depths_of_buckets",
      [](In1<std::uint64_t> nodes, std::uint32_t n_features) {
        require(n_features > 0 && n_features <= kMaxFeatures, "number of features");
        return to_numpy(depths_of_buckets(span_of(nodes), n_features));
      },
      "nodes"_a, "n_features"_a, "The depth of each bucket of a top tree; nothing if these nodes are none.");
  m.def(
      "check_bottom_tree",
      [](In1<std::uint64_t> nodes, std::uint32_t n_features, std::uint32_t n_classes, std::uint64_t table_rows) {
        require(n_features > 0 && n_features <= kMaxFeatures, "number of features");
        nb::gil_scoped_release release;
        return check_bottom_tree(span_of(nodes), n_features, n_classes, table_rows);
      },
      "nodes"_a, "n_features"_a, "n_classes"_a, "table_rows"_a, "Whether nothing in a bottom tree leads outside.");
  nb::exception<DamagedTree>(m, "DamagedTreeError", PyExc_ValueError);
  nb::exception<LostPages>(m, "LostPagesError", PyExc_ValueError);
  nb::exception<ChangingFile>(m, "ChangingFileError", PyExc_ValueError);
  nb::class_<OwnedForest>(m, "Forest", "A forest in flat arrays, whose trees are checked when they are first used.")
      .def(
          "__init__",
          [](OwnedForest* self, std::uint32_t n_features, std::uint32_t n_classes, In1<std::uint64_t> top_nodes,
             In1<std::uint64_t> top_start, In1<std::uint64_t> bucket_start, In1<std::uint64_t> trees_of_top,
             In1<std::uint64_t> bottom_start, In1<std::uint64_t> nodes, In1<std::uint64_t> node_start,
             In1<std::uint64_t> table_start, In1<float> table, In1<std::uint32_t> tree_crc, nb::list files) {
            const Forest forest{n_features,
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
            const std::string wrong = check_frame(forest);
            if (!wrong.empty()) throw nb::value_error(wrong.c_str());
            new (self) OwnedForest{top_nodes,  top_start,   bucket_start, trees_of_top, bottom_start, nodes,
                                   node_start, table_start, table,        tree_crc,     files,        forest};
            self->checks = std::make_unique<TreeChecks>(forest.tree_crc.size());
            for (nb::handle file : files) self->files.push_back(nb::cast<const MappedFile*>(file));
            self->forest.checks = self->checks.get();
            self->forest.files = self->files;
          },
          "n_features"_a, "n_classes"_a, "top_nodes"_a, "top_start"_a, "bucket_start"_a, "trees_of_top"_a,
          "bottom_start"_a, "nodes"_a, "node_start"_a, "table_start"_a, "table"_a, "tree_crc"_a, "files"_a)
      .def(
          "check",
          [](const OwnedForest& self) {
            nb::gil_scoped_release release;
            if (!self.files.empty()) self.checks->forget(0, self.forest.tree_crc.size());
            self.check(0, self.forest.tree_crc.size());
          },
          "Check all trees: of a mapped forest again, else those that were not used yet.")
      .def(
          "prediction_bytes",
          [](const OwnedForest& self, bool evict) {
            const PredictionBytes bytes = prediction_bytes(self.forest, evict);
            return nb::make_tuple(bytes.row, bytes.thread);
          },
          "evict"_a, "What a thread takes while it predicts: for each row, and beside that.")
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

}  // namespace
}  // namespace oldgrowth

NB_MODULE(_core, m) {
  m.doc() = "The C++ core of oldgrowth.";
  // Objects that a traceback still holds when Python ends are not a person's concern.
  nanobind::set_leak_warnings(false);
  oldgrowth::bind_values(m);
  oldgrowth::bind_rows(m);
  oldgrowth::bind_growing(m);
  oldgrowth::bind_forest(m);
  oldgrowth::bind_files(m);
}
