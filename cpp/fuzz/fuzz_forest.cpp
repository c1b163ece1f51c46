// Forests made to mislead: valid ones with some of their words changed and all checksums right again. Whatever
// they hold, checking and predicting must not leave the arrays, and what passes the checks must predict, the same for
// all rows at once as for each alone.
//
//   fuzz_forest [mutations] [seed]
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/crc32c.hpp"
#include "predict/forest.hpp"
#include "predict/predict.hpp"

using namespace oldgrowth;

namespace {

struct Arrays {
  std::uint32_t n_features, n_classes;
  std::vector<Node> top_nodes;
  std::vector<std::uint64_t> top_start{0}, bucket_start{0}, trees_of_top, bottom_start{0};
  std::vector<Node> nodes;
  std::vector<std::uint64_t> node_start{0}, table_start{0};
  std::vector<float> table;
  std::vector<std::uint32_t> tree_crc;
  // Used unless there are no levels.
  std::vector<std::uint32_t> levels;
  std::vector<std::uint16_t> top_sets, sets;
  std::vector<std::uint64_t> top_set_start{0}, set_start{0};

  Forest forest() const {
    Forest made{n_features,   n_classes, top_nodes,  top_start,   bucket_start, trees_of_top,
                bottom_start, nodes,     node_start, table_start, table,        tree_crc};
    if (levels.empty()) return made;
    made.levels = levels;
    made.top_sets = top_sets;
    made.top_set_start = top_set_start;
    made.sets = sets;
    made.set_start = set_start;
    return made;
  }
};

class Maker {
 public:
  explicit Maker(std::uint64_t seed) : random_(seed) {}

  std::uint64_t below(std::uint64_t n) { return random_() % n; }

  // Large: more rows than a block, more nodes than one row is worth, more trees and classes than a byte can count.
  Arrays valid(std::uint32_t features, bool large) {
    Arrays made{features, static_cast<std::uint32_t>(below(large ? 20 : 4))};
    format_ = NodeFormat(features);
    features_ = features;
    if (below(2)) draw_levels(made.levels);
    levels_ = made.levels;
    for (std::uint64_t t = 0, tops = 1 + below(3); t < tops; ++t) {
      std::uint64_t buckets = 0;
      tree_sets_.clear();
      grow(made.top_nodes, large ? below(5) : 2, [&] { return leaf(buckets++); });
      made.top_start.push_back(made.top_nodes.size());
      add_sets(made.top_sets, made.top_set_start);
      made.bucket_start.push_back(made.bucket_start.back() + buckets);
      made.trees_of_top.push_back(large && below(20) == 0 ? 254 + below(3) : 1 + below(large ? 10 : 3));
      for (std::uint64_t b = 0; b < buckets * made.trees_of_top.back(); ++b) add_bottom(made, large ? below(9) : 3);
      made.bottom_start.push_back(made.node_start.size() - 1);
    }
    seal(made);
    return made;
  }

  // Changes a few words anywhere. There cannot be more classes than a file has labels.
  void mutate(Arrays& made) {
    for (std::uint64_t i = 0, n = 1 + below(3); i < n; ++i) switch (below(15)) {
        case 0:
          change(made.top_nodes);
          break;
        case 1:
          change(made.top_start);
          break;
        case 2:
          change(made.bucket_start);
          break;
        case 3:
          change(made.trees_of_top);
          break;
        case 4:
          change(made.bottom_start);
          break;
        case 5:
          change(made.node_start);
          break;
        case 6:
          change(made.table_start);
          break;
        case 7:
          made.n_features = static_cast<std::uint32_t>(word());
          break;
        case 8:
          made.n_classes = static_cast<std::uint32_t>(below(200));
          break;
        case 9:
          change(made.levels);
          break;
        case 10:
          change(below(2) ? made.top_set_start : made.set_start);
          break;
        case 11:
          change(made.top_sets);
          break;
        case 12:
          change(made.sets);
          break;
        default:
          change(made.nodes);
          break;
      }
    if (below(4) == 0) resize(made);
    seal(made);
  }

 private:
  template <class Leaf>
  void grow(std::vector<Node>& nodes, std::uint64_t depth, const Leaf& make_leaf) {
    if (depth == 0 || below(depth > 3 ? 16 : 4) == 0) {
      nodes.push_back(make_leaf());
      return;
    }
    const std::size_t at = nodes.size();
    nodes.push_back(split());
    grow(nodes, depth - 1, make_leaf);
    nodes[at] = format_.with_right(nodes[at], nodes.size() - at);
    grow(nodes, depth - 1, make_leaf);
  }

  Node split() {
    const auto feature = static_cast<std::uint32_t>(below(features_));
    const bool missing_left = below(2);
    const std::uint32_t levels = levels_.empty() ? 0 : levels_[feature];
    if (levels == 0) return format_.inner(static_cast<float>(below(9)), feature, missing_left);
    std::vector<std::uint32_t> set;
    // Few levels and many, so that there are lists and bitmaps.
    for (std::uint32_t level = 0, rate = below(3) ? 2 : levels / 2 + 1; level < levels; ++level)
      if (below(rate) == 0) set.push_back(level);
    if (set.empty()) set.push_back(static_cast<std::uint32_t>(below(levels)));
    return format_.by_bits(store_set(set, levels, tree_sets_), feature, missing_left);
  }

  // Of each feature, some numerical: as many levels as a node can hold, and fewer and more.
  void draw_levels(std::vector<std::uint32_t>& levels) {
    constexpr std::uint32_t kLevels[] = {0, 0, 1, 2, 9, 31, 32, 33, 40, 300};
    for (std::uint32_t f = 0; f < features_; ++f) levels.push_back(kLevels[below(std::size(kLevels))]);
  }

  void add_sets(std::vector<std::uint16_t>& sets, std::vector<std::uint64_t>& starts) const {
    sets.insert(sets.end(), tree_sets_.begin(), tree_sets_.end());
    starts.push_back(sets.size());
  }

  void add_bottom(Arrays& made, std::uint64_t depth) {
    std::uint64_t rows = 0;
    tree_sets_.clear();
    grow(made.nodes, depth, [&] {
      if (made.n_classes == 0) return value_leaf(static_cast<double>(below(100)) / 7);
      if (below(3)) return leaf(below(made.n_classes));
      made.table.insert(made.table.end(), made.n_classes, 0.5F);
      return leaf(kMixedBit | rows++);
    });
    made.node_start.push_back(made.nodes.size());
    made.table_start.push_back(made.table_start.back() + rows);
    add_sets(made.sets, made.set_start);
  }

  // Numbers that arithmetic goes wrong with, and small ones that are almost right.
  std::uint64_t word() {
    switch (below(6)) {
      case 0:
        return random_();
      case 1:
        return below(2) ? ~0ULL - below(3) : (1ULL << 63) + below(8);
      case 2:
        return 1ULL << below(64);
      default:
        return below(40);
    }
  }

  template <class T>
  void change(std::vector<T>& words) {
    if (words.empty()) return;
    T& at = words[below(words.size())];
    switch (below(4)) {
      case 0:
        at = static_cast<T>(at ^ (std::uint64_t{1} << below(8 * sizeof(T))));
        break;
      case 1:
        at = static_cast<T>(at + below(9) - 4);
        break;
      case 2:
        at = words[below(words.size())];
        break;
      default:
        at = static_cast<T>(word());
        break;
    }
  }

  void resize(Arrays& made) {
    std::vector<std::uint64_t>* const arrays[] = {
        &made.top_nodes,    &made.top_start,  &made.bucket_start, &made.nodes,         &made.trees_of_top,
        &made.bottom_start, &made.node_start, &made.table_start,  &made.top_set_start, &made.set_start};
    auto& chosen = *arrays[below(std::size(arrays))];
    chosen.resize(below(chosen.size() + 3));
    if (below(3) == 0) made.table.resize(below(made.table.size() + 5));
    if (below(3) == 0) made.sets.resize(below(made.sets.size() + 5));
    if (below(3) == 0) made.top_sets.resize(below(made.top_sets.size() + 5));
    if (below(9) == 0) made.levels.resize(below(made.levels.size() + 2));
  }

  // The checksum of each tree as far as it lies in the arrays.
  static void seal(Arrays& made) {
    made.tree_crc.assign(made.node_start.empty() ? 0 : made.node_start.size() - 1, 0);
    const std::size_t k = made.forest().outputs();
    for (std::size_t b = 0; b < made.tree_crc.size(); ++b) {
      const std::uint64_t from = made.node_start[b], to = made.node_start[b + 1];
      if (from > to || to > made.nodes.size() || b + 1 >= made.table_start.size()) continue;
      const std::uint64_t row = made.table_start[b], end = made.table_start[b + 1], rows = made.table.size() / k;
      if (row > end || end > rows) continue;
      const std::uint32_t crc = crc32c(made.nodes.data() + from, (to - from) * sizeof(Node));
      made.tree_crc[b] = crc32c(made.table.data() + row * k, (end - row) * k * sizeof(float), crc);
      if (made.levels.empty() || b + 1 >= made.set_start.size()) continue;
      const std::uint64_t set = made.set_start[b], last = made.set_start[b + 1];
      if (set > last || last > made.sets.size()) continue;
      made.tree_crc[b] = crc32c(made.sets.data() + set, (last - set) * sizeof(std::uint16_t), made.tree_crc[b]);
    }
  }

  std::mt19937_64 random_;
  NodeFormat format_{1};
  std::uint32_t features_ = 1;
  std::vector<std::uint32_t> levels_;
  std::vector<std::uint16_t> tree_sets_;  // of the tree that grows
};

struct Rows {
  std::vector<float> values;
  bool may_miss;
};

Rows some_rows(Maker& maker, std::size_t n, std::size_t features) {
  Rows rows{std::vector<float>(n * features), maker.below(2) == 1};
  for (float& value : rows.values)
    value = rows.may_miss && maker.below(10) == 0 ? std::numeric_limits<float>::quiet_NaN()
                                                  : static_cast<float>(maker.below(maker.below(3) ? 10 : 310));
  return rows;
}

struct Predicted {
  std::vector<double> sums;
  std::vector<std::int64_t> leaves;

  Predicted(const Forest& forest, const Rows& rows, std::size_t first, std::size_t n) : sums(n * forest.outputs()) {
    std::uint64_t trees = 0;
    for (const std::uint64_t t : forest.trees_of_top) trees += t;
    leaves.resize(n * trees);
    const RowsIn some{rows.values.data() + first * forest.n_features, n, rows.may_miss};
    predict_sums(forest, some, false, sums.data());
    apply(forest, some, leaves.data());
  }
};

// By bits: shares of a mixed leaf may be NaN after a mutation.
template <class T>
bool same(const std::vector<T>& all, std::size_t row, const std::vector<T>& alone) {
  return std::memcmp(all.data() + row * alone.size(), alone.data(), alone.size() * sizeof(T)) == 0;
}

// Whether the checks let it pass; then it is used.
bool used(const Arrays& made, const Rows& rows, Maker& maker) {
  Forest forest = made.forest();
  if (!check_frame(forest).empty()) return false;
  const TreeChecks checks(forest.tree_crc.size());
  forest.checks = &checks;
  const std::size_t n = rows.values.size() / forest.n_features;
  try {
    const Predicted all(forest, rows, 0, n);
    if (n == 0) return true;
    const std::size_t row = maker.below(n);
    const Predicted alone(forest, rows, row, 1);
    if (same(all.sums, row, alone.sums) && same(all.leaves, row, alone.leaves)) return true;
  } catch (const DamagedTree&) {
    return false;
  }
  std::puts("a row alone is predicted otherwise than among others");
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t mutations = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 20'000;
  Maker maker(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0);
  constexpr std::uint32_t kFeatures[] = {1,  5,  8,   9,   17,  60,
                                         61, 62, 119, 120, 121, 122};  // beside what open trees can have, too
  constexpr std::size_t kRows[] = {0, 1, 8, 17, 63, 64, 255, 256, 257, 300};
  std::uint64_t passed = 0;
  for (std::uint64_t i = 0; i < mutations; ++i) {
    const bool large = maker.below(50) == 0;
    const std::uint32_t features = large ? kFeatures[maker.below(std::size(kFeatures))] : 5;
    // Mostly few rows: reading past a row then reads past all of them.
    const Rows rows = some_rows(maker, large ? kRows[maker.below(std::size(kRows))] : 1 + maker.below(3), features);
    Arrays made = maker.valid(features, large);
    if (!used(made, rows, maker)) {
      std::puts("a valid forest was refused");
      return 1;
    }
    maker.mutate(made);
    passed += used(made, rows, maker);
  }
  std::printf("%llu mutations: %llu still forests, the others refused\n", static_cast<unsigned long long>(mutations),
              static_cast<unsigned long long>(passed));
}
