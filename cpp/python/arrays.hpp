// Shared by the bindings: array types, and checks of shapes.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "rows/float_rows.hpp"
#include "rows/row_index.hpp"

namespace oldgrowth {

namespace nb = nanobind;

template <class T>
using In1 = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using In2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out1 = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out2 = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Array1 = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

using InRows = nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>;  // of float32 or uint8

inline void require(bool ok, const char* what) {
  if (!ok) throw std::invalid_argument(what);
}

template <class T>
Array1<T> to_numpy(std::vector<T> values) {
  auto* owned = new std::vector<T>(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return Array1<T>(owned->data(), {owned->size()}, owner);
}

template <class T>
std::span<const T> span_of(const In1<T>& array) {
  return {array.data(), array.shape(0)};
}

// Row numbers, of 32 or 64 bits.
using AnyIndex = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

inline RowIndex row_index(const AnyIndex& index) {
  if (index.dtype() == nb::dtype<std::uint32_t>()) return RowIndex(static_cast<const std::uint32_t*>(index.data()));
  require(index.dtype() == nb::dtype<std::uint64_t>(), "row numbers that are neither uint32 nor uint64");
  return RowIndex(static_cast<const std::uint64_t*>(index.data()));
}

inline bool are_bytes(const InRows& x) { return x.dtype() == nb::dtype<std::uint8_t>(); }

// Calls use(first, floats, count) for all rows, without the GIL.
template <class Use>
void as_floats(const InRows& x, Use use) {
  require(are_bytes(x) || x.dtype() == nb::dtype<float>(), "rows that are neither float32 nor uint8");
  nb::gil_scoped_release release;
  if (are_bytes(x))
    as_floats(static_cast<const std::uint8_t*>(x.data()), x.shape(0), x.shape(1), use);
  else
    as_floats(static_cast<const float*>(x.data()), x.shape(0), x.shape(1), use);
}

void bind_base(nb::module_& m);
void bind_float_rows(nb::module_& m);
void bind_rows(nb::module_& m);
void bind_patch_image(nb::module_& m);
void bind_bucket_file(nb::module_& m);
void bind_buckets(nb::module_& m);
void bind_growing(nb::module_& m);
void bind_forest(nb::module_& m);

}  // namespace oldgrowth
