#include "rank_codes.hpp"

#include <algorithm>
#include <cstring>

#include "sort_keys.hpp"

namespace oldgrowth {
namespace {

struct RankScratch {
  std::vector<std::uint64_t> words, other;
};

// Dense ranks of n 32-bit values; value_of(i) gives them. Writes a column of the block and returns the
// distinct values but the missing one, ascending.
template <class Code, class ValueOf>
std::vector<std::uint32_t> rank_column(std::size_t n, const ValueOf& value_of, std::size_t f, Block<Code>& block,
                                       RankScratch& scratch) {
  scratch.words.resize(n);
  scratch.other.resize(n);
  std::uint32_t differing = 0;
  const std::uint32_t first = n == 0 ? 0 : value_of(0);
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t value = value_of(i);
    differing |= value ^ first;
    scratch.words[i] = (static_cast<std::uint64_t>(value) << 32) | i;
  }
  const unsigned low = differing == 0 ? 0 : static_cast<unsigned>(std::countr_zero(differing));
  const unsigned bits = static_cast<unsigned>(std::bit_width(differing)) - (differing == 0 ? 0 : low);
  const std::uint64_t* sorted = radix_sort(scratch.words.data(), scratch.other.data(), n, 32 + low, bits);
  std::vector<std::uint32_t> distinct;
  distinct.reserve(n);
  for (std::size_t i = 0; i < n; ++i) {
    const auto value = static_cast<std::uint32_t>(sorted[i] >> 32);
    const auto row = static_cast<std::uint32_t>(sorted[i]);
    Code code = kMissing<Code>;
    if (value != kMissing32) {
      if (distinct.empty() || distinct.back() != value) distinct.push_back(value);
      code = static_cast<Code>(distinct.size() - 1);
    }
    block.columns[f * n + row] = code;
  }
  return distinct;
}

template <class Code>
void resize(Block<Code>& block, std::size_t rows, std::size_t features) {
  block.rows = rows;
  block.features = features;
  block.columns.resize(rows * features);
  block.codes.resize(rows * features);
  block.values.resize(features);
  block.has_missing.resize(features);
  block.ranked.assign(features, 0);
  block.own.resize(features);
}

template <class Code>
void own_values(Block<Code>& block, std::size_t f, std::vector<float> values) {
  block.ranked[f] = 1;
  block.own[f] = std::move(values);
  block.values[f] = block.own[f].data();
}

// Rows handled together, so that both a row-major and a column-major side stay in the cache.
constexpr std::size_t kTile = 64;

template <class Code, class Stored>
void copy_codes(const std::uint8_t* const* records, std::size_t offset, std::size_t n, Code* out) {
  for (std::size_t i = 0; i < n; ++i) {
    Stored code;
    std::memcpy(&code, records[i] + offset, sizeof code);
    out[i] = code == std::numeric_limits<Stored>::max() ? kMissing<Code> : static_cast<Code>(code);
  }
}

// The codes that need no ranking.
template <class Code>
void copy_narrow(const RowCodec& codec, const std::uint8_t* records, const std::uint32_t* index, Block<Code>& block) {
  const std::uint8_t* bytes[kTile];
  for (std::size_t start = 0; start < block.rows; start += kTile) {
    const std::size_t count = std::min(kTile, block.rows - start);
    for (std::size_t i = 0; i < count; ++i)
      bytes[i] = records + (index ? index[start + i] : start + i) * codec.record_bytes();
    for (std::size_t f = 0; f < block.features; ++f) {
      const FeatureCodec& feature = codec.feature(f);
      if (feature.width == Width::four) continue;
      Code* out = block.columns.data() + f * block.rows + start;
      if (feature.width == Width::one)
        copy_codes<Code, std::uint8_t>(bytes, feature.offset, count, out);
      else
        copy_codes<Code, std::uint16_t>(bytes, feature.offset, count, out);
    }
  }
}

// Row-major codes from the columns, which are kept only where they help.
template <class Code>
void finish(Block<Code>& block) {
  for (std::size_t start = 0; start < block.rows; start += kTile)
    for (std::size_t f = 0; f < block.features; ++f)
      for (std::size_t i = start; i < std::min(block.rows, start + kTile); ++i)
        block.codes[i * block.features + f] = block.columns[f * block.rows + i];
  if (block.columns.size() <= kWorthColumns) block.columns.clear();
  block.find_ranges();
}

}  // namespace

template <class Code>
void Block<Code>::find_ranges() {
  lowest.assign(features, kMissing<Code>);
  highest.assign(features, 0);
  for (std::size_t i = 0; i < rows; ++i) {
    const Code* codes_of_row = row(i);
    for (std::size_t f = 0; f < features; ++f) {
      lowest[f] = std::min(lowest[f], codes_of_row[f]);
      highest[f] = std::max(highest[f], codes_of_row[f]);
    }
  }
}

template <class Code>
Block<Code> make_block(const RowCodec& codec, const std::uint8_t* records, const std::uint32_t* index, std::size_t n) {
  Block<Code> block;
  resize(block, n, codec.n_features());
  RankScratch scratch;
  copy_narrow(codec, records, index, block);
  for (std::size_t f = 0; f < block.features; ++f) {
    const FeatureCodec& feature = codec.feature(f);
    const std::uint8_t* bytes = records + feature.offset;
    block.has_missing[f] = feature.has_missing;
    block.values[f] = feature.values.data();
    if (feature.width == Width::four) {
      const auto value_of = [&](std::size_t i) {
        std::uint32_t value;
        std::memcpy(&value, bytes + (index ? index[i] : i) * codec.record_bytes(), sizeof value);
        return value;
      };
      const std::vector<std::uint32_t> distinct = rank_column(n, value_of, f, block, scratch);
      std::vector<float> values(distinct.size());
      std::transform(distinct.begin(), distinct.end(), values.begin(), from_ordered_bits);
      own_values(block, f, std::move(values));
    }
  }
  finish(block);
  return block;
}

void narrow_block(const Block<std::uint32_t>& from, const std::uint32_t* rows, std::size_t n,
                  Block<std::uint16_t>& to) {
  resize(to, n, from.features);
  to.has_missing = from.has_missing;
  RankScratch scratch;
  for (std::size_t f = 0; f < from.features; ++f) {
    if (!from.ranked[f]) {
      to.values[f] = from.values[f];
      for (std::size_t i = 0; i < n; ++i) {
        const std::uint32_t code = from.row(rows[i])[f];
        to.columns[f * n + i] =
            code == kMissing<std::uint32_t> ? kMissing<std::uint16_t> : static_cast<std::uint16_t>(code);
      }
      continue;
    }
    const auto value_of = [&](std::size_t i) { return from.row(rows[i])[f]; };
    const std::vector<std::uint32_t> distinct = rank_column(n, value_of, f, to, scratch);
    std::vector<float> values(distinct.size());
    std::transform(distinct.begin(), distinct.end(), values.begin(),
                   [&](std::uint32_t code) { return from.values[f][code]; });
    own_values(to, f, std::move(values));
  }
  finish(to);
}

template void Block<std::uint16_t>::find_ranges();
template void Block<std::uint32_t>::find_ranges();
template Block<std::uint16_t> make_block(const RowCodec&, const std::uint8_t*, const std::uint32_t*, std::size_t);
template Block<std::uint32_t> make_block(const RowCodec&, const std::uint8_t*, const std::uint32_t*, std::size_t);

}  // namespace oldgrowth
