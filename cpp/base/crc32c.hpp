// CRC-32C (Castagnoli), the checksum of every block and section that is written to a file.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oldgrowth {

// Extends the checksum `crc`, initially 0, by `size` more bytes.
std::uint32_t crc32c(const void* bytes, std::size_t size, std::uint32_t crc = 0);

// The same with tables only, for machines without the instruction.
std::uint32_t crc32c_portable(const void* bytes, std::size_t size, std::uint32_t crc = 0);

// The checksum of bytes that gave `crc`, followed by `size` bytes that by themselves gave `next`.
std::uint32_t crc32c_joined(std::uint32_t crc, std::uint32_t next, std::uint64_t size);

}  // namespace oldgrowth
