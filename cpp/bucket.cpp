#include "bucket.hpp"

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

void count_copies(Bucket& bucket) {
  struct Slot {
    std::uint64_t key;
    std::uint32_t copies;  // zero: free
  };
  std::vector<Slot> slots(std::bit_ceil(bucket.rows * 2 + 1), Slot{0, 0});
  bucket.copies.resize(bucket.rows);
  for (std::size_t i = 0; i < bucket.rows; ++i) {
    const std::uint32_t copies = bucket.weights.empty() ? 1 : copies_of(bucket.weights[i]);
    if (copies == 0) continue;
    std::size_t at = bucket.keys[i] & (slots.size() - 1);
    while (slots[at].copies > 0 && slots[at].key != bucket.keys[i]) at = (at + 1) & (slots.size() - 1);
    bucket.copies[i] = slots[at].copies;
    slots[at].key = bucket.keys[i];
    slots[at].copies += copies;
  }
}

double drawn_weight(const Poisson& poisson, std::uint64_t key, std::uint32_t copy, double weight) {
  const std::uint32_t copies = copies_of(weight);
  std::uint32_t drawn = 0;
  for (std::uint32_t c = 0; c < copies; ++c) drawn += poisson(draw(key, copy + c));
  return copies == 0 ? 0.0 : drawn * (weight / copies);
}

template <class Code>
Node walk(const Block<Code>& block, const GrownTree& tree, std::size_t i) {
  const NodeFormat format(static_cast<std::uint32_t>(block.features));
  const auto code_of = [&](std::uint32_t f) {
    return kHasRows<Code> ? block.row(i)[f] : block.columns[f * block.rows + i];
  };
  std::size_t at = 0;
  for (Node node = tree.nodes[0]; !is_leaf(node); node = tree.nodes[at]) {
    const std::uint32_t f = format.feature(node);
    const Code code = code_of(f);
    const bool left = code == kMissing<Code> ? format.missing_left(node) : block.values[f][code] <= threshold(node);
    at += left ? 1 : format.right(node);
  }
  return tree.nodes[at];
}

}  // namespace

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
  if (for_bootstrap) count_copies(bucket);
  return bucket;
}

TreeWeights tree_weights(const Bucket& bucket, const Bootstrap& bootstrap, std::uint64_t tree,
                         const std::vector<double>& class_weights) {
  if (bootstrap.draw && bucket.copies.size() != bucket.rows)
    throw std::invalid_argument("a bootstrap on a bucket that was made without");
  TreeWeights weights;
  weights.rows.resize(bucket.rows);
  weights.whole = bucket.weights.empty() && class_weights.empty();
  const Poisson poisson(bootstrap.mean);
  const std::uint64_t key = tree_key(bootstrap.seed, Purpose::bootstrap, tree);
  const auto weight_of = [&](std::size_t i) { return bucket.weights.empty() ? 1.0 : bucket.weights[i]; };
  double sum = 0;
  for (std::size_t i = 0; i < bucket.rows; ++i)
    sum += weights.rows[i] =
        bootstrap.draw ? drawn_weight(poisson, key ^ bucket.keys[i], bucket.copies[i], weight_of(i)) : weight_of(i);
  if (sum == 0 && bucket.rows > 0) {  // no row was drawn: a tree needs one, and the lowest number wins
    std::size_t lowest = 0;
    const auto number = [&](std::size_t i) { return draw(key ^ bucket.keys[i], bucket.copies[i]); };
    for (std::size_t i = 1; i < bucket.rows; ++i)
      if (number(i) < number(lowest)) lowest = i;
    weights.rows[lowest] = weight_of(lowest);
  }
  if (class_weights.empty()) return weights;
  sum = 0;
  for (std::size_t i = 0; i < bucket.rows; ++i) sum += weights.rows[i] * class_weights[bucket.classes[i]];
  if (sum > 0)  // else only classes of weight zero are here, and they count like any other
    for (std::size_t i = 0; i < bucket.rows; ++i) weights.rows[i] *= class_weights[bucket.classes[i]];
  return weights;
}

Node leaf_of(const Bucket& bucket, const GrownTree& tree, std::size_t i) {
  return bucket.rows <= kMissing<std::uint16_t> ? walk(bucket.narrow, tree, i) : walk(bucket.wide, tree, i);
}

}  // namespace oldgrowth
