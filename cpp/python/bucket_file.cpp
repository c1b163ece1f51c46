// Rows of buckets on disk.
#include "rows/bucket_file.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstring>
#include <optional>
#include <string>

#include "python/arrays.hpp"

namespace oldgrowth {

using namespace nb::literals;

namespace {

// The blocks of buckets first..last, one after the other at `out`; how many bytes they take.
std::size_t write(const RowLayout& layout, In2<std::uint8_t> rows, In1<std::uint32_t> order, In1<std::uint64_t> start,
                  In1<std::uint64_t> owners, std::size_t first, std::size_t last, std::uint64_t sequence,
                  Out1<std::uint8_t> out) {
  require(rows.shape(1) == layout.row_bytes(), "rows of another layout");
  require(first <= last && last + 1 <= start.shape(0) && last <= owners.shape(0), "buckets out of range");
  const GroupedRows grouped{{rows.data(), rows.size()},
                            span_of(order),
                            span_of(start).subspan(first, last - first + 1),
                            span_of(owners).subspan(first, last - first)};
  nb::gil_scoped_release release;
  return write_blocks(layout, grouped, sequence, {out.data(), out.shape(0)});
}

// An empty string, or what is wrong with the block.
std::string read_block(const RowLayout& layout, In1<std::uint8_t> bytes, std::uint64_t owner, std::size_t n,
                       Out2<std::uint8_t> records, Out1<std::uint64_t> keys, Out1<double> targets,
                       std::optional<Out1<double>> weights, std::optional<Out1<std::uint64_t>> numbers) {
  require(records.shape(0) == n && records.shape(1) == layout.record_bytes && keys.shape(0) == n &&
              targets.shape(0) == n && (!weights || weights->shape(0) == n) && (!numbers || numbers->shape(0) == n),
          "arrays of other shapes");
  require((!weights || layout.weighted) && (!numbers || layout.number_bytes > 0),
          "a field that the layout does not have");
  nb::gil_scoped_release release;
  switch (check_block(bytes.data(), bytes.shape(0), owner, n, layout.row_bytes())) {
    case BlockError::header:
      return "its header is not the one written";
    case BlockError::checksum:
      return "its checksum does not match";
    case BlockError::none:
      break;
  }
  unpack_rows(layout, bytes.data() + sizeof(BlockHeader), n,
              {records.data(), keys.data(), targets.data(), weights ? weights->data() : nullptr,
               numbers ? numbers->data() : nullptr});
  return "";
}

}  // namespace

void bind_bucket_file(nb::module_& m) {
  nb::class_<RowLayout>(m, "RowLayout", "The layout of a row in a block on disk.")
      .def(
          "__init__",
          [](RowLayout* self, std::size_t record_bytes, std::size_t target_bytes, bool weighted,
             std::size_t number_bytes) {
            require(target_bytes == 1 || target_bytes == 2 || target_bytes == 4 || target_bytes == 8, "target_bytes");
            require(number_bytes == 0 || number_bytes == 4 || number_bytes == 8, "number_bytes");
            new (self) RowLayout{record_bytes, target_bytes, weighted, number_bytes};
          },
          "record_bytes"_a, "target_bytes"_a, "weighted"_a, "number_bytes"_a)
      .def_prop_ro("row_bytes", &RowLayout::row_bytes)
      .def_ro("record_bytes", &RowLayout::record_bytes)
      .def_ro("target_bytes", &RowLayout::target_bytes)
      .def_ro("weighted", &RowLayout::weighted)
      .def_prop_ro("numbered", [](const RowLayout& self) { return self.number_bytes > 0; })
      .def(
          "pack",
          [](const RowLayout& self, std::optional<In1<std::uint64_t>> keys, In1<double> targets,
             std::optional<In1<double>> weights, std::uint64_t first_number, Out2<std::uint8_t> rows) {
            const std::size_t n = rows.shape(0);
            require(rows.shape(1) == self.row_bytes() && keys.has_value() == self.record_bytes > 0 &&
                        (!keys || keys->shape(0) == n) && targets.shape(0) == n &&
                        weights.has_value() == self.weighted && (!weights || weights->shape(0) == n),
                    "arrays of other shapes");
            nb::gil_scoped_release release;
            pack_fields(
                self,
                {n, keys ? keys->data() : nullptr, targets.data(), weights ? weights->data() : nullptr, first_number},
                rows.data());
          },
          "keys"_a.none(), "targets"_a, "weights"_a.none(), "first_number"_a, "rows"_a,
          "Adds the other fields of a row to each record.")
      .def("write_blocks", &write, "rows"_a, "order"_a, "start"_a, "owners"_a, "first"_a, "last"_a, "sequence"_a,
           "out"_a)
      .def("read_block", &read_block, "bytes"_a, "owner"_a, "n"_a, "records"_a, "keys"_a, "targets"_a,
           "weights"_a.none(), "numbers"_a.none());
  m.def("row_number_bytes", &row_number_bytes, "rows"_a, "Bytes of a row number if there are this many rows.");
  m.attr("BLOCK_HEADER_BYTES") = sizeof(BlockHeader);
  m.def(
      "block_header",
      [](In1<std::uint8_t> bytes) -> nb::object {
        if (bytes.shape(0) < sizeof(BlockHeader)) return nb::none();
        BlockHeader header;
        std::memcpy(&header, bytes.data(), sizeof header);
        if (header.magic != kBlockMagic) return nb::none();
        return nb::make_tuple(header.owner, header.sequence, header.rows, header.row_bytes);
      },
      "bytes"_a, "Owner, sequence, rows and bytes of a row, or None if no block begins here.");
}

}  // namespace oldgrowth
