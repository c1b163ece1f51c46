// What files need of the core: checksums and the blocks of the disk store.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <system_error>

#include "base/crc32c.hpp"
#include "predict/mapped_file.hpp"
#include "python/bindings.hpp"
#include "rows/bucket_file.hpp"

namespace oldgrowth {

using namespace nb::literals;

namespace {

// glibc's own threshold grows up to 32 MB, and with it what each thread's heap keeps.
constexpr int kMappedBytes = 1 << 20;
constexpr int kMostArenas = 4;

// The blocks of buckets first..last, one after the other at `out`; how many bytes they take.
std::size_t write_blocks(const RowLayout& layout, In2<std::uint8_t> rows, In1<std::uint32_t> order,
                         In1<std::uint64_t> start, In1<std::uint64_t> owners, std::size_t first, std::size_t last,
                         std::uint64_t sequence, Out1<std::uint8_t> out) {
  require(rows.shape(1) == layout.row_bytes(), "rows of another layout");
  require(first <= last && last + 1 <= start.shape(0) && last <= owners.shape(0), "buckets out of range");
  require(start(last) <= order.shape(0), "bucket ends out of range");
  for (std::uint64_t i = start(first); i < start(last); ++i) require(order(i) < rows.shape(0), "row out of range");
  nb::gil_scoped_release release;
  std::size_t used = 0;
  for (std::size_t b = first; b < last; ++b) {
    require(start(b) <= start(b + 1), "bucket ends out of order");
    const std::size_t n = start(b + 1) - start(b);
    if (n == 0) continue;
    require(used + sizeof(BlockHeader) + n * layout.row_bytes() <= out.shape(0), "too small a buffer");
    used += write_block(layout, rows.data(), order.data() + start(b), n, owners(b), sequence, out.data() + used);
  }
  return used;
}

// An empty string, or what is wrong with the block.
std::string read_block(const RowLayout& layout, In1<std::uint8_t> bytes, std::uint64_t owner, std::size_t n,
                       Out2<std::uint8_t> records, Out1<std::uint64_t> keys, Out1<double> targets,
                       std::optional<Out1<double>> weights, std::optional<Out1<std::uint32_t>> numbers) {
  require(records.shape(0) == n && records.shape(1) == layout.record_bytes && keys.shape(0) == n &&
              targets.shape(0) == n && (!weights || weights->shape(0) == n) && (!numbers || numbers->shape(0) == n),
          "arrays of other shapes");
  require((!weights || layout.weighted) && (!numbers || layout.numbered), "a field that the layout does not have");
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

void bind_blocks(nb::module_& m) {
  nb::class_<RowLayout>(m, "RowLayout", "How a row lies in a block on disk.")
      .def(
          "__init__",
          [](RowLayout* self, std::size_t record_bytes, std::size_t target_bytes, bool weighted, bool numbered) {
            require(target_bytes == 1 || target_bytes == 2 || target_bytes == 4 || target_bytes == 8, "target_bytes");
            new (self) RowLayout{record_bytes, target_bytes, weighted, numbered};
          },
          "record_bytes"_a, "target_bytes"_a, "weighted"_a, "numbered"_a)
      .def_prop_ro("row_bytes", &RowLayout::row_bytes)
      .def_ro("record_bytes", &RowLayout::record_bytes)
      .def_ro("weighted", &RowLayout::weighted)
      .def_ro("numbered", &RowLayout::numbered)
      .def(
          "pack",
          [](const RowLayout& self, In1<std::uint64_t> keys, In1<double> targets, std::optional<In1<double>> weights,
             std::uint32_t first_number, Out2<std::uint8_t> rows) {
            const std::size_t n = rows.shape(0);
            require(rows.shape(1) == self.row_bytes() && keys.shape(0) == n && targets.shape(0) == n &&
                        weights.has_value() == self.weighted && (!weights || weights->shape(0) == n),
                    "arrays of other shapes");
            nb::gil_scoped_release release;
            pack_fields(self, n, keys.data(), targets.data(), weights ? weights->data() : nullptr, first_number,
                        rows.data());
          },
          "keys"_a, "targets"_a, "weights"_a.none(), "first_number"_a, "rows"_a,
          "Adds to each record what else belongs to its row.")
      .def("write_blocks", &write_blocks, "rows"_a, "order"_a, "start"_a, "owners"_a, "first"_a, "last"_a, "sequence"_a,
           "out"_a)
      .def("read_block", &read_block, "bytes"_a, "owner"_a, "n"_a, "records"_a, "keys"_a, "targets"_a,
           "weights"_a.none(), "numbers"_a.none());
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

void bind_mapped_file(nb::module_& m) {
  nb::class_<MappedFile>(m, "MappedFile", "A file that is mapped to be read, and may change or end meanwhile.")
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
      .def_prop_ro("lost", &MappedFile::lost, "Whether a page could not be read any more.")
      .def_prop_ro(
          "stamp",
          [](const MappedFile& self) {
            const FileStamp stamp = self.stamp();
            return nb::make_tuple(stamp.size, stamp.modified, stamp.changed);
          },
          "Size and times of the file now.")
      .def_prop_ro(
          "bytes",
          [](nb::handle self) {
            const auto& file = nb::cast<const MappedFile&>(self);
            return nb::ndarray<nb::numpy, const std::uint8_t, nb::ndim<1>>(file.data(), {file.size()}, self);
          },
          "All of the file, as it is now.")
      .def(
          "evict",
          [](const MappedFile& self, nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu> part) {
            self.evict(part.data(), part.nbytes());
          },
          "part"_a, "Free the memory of an array of these bytes; of any other array nothing.");
  m.def("guard_mappings", &guard_mappings,
        "Make sure that reading a file that was truncated does not end the process.");
}

}  // namespace

void bind_files(nb::module_& m) {
  bind_blocks(m);
  bind_mapped_file(m);
  m.def(
      "crc32c",
      [](In1<std::uint8_t> bytes, std::uint32_t crc) {
        nb::gil_scoped_release release;
        return crc32c(bytes.data(), bytes.shape(0), crc);
      },
      "bytes"_a, "crc"_a = 0, "The checksum of these bytes after those that gave `crc`.");
  m.def(
      "release_memory",
      [] {
#if defined(__GLIBC__)
        malloc_trim(0);
#endif
      },
      "Give memory that is free back to the system.");
  m.def(
      "return_memory_when_freed",
      [] {
#if defined(__GLIBC__)
        mallopt(M_MMAP_THRESHOLD, kMappedBytes);
        mallopt(M_TRIM_THRESHOLD, kMappedBytes);
        mallopt(M_ARENA_MAX, kMostArenas);
#endif
      },
      "From now on large blocks go back to the system at once when they are freed, and threads share a few heaps for "
      "small ones; else each thread keeps tens of megabytes for itself.");
}

}  // namespace oldgrowth
