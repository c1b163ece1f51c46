#include "grow/rank_codes.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/cpu.hpp"
#include "base/transpose.hpp"
#include "grow/sort_keys.hpp"

namespace oldgrowth {
namespace {

struct RankScratch {
  std::vector<std::uint32_t> values;  // of a group of features, column by column
  std::vector<std::uint64_t> words, other;
};

// Approximate number of values of a group: they fit half of a typical share of the L3 cache.
constexpr std::size_t kGroupValues = 1024 * 1024;

// Features of a group.
std::size_t ranked_at_once(std::size_t rows, std::size_t ranked) {
  return std::clamp<std::size_t>(kGroupValues / std::max<std::size_t>(rows, 1), 1, ranked + 1);
}

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
bool worth_columns(const Block<Code>& block) {
  return block.rows * block.features > kWorthColumns;
}

template <class Code>
void resize(Block<Code>& block, std::size_t rows, std::size_t features) {
  block.rows = rows;
  block.features = features;
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

bool none_ranked(const RowCodec& codec) {
  for (std::size_t f = 0; f < codec.n_features(); ++f)
    if (codec.feature(f).width == Width::four) return false;
  return true;
}

// Visits the records tile by tile, as take(bytes of each record, first row, number of rows). The records of the
// next tile are prefetched: those of a bucket are scattered in memory.
template <class Take>
void for_each_tile(const RowCodec& codec, const std::uint8_t* records, const RowIndex& index, std::size_t n,
                   const Take& take) {
  const std::uint8_t *bytes[kTile], *next[kTile];
  const auto find = [&](std::size_t start, const std::uint8_t** found) {
    const std::size_t count = start < n ? std::min(kTile, n - start) : 0;
    for (std::size_t i = 0; i < count; ++i) {
      found[i] = records + index[start + i] * codec.record_bytes();
      for (std::size_t line = 0; line < codec.record_bytes(); line += 64) __builtin_prefetch(found[i] + line);
    }
    return count;
  };
  std::size_t count = find(0, next);
  for (std::size_t start = 0; start < n; start += kTile) {
    std::copy_n(next, count, bytes);
    const std::size_t rows = count;
    count = find(start + kTile, next);
    take(bytes, start, rows);
  }
}

// The codes that need no ranking.
template <class Code>
void copy_narrow(const RowCodec& codec, const std::uint8_t* records, const RowIndex& index, Block<Code>& block) {
  std::vector<std::size_t> narrow;
  for (std::size_t f = 0; f < block.features; ++f)
    if (codec.feature(f).width != Width::four) narrow.push_back(f);
  if (narrow.empty()) return;
  for_each_tile(codec, records, index, block.rows, [&](const auto* bytes, std::size_t start, std::size_t count) {
    for (const std::size_t f : narrow) {
      const FeatureCodec& feature = codec.feature(f);
      Code* out = block.columns.data() + f * block.rows + start;
      if (feature.width == Width::one)
        copy_codes<Code, std::uint8_t>(bytes, feature.offset, count, out);
      else
        copy_codes<Code, std::uint16_t>(bytes, feature.offset, count, out);
    }
  });
}

// Ranks features, a group of columns at a time.
template <class Code>
void rank_wide(const RowCodec& codec, const std::uint8_t* records, const RowIndex& index, Block<Code>& block) {
  std::vector<std::size_t> wide;
  for (std::size_t f = 0; f < block.features; ++f)
    if (codec.feature(f).width == Width::four) wide.push_back(f);
  const std::size_t n = block.rows, at_once = ranked_at_once(n, wide.size());
  RankScratch scratch;
  scratch.values.resize(wide.empty() ? 0 : at_once * n);
  for (std::size_t first = 0; first < wide.size(); first += at_once) {
    const std::size_t group = std::min(at_once, wide.size() - first);
    for_each_tile(codec, records, index, n, [&](const auto* bytes, std::size_t start, std::size_t count) {
      for (std::size_t g = 0; g < group; ++g) {
        const std::size_t offset = codec.feature(wide[first + g]).offset;
        std::uint32_t* out = scratch.values.data() + g * n + start;
        for (std::size_t i = 0; i < count; ++i) std::memcpy(out + i, bytes[i] + offset, sizeof *out);
      }
    });
    for (std::size_t g = 0; g < group; ++g) {
      const std::uint32_t* column = scratch.values.data() + g * n;
      const std::vector<std::uint32_t> distinct =
          rank_column(n, [column](std::size_t i) { return column[i]; }, wide[first + g], block, scratch);
      std::vector<float> values(distinct.size());
      std::transform(distinct.begin(), distinct.end(), values.begin(), from_ordered_bits);
      own_values(block, wide[first + g], std::move(values));
    }
  }
}

// Features whose codes are neighbours in a record as in a row of a block.
struct Neighbours {
  std::size_t feature, count, offset;
  Width width;
};

std::vector<Neighbours> neighbours(const RowCodec& codec) {
  std::vector<Neighbours> found;
  for (std::size_t f = 0; f < codec.n_features(); ++f) {
    const FeatureCodec& feature = codec.feature(f);
    if (found.empty() || found.back().width != feature.width) found.push_back({f, 0, feature.offset, feature.width});
    ++found.back().count;
  }
  return found;
}

// Codes of `count` neighbours in some records, as 16 bits each.
template <class Stored>
void widen(const std::uint8_t* const* records, std::size_t n, const Neighbours& part, std::uint16_t* rows,
           std::size_t apart) {
  for (std::size_t i = 0; i < n; ++i, rows += apart)
    for (std::size_t j = 0; j < part.count; ++j) {
      Stored code;
      std::memcpy(&code, records[i] + part.offset + j * sizeof code, sizeof code);
      rows[j] = code == std::numeric_limits<Stored>::max() ? kMissing16 : static_cast<std::uint16_t>(code);
    }
}

// Rows of codes, where no feature needs ranking: they are in the records already, most of them as bytes.
void copy_rows(const RowCodec& codec, const std::uint8_t* records, const RowIndex& index, Block<std::uint16_t>& block) {
  const std::vector<Neighbours> parts = neighbours(codec);
  block.codes.resize(block.rows * block.features);
  if (worth_columns(block)) block.columns.resize(block.codes.size());
  for_each_tile(codec, records, index, block.rows, [&](const auto* bytes, std::size_t start, std::size_t count) {
    std::uint16_t* rows = block.codes.data() + start * block.features;
    for (const Neighbours& part : parts)
      (part.width == Width::one ? widen<std::uint8_t> : widen<std::uint16_t>)(bytes, count, part, rows + part.feature,
                                                                              block.features);
    if (!block.columns.empty())
      transpose({rows, count, block.features, block.features}, block.columns.data() + start, block.rows);
  });
}

// Row-major codes from the columns, which are kept only if they are useful.
void rows_from_columns(Block<std::uint16_t>& block) {
  block.codes.resize(block.columns.size());
  for (std::size_t start = 0; start < block.rows; start += kTile)
    transpose({block.columns.data() + start, block.features, std::min(kTile, block.rows - start), block.rows},
              block.codes.data() + start * block.features, block.features);
  if (!worth_columns(block)) block.columns.clear();
}

template <class Code>
void find_range(Block<Code>& block, std::size_t f) {
  Code lowest = kMissing<Code>, highest = 0;
  const auto [column, stride] = block.column(f);
  for (std::size_t i = 0; i < block.rows; ++i) {
    lowest = std::min(lowest, column[i * stride]);
    highest = std::max(highest, column[i * stride]);
  }
  block.lowest[f] = lowest;
  block.highest[f] = highest;
}

#if defined(__x86_64__)
constexpr std::size_t kGroup = 16;

// Finds the ranges of kGroup features at a time.
OLDGROWTH_AVX2 void find_ranges_avx2(Block<std::uint16_t>& block, std::size_t f) {
  __m256i lowest = _mm256_set1_epi16(-1), highest = _mm256_setzero_si256();
  const std::uint16_t* codes = block.codes.data() + f;
  for (std::size_t i = 0; i < block.rows; ++i, codes += block.features) {
    const __m256i row = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
    lowest = _mm256_min_epu16(lowest, row);
    highest = _mm256_max_epu16(highest, row);
  }
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(block.lowest.data() + f), lowest);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(block.highest.data() + f), highest);
}
#endif

}  // namespace

std::size_t rank_scratch_bytes(std::size_t rows, std::size_t ranked) {
  if (ranked == 0) return 0;
  const std::size_t values = ranked_at_once(rows, ranked) + 2;  // with the distinct ones, as bits and as floats
  return rows * (values * sizeof(std::uint32_t) + 2 * sizeof(std::uint64_t));
}

template <class Code>
void Block<Code>::find_ranges() {
  lowest.resize(features);
  highest.resize(features);
  std::size_t f = 0;
#if defined(__x86_64__)
  if constexpr (sizeof(Code) == 2) {
    if (has_avx2() && features >= kGroup) {
      for (; f + kGroup <= features; f += kGroup) find_ranges_avx2(*this, f);
      find_ranges_avx2(*this, features - kGroup);
      return;
    }
  }
#endif
  for (; f < features; ++f) find_range(*this, f);
}

template <class Code>
Block<Code> make_block(const RowCodec& codec, const std::uint8_t* records, const RowIndex& index, std::size_t n) {
  Block<Code> block;
  resize(block, n, codec.n_features());
  for (std::size_t f = 0; f < block.features; ++f) {
    block.has_missing[f] = codec.feature(f).has_missing;
    block.values[f] = codec.feature(f).values.data();
  }
  if constexpr (kHasRows<Code>) {
    if (none_ranked(codec)) {
      copy_rows(codec, records, index, block);
      block.find_ranges();
      return block;
    }
  }
  block.columns.resize(n * block.features);
  copy_narrow(codec, records, index, block);
  rank_wide(codec, records, index, block);
  if constexpr (kHasRows<Code>) rows_from_columns(block);
  block.find_ranges();
  return block;
}

void narrow_block(const Block<std::uint32_t>& from, const std::uint32_t* rows, std::size_t n,
                  Block<std::uint16_t>& to) {
  resize(to, n, from.features);
  to.columns.resize(n * from.features);
  to.has_missing = from.has_missing;
  RankScratch scratch;
  for (std::size_t f = 0; f < from.features; ++f) {
    const auto [column, stride] = from.column(f);
    if (!from.ranked[f]) {
      to.values[f] = from.values[f];
      for (std::size_t i = 0; i < n; ++i) {
        const std::uint32_t code = column[rows[i] * stride];
        to.columns[f * n + i] =
            code == kMissing<std::uint32_t> ? kMissing<std::uint16_t> : static_cast<std::uint16_t>(code);
      }
      continue;
    }
    const auto value_of = [&, code = column, apart = stride](std::size_t i) { return code[rows[i] * apart]; };
    const std::vector<std::uint32_t> distinct = rank_column(n, value_of, f, to, scratch);
    std::vector<float> values(distinct.size());
    std::transform(distinct.begin(), distinct.end(), values.begin(),
                   [&](std::uint32_t code) { return from.values[f][code]; });
    own_values(to, f, std::move(values));
  }
  rows_from_columns(to);
  to.find_ranges();
}

template void Block<std::uint16_t>::find_ranges();
template void Block<std::uint32_t>::find_ranges();
template Block<std::uint16_t> make_block(const RowCodec&, const std::uint8_t*, const RowIndex&, std::size_t);
template Block<std::uint32_t> make_block(const RowCodec&, const std::uint8_t*, const RowIndex&, std::size_t);

}  // namespace oldgrowth
