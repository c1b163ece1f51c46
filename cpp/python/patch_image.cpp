// Images whose pixels are rows.
#include "rows/patch_image.hpp"

#include <nanobind/stl/vector.h>

#include <vector>

#include "python/arrays.hpp"

namespace oldgrowth {

using namespace nb::literals;

namespace {

using InMask = nb::ndarray<const bool, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using InPixels = nb::ndarray<nb::ro, nb::ndim<3>, nb::c_contig, nb::device::cpu>;  // of float32 or uint8

PatchImage::Shape shape_of(std::size_t height, std::size_t width, std::size_t layers, std::size_t patch, bool bytes) {
  return {height, width, layers, patch, bytes};
}

bool fits(const InMask& mask, std::size_t lines, std::size_t width) {
  return mask.shape(0) == lines && mask.shape(1) == width;
}

const std::uint8_t* bytes_of(const InMask& mask) { return reinterpret_cast<const std::uint8_t*>(mask.data()); }

// Lines from `first` on: values by line, pixel and layer, and which pixels have valid ones.
void put_values(PatchImage& image, std::size_t first, const InPixels& values, const InMask& valid) {
  const auto& shape = image.shape();
  const std::size_t lines = values.shape(0), of_line = shape.width * shape.layers;
  require(values.dtype() == (shape.bytes ? nb::dtype<std::uint8_t>() : nb::dtype<float>()), "pixels of another type");
  require(first <= shape.height && lines <= shape.height - first && values.shape(1) == shape.width &&
              values.shape(2) == shape.layers && fits(valid, lines, shape.width),
          "lines of another image");
  nb::gil_scoped_release release;
  for (std::size_t i = 0; i < lines; ++i) {
    const std::uint8_t* mask = bytes_of(valid) + i * shape.width;
    if (shape.bytes)
      image.put_values(first + i, static_cast<const std::uint8_t*>(values.data()) + i * of_line, mask);
    else
      image.put_values(first + i, static_cast<const float*>(values.data()) + i * of_line, mask);
  }
}

void put_rows(PatchImage& image, std::size_t first, const InMask& is_row) {
  const auto& shape = image.shape();
  require(
      first <= shape.height && is_row.shape(0) <= shape.height - first && fits(is_row, is_row.shape(0), shape.width),
      "lines of another image");
  nb::gil_scoped_release release;
  for (std::size_t i = 0; i < is_row.shape(0); ++i) image.put_rows(first + i, bytes_of(is_row) + i * shape.width);
}

}  // namespace

void bind_patch_image(nb::module_& m) {
  nb::class_<PatchImage>(m, "PatchImage", "An image whose pixels are rows, with patches around them as features.")
      .def(
          "__init__",
          [](PatchImage* self, std::size_t height, std::size_t width, std::size_t layers, std::size_t patch, bool bytes,
             std::vector<std::uint32_t> columns) {
            new (self) PatchImage(shape_of(height, width, layers, patch, bytes), std::move(columns));
          },
          "height"_a, "width"_a, "layers"_a, "patch"_a, "bytes"_a, "columns"_a)
      .def_static(
          "bytes_of",
          [](std::size_t height, std::size_t width, std::size_t layers, std::size_t patch, bool bytes) {
            return PatchImage::bytes_of(shape_of(height, width, layers, patch, bytes));
          },
          "height"_a, "width"_a, "layers"_a, "patch"_a, "bytes"_a, "Memory of an image of this shape.")
      .def_prop_ro("n_rows", &PatchImage::n_rows)
      .def("put_values", &put_values, "first"_a, "values"_a, "valid"_a)
      .def("put_rows", &put_rows, "first"_a, "is_row"_a)
      .def("finish", &PatchImage::finish)
      .def(
          "encode",
          [](const PatchImage& self, const RowCodec& codec, In1<std::uint64_t> numbers, In1<std::uint64_t> target_bits,
             Out2<std::uint8_t> records, Out1<std::uint64_t> keys) {
            const std::size_t n = numbers.shape(0);
            require(target_bits.shape(0) == n && records.shape(0) == n && records.shape(1) == codec.record_bytes() &&
                        keys.shape(0) == n,
                    "arrays of other shapes");
            nb::gil_scoped_release release;
            return self.encode(codec, span_of(numbers), target_bits.data(), records.data(), keys.data());
          },
          "codec"_a, "numbers"_a, "target_bits"_a, "records"_a, "keys"_a,
          "The records and keys of the rows of these numbers; False if a value is not known to the codec.");
}

}  // namespace oldgrowth
