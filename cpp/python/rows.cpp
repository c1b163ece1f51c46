// Rows: profiles of their values, codecs, samples, and groups of them.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>
#include <vector>

#include "python/arrays.hpp"
#include "rows/profile.hpp"
#include "rows/row_codec.hpp"
#include "rows/sample.hpp"

namespace oldgrowth {

using namespace nb::literals;

namespace {

// Calls draw() without the GIL.
template <class Draw>
Array1<std::uint64_t> drawn_rows(const Draw& draw) {
  std::vector<std::uint64_t> rows;
  {
    nb::gil_scoped_release release;
    rows = draw();
  }
  return to_numpy(std::move(rows));
}

void bind_sample(nb::module_& m) {
  m.def(
      "draw_sample",
      [](std::size_t size, std::uint64_t seed, std::uint64_t top, std::uint64_t n) {
        return drawn_rows([&] { return draw_sample(size, seed, top, n); });
      },
      "size"_a, "seed"_a, "top"_a, "n"_a, "A uniform sample of n rows, ascending.");
  m.def(
      "candidate_rows",
      [](std::size_t size, std::uint64_t seed, std::pair<std::uint64_t, std::size_t> tops, std::uint64_t first,
         std::size_t n, std::uint64_t of) {
        const TopNumbers numbers{tops.first, tops.second};
        return drawn_rows([&] { return candidate_rows(size, seed, numbers, first, n, of); });
      },
      "size"_a, "seed"_a, "tops"_a, "first"_a, "n"_a, "of"_a,
      "Those of n rows from `first` on that may be in the sample of any of some top trees, given by the number of the "
      "first and how many they are, if there are `of` rows or more.");
  m.def(
      "draw_from_candidates",
      [](std::size_t size, std::uint64_t seed, std::uint64_t top, std::uint64_t n, In1<std::uint64_t> candidates) {
        return drawn_rows([&] { return draw_from_candidates(size, seed, top, n, span_of(candidates)); });
      },
      "size"_a, "seed"_a, "top"_a, "n"_a, "candidates"_a,
      "The sample that `draw_sample` draws, from the candidates among the n rows.");
  m.def(
      "candidates_of_top",
      [](std::size_t size, std::uint64_t seed, std::uint64_t top, std::uint64_t n, In1<std::uint64_t> candidates) {
        return drawn_rows([&] { return candidates_of_top(size, seed, top, n, span_of(candidates)); });
      },
      "size"_a, "seed"_a, "top"_a, "n"_a, "candidates"_a,
      "Those of the candidates that may be in the sample of this top tree from n rows.");
}

nb::tuple state_of(const FeatureProfile& feature) {
  return nb::make_tuple(feature.is_wide(), feature.has_missing(), to_numpy(feature.values()));
}

// The state of each feature, for pickling.
using ProfileState = std::vector<std::tuple<bool, bool, In1<float>>>;

nb::list state_of(const Profile& profile) {
  nb::list state;
  for (std::size_t f = 0; f < profile.size(); ++f) state.append(state_of(profile.feature(f)));
  return state;
}

Profile profile_of(const ProfileState& state) {
  Profile profile(state.size());
  for (std::size_t f = 0; f < state.size(); ++f) {
    const auto& [wide, missing, values] = state[f];
    profile.restore(f, wide, missing, span_of(values));
  }
  return profile;
}

template <class Place>
nb::tuple grouped_as(In1<std::uint32_t> buckets, std::size_t n_buckets) {
  std::vector<Place> order;
  std::vector<std::uint64_t> start;
  {
    nb::gil_scoped_release release;
    start = group_by_bucket(span_of(buckets), n_buckets, order);
  }
  return nb::make_tuple(to_numpy(std::move(order)), to_numpy(std::move(start)));
}

nb::tuple grouped(In1<std::uint32_t> buckets, std::size_t n_buckets) {
  return fits_32_bits(buckets.shape(0)) ? grouped_as<std::uint32_t>(buckets, n_buckets)
                                        : grouped_as<std::uint64_t>(buckets, n_buckets);
}

}  // namespace

void bind_rows(nb::module_& m) {
  nb::class_<Profile>(m, "Profile", "What one pass learns about the values of each feature.")
      .def(nb::init<std::size_t>(), "n_features"_a)
      .def_static("bytes_of_feature", &Profile::bytes_of_feature, "distinct"_a,
                  "Maximum bytes for this many different values.")
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
              widths.push_back(static_cast<int>(RowCodec::width_of(self.feature(f))));
            return widths;
          },
          "Bytes of each feature in a record, for the values seen so far.")
      .def_prop_ro("bytes", &Profile::bytes, "Bytes in use now.")
      .def_prop_ro("codec_bytes", &RowCodec::bytes_for, "Maximum bytes of a codec of these values.")
      .def(
          "state",
          [](const Profile& self, std::size_t f) {
            require(f < self.size(), "no such feature");
            return state_of(self.feature(f));
          },
          "feature"_a, "Whether a feature is wide, whether values are missing, and its values.")
      .def(
          "restore",
          [](Profile& self, std::size_t f, bool wide, bool missing, In1<float> values) {
            require(f < self.size(), "no such feature");
            self.restore(f, wide, missing, span_of(values));
          },
          "feature"_a, "wide"_a, "missing"_a, "values"_a)
      .def(
          "merge",
          [](Profile& self, const Profile& other) {
            require(self.size() == other.size(), "other number of features");
            nb::gil_scoped_release release;
            self.merge(other);
          },
          "other"_a, "Merge the profile of other rows.")
      .def("__getstate__", [](const Profile& self) { return state_of(self); })
      .def("__setstate__", [](Profile& self, const ProfileState& state) { new (&self) Profile(profile_of(state)); });
  nb::class_<RowCodec>(m, "RowCodec", "Rows as short records of bytes.")
      .def(nb::init<const Profile&>(), "profile"_a)
      .def_prop_ro("record_bytes", &RowCodec::record_bytes)
      .def_prop_ro("bytes", &RowCodec::bytes, "Bytes of the codec itself.")
      .def_static("bytes_of_feature", &RowCodec::bytes_of_feature, "distinct"_a,
                  "Maximum bytes for this many different values.")
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
              known = known && self.encode({rows, count, self.n_features()}, target_bits.data() + first,
                                           {records.data() + first * apart, apart}, keys.data() + first);
            });
            return known;
          },
          "x"_a, "target_bits"_a, "records"_a, "keys"_a, "Records may be longer than the codec needs.")
      .def(
          "decode",
          [](const RowCodec& self, In2<std::uint8_t> records, const AnyIndex& index, Out2<float> x) {
            require(records.shape(1) == self.record_bytes() && x.shape(0) == index.shape(0) &&
                        x.shape(1) == self.n_features(),
                    "arrays of other shapes");
            const RowIndex rows = row_index(index);
            nb::gil_scoped_release release;
            for (std::size_t i = 0; i < index.shape(0); ++i) {
              require(rows[i] < records.shape(0), "row index out of range");
              self.decode(records.data() + rows[i] * self.record_bytes(), x.data() + i * self.n_features());
            }
          },
          "records"_a, "index"_a, "x"_a, "Decode the rows of these records.")
      .def(
          "wrote",
          [](const RowCodec& self, In2<std::uint8_t> records, In1<std::uint64_t> target_bits, In1<std::uint64_t> keys) {
            const std::size_t n = records.shape(0);
            require(records.shape(1) == self.record_bytes() && target_bits.shape(0) == n && keys.shape(0) == n,
                    "arrays of other shapes");
            nb::gil_scoped_release release;
            return self.knows(records.data(), n) && self.has_keys(records.data(), n, target_bits.data(), keys.data());
          },
          "records"_a, "target_bits"_a, "keys"_a, "Whether these records are valid, with these keys.")
      .def_prop_ro("checksum", &RowCodec::checksum, "Of all values and widths.")
      .def("__getstate__", [](const RowCodec& self) { return state_of(self.profile()); })
      .def("__setstate__", [](RowCodec& self, const ProfileState& state) { new (&self) RowCodec(profile_of(state)); });
  bind_sample(m);
  m.def("group_by_bucket", &grouped, "buckets"_a, "n_buckets"_a,
        "The places of rows in the order of their buckets, and the start of each bucket.");
}

}  // namespace oldgrowth
