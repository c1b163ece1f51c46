// Checksums, the heap, the limits of the node format, and the recoding of levels.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "base/crc32c.hpp"
#include "base/heap.hpp"
#include "base/level_map.hpp"
#include "base/level_set.hpp"
#include "base/node.hpp"
#include "python/arrays.hpp"

namespace oldgrowth {

using namespace nb::literals;

void bind_base(nb::module_& m) {
  m.def(
      "crc32c",
      [](In1<std::uint8_t> bytes, std::uint32_t crc) {
        nb::gil_scoped_release release;
        return crc32c(bytes.data(), bytes.shape(0), crc);
      },
      "bytes"_a, "crc"_a = 0, "Extends the checksum `crc` by these bytes.");
  m.def("crc32c_joined", &crc32c_joined, "crc"_a, "next"_a, "size"_a,
        "The checksum of bytes that gave `crc`, followed by `size` bytes that by themselves gave `next`.");
  m.def("release_memory", &release_memory, "Return free memory to the system.");
  m.def("keep_freed_blocks", &keep_freed_blocks, "most_bytes"_a,
        "From now on blocks of up to so many bytes, 1 to 32 MB, stay in the process when they are freed, to be used "
        "again.");
  m.def("share_few_heaps", &share_few_heaps,
        "From now on threads share a few heaps. By default, each thread keeps tens of megabytes in its own.");
  m.def("share_one_heap", &share_one_heap,
        "From now on all threads share one heap: each other one reserves 64 MB of addresses.");
  m.def(
      "max_bucket_rows", [](std::uint32_t n_features) { return NodeFormat(n_features).max_offset() / 2; },
      "n_features"_a, "The maximum number of rows of a bucket: each may become a leaf.");
  m.def(
      "right_shift", [](std::uint32_t n_features) { return NodeFormat(n_features).right_shift(); }, "n_features"_a,
      "The bit at which the offset of the right child starts in a node.");
  nb::class_<LevelMap>(m, "LevelMap", "Puts trees into the codes of other levels.")
      .def(nb::init<std::vector<std::uint32_t>, const std::vector<std::vector<std::uint32_t>>&>(), "levels"_a,
           "codes"_a)
      .def(
          "recoded",
          [](const LevelMap& self, In1<Node> nodes, In1<std::uint16_t> sets) {
            std::vector<Node> recoded(nodes.data(), nodes.data() + nodes.shape(0));
            std::vector<std::uint16_t> words;
            {
              nb::gil_scoped_release release;
              self.recode(recoded, span_of(sets), words);
            }
            return nb::make_tuple(to_numpy(std::move(recoded)), to_numpy(std::move(words)));
          },
          "nodes"_a, "sets"_a, "The nodes of a tree with sets of the new levels, and these sets.");
  m.attr("NO_LEVEL") = kNoLevel;
  m.attr("MAX_FEATURES") = kMaxFeatures;
  m.attr("LEAF_BIT") = kLeafBit;
  m.attr("MIXED_BIT") = kMixedBit;
  m.attr("INLINE_LEVELS") = kInlineLevels;
  m.attr("MAX_LEVELS") = kMaxLevels;
}

}  // namespace oldgrowth
