// Values on their way in: columns made into rows, rows looked over.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "float_rows.hpp"

namespace oldgrowth {

using namespace nb::literals;

namespace {

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

  void fill(std::size_t start, Out2<float> rows_out) const {
    require(rows_out.shape(1) == views_.size() && start <= rows() && rows_out.shape(0) <= rows() - start,
            "rows of another shape");
    nb::gil_scoped_release release;
    rows_of_columns(views_, start, rows_out.shape(0), rows_out.data());
  }

 private:
  std::size_t rows() const { return columns_.empty() ? 0 : columns_[0].shape(0); }

  std::vector<AnyColumn> columns_;
  std::vector<std::optional<In1<bool>>> missing_;
  std::vector<Column> views_;
};

}  // namespace

void bind_values(nb::module_& m) {
  nb::class_<Columns>(m, "Columns", "Columns of numbers, each with a mask of its missing values or None.")
      .def(nb::init<std::vector<AnyColumn>, std::vector<std::optional<In1<bool>>>>(), "columns"_a, "missing"_a)
      .def("fill", &Columns::fill, "start"_a, "rows"_a, "Make rows of the columns, from row `start` on.");
  m.def(
      "look_over",
      [](In2<float> x) {
        nb::gil_scoped_release release;
        const Oddities found = look_over(x.data(), x.shape(0) * x.shape(1));
        return std::make_pair(found.infinite, found.missing);
      },
      "x"_a, "The place of the first infinite value, or -1, and whether a value is missing.");
}

}  // namespace oldgrowth
