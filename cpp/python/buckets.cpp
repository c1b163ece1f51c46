// Buckets, and equal rows of them.
#include <nanobind/stl/optional.h>

#include <optional>

#include "grow/bucket.hpp"
#include "grow/copies.hpp"
#include "python/arrays.hpp"

namespace oldgrowth {

using namespace nb::literals;

namespace {

struct Rows {
  In2<std::uint8_t> records;
  In1<std::uint64_t> keys;
  In1<double> targets;
  std::optional<In1<double>> weights;
  double scale;
};

Bucket bucket_of(const RowCodec& codec, const Rows& rows, std::optional<AnyIndex> index, bool classification,
                 bool for_bootstrap) {
  const std::size_t n = rows.records.shape(0);
  require(rows.keys.shape(0) == n && rows.targets.shape(0) == n, "records, keys and targets differ in length");
  require(!rows.weights || rows.weights->shape(0) == n, "records and weights differ in length");
  require(rows.records.shape(1) == codec.record_bytes(), "records of another codec");
  const RowIndex wanted = index ? row_index(*index) : RowIndex();
  for (std::size_t i = 0; index && i < index->shape(0); ++i) require(wanted[i] < n, "row index out of range");
  const RowSource source{rows.records.data(), rows.keys.data(), rows.targets.data(),
                         rows.weights ? rows.weights->data() : nullptr, rows.scale};
  nb::gil_scoped_release release;
  return make_bucket(codec, source, wanted, index ? index->shape(0) : n, classification, for_bootstrap);
}

}  // namespace

void bind_buckets(nb::module_& m) {
  nb::class_<Rows>(m, "Rows", "All rows of the training data as records.")
      .def(
          "__init__",
          [](Rows* self, In2<std::uint8_t> records, In1<std::uint64_t> keys, In1<double> targets,
             std::optional<In1<double>> weights,
             double scale) { new (self) Rows{records, keys, targets, weights, scale}; },
          "records"_a, "keys"_a, "targets"_a, "weights"_a.none(), "scale"_a);
  nb::class_<Bucket>(m, "Bucket", "The rows of a bucket, prepared for growing.")
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
  nb::class_<CopyCounter>(m, "CopyCounter", "How many copies of each row came before it.")
      .def(nb::init<>())
      .def_prop_ro("keys", &CopyCounter::keys)
      .def_static("bytes", &CopyCounter::bytes, "keys"_a, "Bytes for this many different rows.")
      .def_static("count_bytes", &CopyCounter::count_bytes, "rows"_a, "weighted"_a,
                  "Bytes of a count if there are this many rows.")
      .def(
          "count",
          [](CopyCounter& self, In1<std::uint64_t> keys, std::optional<In1<double>> weights) {
            require(!weights || weights->shape(0) == keys.shape(0), "keys and weights differ in length");
            std::vector<std::uint64_t> copies(keys.shape(0));
            {
              nb::gil_scoped_release release;
              self.count(keys.data(), weights ? weights->data() : nullptr, copies.size(), copies.data());
            }
            return to_numpy(std::move(copies));
          },
          "keys"_a, "weights"_a.none());
}

}  // namespace oldgrowth
