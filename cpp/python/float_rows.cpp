// Rows of float32 made from columns, and checked.
#include "rows/float_rows.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/crc32c.hpp"
#include "python/arrays.hpp"

namespace oldgrowth {

using namespace nb::literals;

namespace {

using OutRows = nb::ndarray<nb::ndim<2>, nb::c_contig, nb::device::cpu>;  // of float32 or uint8
using AnyColumn = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
bool is_of(const AnyColumn& column, ColumnValues& values) {
  if (column.dtype() != nb::dtype<T>()) return false;
  values = static_cast<const T*>(column.data());
  return true;
}

// Columns of a table that are kept alive while rows are made of them.
class Columns {
 public:
  Columns(std::vector<AnyColumn> columns, std::vector<std::optional<In1<bool>>> missing)
      : columns_(std::move(columns)), missing_(std::move(missing)) {
    require(columns_.size() == missing_.size(), "masks for other columns");
    for (std::size_t f = 0; f < columns_.size(); ++f) {
      const AnyColumn& column = columns_[f];
      require(column.shape(0) == rows() && (!missing_[f] || missing_[f]->shape(0) == rows()),
              "columns of other lengths");
      ColumnValues values;
      require(is_of<std::int8_t>(column, values) || is_of<std::uint8_t>(column, values) ||
                  is_of<std::int16_t>(column, values) || is_of<std::uint16_t>(column, values) ||
                  is_of<std::int32_t>(column, values) || is_of<std::uint32_t>(column, values) ||
                  is_of<std::int64_t>(column, values) || is_of<std::uint64_t>(column, values) ||
                  is_of<float>(column, values) || is_of<double>(column, values),
              "a column of another type");
      views_.push_back({values, missing_[f] ? missing_[f]->data() : nullptr});
    }
  }

  // Whether all values are bytes and none is missing.
  bool all_bytes() const {
    return std::all_of(views_.begin(), views_.end(), [](const Column& column) {
      return column.missing == nullptr && std::holds_alternative<const std::uint8_t*>(column.values);
    });
  }

  void fill(std::size_t start, const OutRows& out) const {
    require(out.shape(1) == views_.size() && start <= rows() && out.shape(0) <= rows() - start,
            "rows of another shape");
    const bool bytes = out.dtype() == nb::dtype<std::uint8_t>();
    require(bytes ? all_bytes() : out.dtype() == nb::dtype<float>(), "rows of another type");
    nb::gil_scoped_release release;
    if (!bytes) return rows_of_columns(views_, start, out.shape(0), static_cast<float*>(out.data()));
    std::vector<const std::uint8_t*> columns;
    for (const Column& column : views_) columns.push_back(std::get<const std::uint8_t*>(column.values));
    rows_of_bytes(columns, start, out.shape(0), static_cast<std::uint8_t*>(out.data()));
  }

 private:
  std::size_t rows() const { return columns_.empty() ? 0 : columns_[0].shape(0); }

  std::vector<AnyColumn> columns_;
  std::vector<std::optional<In1<bool>>> missing_;
  std::vector<Column> views_;
};

}  // namespace

void bind_float_rows(nb::module_& m) {
  nb::class_<Columns>(m, "Columns", "Columns of numbers, each with a mask of its missing values or None.")
      .def(nb::init<std::vector<AnyColumn>, std::vector<std::optional<In1<bool>>>>(), "columns"_a, "missing"_a)
      .def_prop_ro("all_bytes", &Columns::all_bytes, "Whether all values are of type uint8 and none is missing.")
      .def("fill", &Columns::fill, "start"_a, "rows"_a,
           "Make rows of float32, or of uint8 if all values are, from row `start` on.");
  m.def(
      "crc32c_of_rows",
      [](const InRows& x, std::uint32_t crc) {
        as_floats(x, [&](std::size_t, const float* rows, std::size_t n) {
          crc = crc32c(rows, n * x.shape(1) * sizeof *rows, crc);
        });
        return crc;
      },
      "x"_a, "crc"_a, "A checksum of rows as float32, for any input type.");
  m.def(
      "find_non_finite",
      [](const InRows& x) {
        NonFinite found;  // bytes are always finite
        if (!are_bytes(x))
          as_floats(
              x, [&](std::size_t, const float* rows, std::size_t n) { found = find_non_finite(rows, n * x.shape(1)); });
        return std::make_pair(found.infinite, found.missing);
      },
      "x"_a, "The index of the first infinite value, or -1, and whether a value is missing.");
}

}  // namespace oldgrowth
