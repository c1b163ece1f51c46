#include "grow/bucket.hpp"

#include <algorithm>
#include <stdexcept>
#include <type_traits>

#include "grow/copies.hpp"

namespace oldgrowth {
namespace {

template <class Code>
Node walk(const Block<Code>& block, const Node* nodes, std::size_t i, const Categories& categories) {
  const NodeFormat format(static_cast<std::uint32_t>(block.features));
  const auto code_of = [&](std::uint32_t f) {
    return kHasRows<Code> ? block.row(i)[f] : block.columns[f * block.rows + i];
  };
  std::size_t at = 0;
  for (Node node = nodes[0]; !is_leaf(node); node = nodes[at]) {
    const std::uint32_t f = format.feature(node);
    const Code code = code_of(f);
    const bool left = code == kMissing<Code> ? format.missing_left(node)
                      : categories.has(f)
                          ? goes_left(categories, f, node, format.missing_left(node), block.values[f][code])
                          : block.values[f][code] <= threshold(node);
    at += left ? 1 : format.right(node);
  }
  return nodes[at];
}

}  // namespace

std::size_t bucket_bytes(std::size_t rows, const RowKind& kind) {
  const std::size_t block = rows <= kMissing<std::uint16_t>
                                ? Block<std::uint16_t>::bytes(rows, kind.features, kind.ranked)
                                : Block<std::uint32_t>::bytes(rows, kind.features, kind.ranked);
  const Bucket one;
  const std::size_t row = (kind.classification ? sizeof one.classes[0] : sizeof one.values[0]) +
                          (kind.weighted ? sizeof one.weights[0] : 0) + sizeof one.keys[0] +
                          (kind.bootstrap ? sizeof one.copies[0] : 0);
  return block + rows * row;
}

std::size_t making_bytes(std::size_t rows, const RowKind& kind) {
  return std::max(rank_scratch_bytes(rows, kind.ranked), kind.bootstrap ? CopyCounter::bytes(rows) : 0);
}

Bucket make_bucket(const RowCodec& codec, const RowSource& source, const RowIndex& index, std::size_t n,
                   bool classification, bool for_bootstrap) {
  Bucket bucket;
  bucket.rows = n;
  if (n <= kMissing<std::uint16_t>)
    bucket.narrow = make_block<std::uint16_t>(codec, source.records, index, n);
  else
    bucket.wide = make_block<std::uint32_t>(codec, source.records, index, n);
  const auto take = [&](const auto* from, auto& to) {
    to.resize(n);
    for (std::size_t i = 0; i < n; ++i)
      to[i] = static_cast<typename std::decay_t<decltype(to)>::value_type>(from[index[i]]);
  };
  if (classification) {
    for (std::size_t i = 0; i < n; ++i) {
      const double k = source.targets[index[i]];
      if (!(k >= 0 && k < 0x1.0p32)) throw std::invalid_argument("a class number out of range");
    }
    take(source.targets, bucket.classes);
  } else {
    take(source.targets, bucket.values);
  }
  for (double& value : bucket.values) value /= source.scale;
  if (source.weights) take(source.weights, bucket.weights);
  take(source.keys, bucket.keys);
  if (for_bootstrap) {
    bucket.copies.resize(n);
    CopyCounter(n).count(bucket.keys.data(), bucket.weights.empty() ? nullptr : bucket.weights.data(), n,
                         bucket.copies.data());
  }
  return bucket;
}

Node leaf_of(const Bucket& bucket, const Node* nodes, std::size_t i, const Categories& categories) {
  return bucket.rows <= kMissing<std::uint16_t> ? walk(bucket.narrow, nodes, i, categories)
                                                : walk(bucket.wide, nodes, i, categories);
}

}  // namespace oldgrowth
