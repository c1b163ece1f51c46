// CRC-32C (Castagnoli), the checksum of every block and section that is written to a file.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oldgrowth {

// The checksum of `size` more bytes after those that gave `crc`; 0 to begin with.
std::uint32_t crc32c(const void* bytes, std::size_t size, std::uint32_t crc = 0);

// The same by tables alone, for machines without the instruction.
std::uint32_t crc32c_portable(const void* bytes, std::size_t size, std::uint32_t crc = 0);

}  // namespace oldgrowth
