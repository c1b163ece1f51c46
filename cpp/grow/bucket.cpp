#include "grow/bucket.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>

namespace oldgrowth {
namespace {

// More copies than this are not drawn one by one but scaled up from this many.
constexpr std::uint32_t kMaxDrawnCopies = 64;

// A row is drawn as often as its weight has whole units, at least once; the rest of the weight is spread over them.
std::uint32_t copies_of(double weight) {
  if (!(weight > 0)) return 0;
  return weight >= kMaxDrawnCopies ? kMaxDrawnCopies : static_cast<std::uint32_t>(std::max(1.0, std::floor(weight)));
}

template <class Code>
Node walk(const Block<Code>& block, const Node* nodes, std::size_t i) {
  const NodeFormat format(static_cast<std::uint32_t>(block.features));
  const auto code_of = [&](std::uint32_t f) {
    return kHasRows<Code> ? block.row(i)[f] : block.columns[f * block.rows + i];
  };
  std::size_t at = 0;
  for (Node node = nodes[0]; !is_leaf(node); node = nodes[at]) {
    const std::uint32_t f = format.feature(node);
    const Code code = code_of(f);
    const bool left = code == kMissing<Code> ? format.missing_left(node) : block.values[f][code] <= threshold(node);
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

std::size_t CopyCounter::slots_for(std::size_t keys) { return std::bit_ceil(keys * 2 + 1); }

CopyCounter::CopyCounter(std::size_t expected_keys) : slots_(slots_for(expected_keys), Slot{0, 0}) {}

CopyCounter::Slot& CopyCounter::slot_of(std::uint64_t key) {
  std::size_t at = key & (slots_.size() - 1);
  while (slots_[at].copies > 0 && slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
  return slots_[at];
}

void CopyCounter::grow() {
  std::vector<Slot> old(slots_.size() * 2, Slot{0, 0});
  old.swap(slots_);
  for (const Slot& slot : old)
    if (slot.copies > 0) slot_of(slot.key) = slot;
}

void CopyCounter::count(const std::uint64_t* keys, const double* weights, std::size_t n, std::uint32_t* copies) {
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t more = weights == nullptr ? 1 : copies_of(weights[i]);
    copies[i] = 0;
    if (more == 0) continue;
    Slot* slot = &slot_of(keys[i]);
    if (slot->copies == 0 && ++keys_ * 2 > slots_.size()) {
      grow();
      slot = &slot_of(keys[i]);
    }
    copies[i] = slot->copies;
    slot->key = keys[i];
    slot->copies += more;
  }
}

double RowDraw::drawn_weight(std::uint64_t key, std::uint32_t copy, double weight) const {
  const std::uint32_t copies = copies_of(weight);
  std::uint32_t drawn = 0;
  for (std::uint32_t c = 0; c < copies; ++c) drawn += poisson_(draw(key, copy + c));
  return copies == 0 ? 0.0 : drawn * (weight / copies);
}

std::vector<std::uint8_t> DrawnRows::of(const TreeWeights& weights) {
  std::vector<std::uint8_t> bits(bytes(weights.rows.size()));
  for (std::size_t i = 0; i < weights.rows.size(); ++i)
    bits[i / 8] = static_cast<std::uint8_t>(bits[i / 8] | (weights.rows[i] > 0 ? 1U << (i % 8) : 0U));
  return bits;
}

Bucket make_bucket(const RowCodec& codec, const RowSource& source, const std::uint32_t* index, std::size_t n,
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
      to[i] = static_cast<typename std::decay_t<decltype(to)>::value_type>(from[index ? index[i] : i]);
  };
  if (classification) {
    for (std::size_t i = 0; i < n; ++i) {
      const double k = source.targets[index ? index[i] : i];
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

TreeWeights tree_weights(const Bucket& bucket, const Bootstrap& bootstrap, std::uint64_t tree,
                         const std::vector<double>& class_weights) {
  if (bootstrap.draw && bucket.copies.size() != bucket.rows)
    throw std::invalid_argument("a bootstrap on a bucket that was made without");
  TreeWeights weights;
  weights.rows.resize(bucket.rows);
  weights.whole = bucket.weights.empty() && class_weights.empty();
  const RowDraw draws(bootstrap, tree);
  double sum = 0;
  for (std::size_t i = 0; i < bucket.rows; ++i) sum += weights.rows[i] = draws.weight(bucket, i);
  if (sum == 0 && bucket.rows > 0) {  // no row was drawn: a tree needs one, and the lowest number wins
    std::size_t lowest = 0;
    for (std::size_t i = 1; i < bucket.rows; ++i)
      if (draws.number(bucket, i) < draws.number(bucket, lowest)) lowest = i;
    weights.rows[lowest] = RowDraw::own_weight(bucket, lowest);
  }
  if (class_weights.empty()) return weights;
  sum = 0;
  for (std::size_t i = 0; i < bucket.rows; ++i) sum += weights.rows[i] * class_weights[bucket.classes[i]];
  if (sum > 0)  // else only classes of weight zero are here, and they count like any other
    for (std::size_t i = 0; i < bucket.rows; ++i) weights.rows[i] *= class_weights[bucket.classes[i]];
  return weights;
}

Node leaf_of(const Bucket& bucket, const Node* nodes, std::size_t i) {
  return bucket.rows <= kMissing<std::uint16_t> ? walk(bucket.narrow, nodes, i) : walk(bucket.wide, nodes, i);
}

}  // namespace oldgrowth
