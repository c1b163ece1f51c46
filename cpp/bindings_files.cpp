// What files need of the core: checksums and the blocks of the disk store.
#include "bindings.hpp"
#include "crc32c.hpp"

namespace oldgrowth {

using namespace nb::literals;

void bind_files(nb::module_& m) {
  m.def(
      "crc32c",
      [](In1<std::uint8_t> bytes, std::uint32_t crc) {
        nb::gil_scoped_release release;
        return crc32c(bytes.data(), bytes.shape(0), crc);
      },
      "bytes"_a, "crc"_a = 0, "The checksum of these bytes after those that gave `crc`.");
}

}  // namespace oldgrowth
