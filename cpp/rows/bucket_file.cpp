#include "rows/bucket_file.hpp"

#include <bit>
#include <cstring>
#include <stdexcept>

#include "base/crc32c.hpp"

namespace oldgrowth {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian");

template <class T>
void put(std::uint8_t* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

template <class T>
T get(const std::uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

std::uint32_t checksum(const std::uint8_t* block, std::size_t size) {
  constexpr std::size_t kCovered = offsetof(BlockHeader, owner);
  return crc32c(block + kCovered, size - kCovered);
}

}  // namespace

void pack_fields(const RowLayout& layout, const OtherFields& fields, std::uint8_t* rows) {
  const auto [n, keys, targets, weights, first_number] = fields;
  for (std::size_t i = 0; i < n; ++i, rows += layout.row_bytes()) {
    if (layout.record_bytes > 0) put(rows + layout.key_at(), keys[i]);
    if (layout.target_bytes == 8) {
      put(rows + layout.target_at(), targets[i]);
    } else {
      const auto code = static_cast<std::uint32_t>(targets[i]);
      std::memcpy(rows + layout.target_at(), &code, layout.target_bytes);
    }
    if (layout.weighted) put(rows + layout.weight_at(), weights[i]);
    if (layout.number_bytes == 4) put(rows + layout.number_at(), static_cast<std::uint32_t>(first_number + i));
    if (layout.number_bytes == 8) put(rows + layout.number_at(), first_number + i);
  }
}

std::size_t write_block(const RowLayout& layout, const std::uint8_t* rows, std::span<const std::uint32_t> order,
                        std::uint64_t owner, std::uint64_t sequence, std::uint8_t* out) {
  const std::size_t width = layout.row_bytes();
  const auto n_rows = static_cast<std::uint32_t>(order.size());
  BlockHeader header{kBlockMagic, 0, owner, sequence, n_rows, static_cast<std::uint32_t>(width)};
  std::uint8_t* at = out + sizeof header;
  for (const std::uint32_t place : order) {
    std::memcpy(at, rows + place * width, width);
    at += width;
  }
  const auto size = static_cast<std::size_t>(at - out);
  std::memcpy(out, &header, sizeof header);
  header.crc = checksum(out, size);
  std::memcpy(out, &header, sizeof header);
  return size;
}

std::size_t write_blocks(const RowLayout& layout, const GroupedRows& grouped, std::uint64_t sequence,
                         std::span<std::uint8_t> out) {
  const auto require = [](bool ok, const char* what) {
    if (!ok) throw std::invalid_argument(what);
  };
  const auto& [rows, order, start, owners] = grouped;
  const std::size_t width = layout.row_bytes(), n_rows = rows.size() / width;
  require(start.size() == owners.size() + 1, "each bucket needs an owner");
  std::size_t used = 0;
  for (std::size_t b = 0; b < owners.size(); ++b) {
    require(start[b] <= start[b + 1] && start[b + 1] <= order.size(), "bucket ends out of range");
    const auto places = order.subspan(start[b], start[b + 1] - start[b]);
    if (places.empty()) continue;
    for (const std::uint32_t place : places) require(place < n_rows, "row out of range");
    require(used + sizeof(BlockHeader) + places.size() * width <= out.size(), "the buffer is too small");
    used += write_block(layout, rows.data(), places, owners[b], sequence, out.data() + used);
  }
  return used;
}

BlockError check_block(const std::uint8_t* bytes, std::size_t size, std::uint64_t owner, std::size_t rows,
                       std::size_t row_bytes) {
  if (size != sizeof(BlockHeader) + rows * row_bytes) return BlockError::header;
  const auto header = get<BlockHeader>(bytes);
  if (header.magic != kBlockMagic || header.owner != owner || header.rows != rows || header.row_bytes != row_bytes)
    return BlockError::header;
  return header.crc == checksum(bytes, size) ? BlockError::none : BlockError::checksum;
}

void unpack_rows(const RowLayout& layout, const std::uint8_t* rows, std::size_t n, const RowFields& out) {
  const std::size_t width = layout.row_bytes();
  for (std::size_t i = 0; i < n; ++i, rows += width) {
    if (layout.record_bytes > 0) {
      std::memcpy(out.records + i * layout.record_bytes, rows, layout.record_bytes);
      out.keys[i] = get<std::uint64_t>(rows + layout.key_at());
    }
    if (layout.target_bytes == 8) {
      out.targets[i] = get<double>(rows + layout.target_at());
    } else {
      std::uint32_t code = 0;
      std::memcpy(&code, rows + layout.target_at(), layout.target_bytes);
      out.targets[i] = code;
    }
    if (out.weights) out.weights[i] = get<double>(rows + layout.weight_at());
    if (out.numbers)
      out.numbers[i] = layout.number_bytes == 4 ? get<std::uint32_t>(rows + layout.number_at())
                                                : get<std::uint64_t>(rows + layout.number_at());
  }
}

}  // namespace oldgrowth
