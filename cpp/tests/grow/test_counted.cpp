// The vector kernels of the counted search against the plain ones, which try every boundary.
#include <algorithm>
#include <vector>

#include "grow/counted_search.hpp"
#include "tests/check.hpp"

using namespace oldgrowth;

struct Case {
  std::vector<std::uint32_t> entries;  // row << 16 | class << 4 | weight, ordered by class
  Block<std::uint16_t> block;          // one feature
  CountedNode node;
};

// Rows of a few classes whose codes lie anywhere, close together, or where their class says.
Case make_case(std::uint64_t seed) {
  auto random = test::random_bits(seed);
  const std::size_t n = 2 + random() % (seed % 4 == 0 ? 6000 : 300);
  const auto n_classes = 2 + random() % (seed % 3 == 0 ? 1 : kVectorClasses - 1);
  const std::uint32_t spread = seed % 5 == 0 ? 7 : seed % 5 == 1 ? 400 : 60000;
  const std::uint32_t max_weight = seed % 7 == 0 ? 5 : 1 + seed % 2;
  std::vector<std::uint32_t> classes(n);
  for (std::size_t i = 0; i < n; ++i)
    classes[i] = i < n_classes ? static_cast<std::uint32_t>(i) : static_cast<std::uint32_t>(random() % n_classes);
  std::sort(classes.begin(), classes.end());
  Case made;
  made.block.rows = n;
  made.block.features = 1;
  made.block.has_missing = {0};
  for (std::size_t i = 0; i < n; ++i) {
    const auto w = static_cast<std::uint32_t>(1 + random() % max_weight);
    const std::uint32_t k = classes[i] * 37 % 4096;
    const std::size_t slot = classes[i];
    std::uint64_t code = random() % spread;
    if (seed % 6 == 2 && random() % 3 > 0) code = code / 4 + slot * spread / 12;
    made.entries.push_back(static_cast<std::uint32_t>(i) << 16 | k << kWeightBits | w);
    made.block.codes.push_back(static_cast<std::uint16_t>(code));
    made.node.classes[slot] = k;
    made.node.totals[slot] += static_cast<std::int32_t>(w);
    made.node.rows[slot] += 1;
    made.node.weight += static_cast<std::int32_t>(w);
    made.node.n_classes = slot + 1;
  }
  made.block.find_ranges();
  made.block.own = {std::vector<float>(65536)};
  for (std::size_t v = 0; v < 65536; ++v) made.block.own[0][v] = static_cast<float>(v);
  made.block.values = {made.block.own[0].data()};
  return made;
}

bool equal(const CountedBest& a, const CountedBest& b) {
  return a.found == b.found &&
         (!a.found || (a.score == b.score && a.last_left == b.last_left && a.weight_left == b.weight_left));
}

bool equal(const CountedSearch::Found& a, const CountedSearch::Found& b) {
  return a.varies == b.varies && a.better == b.better &&
         (!a.better || (a.score == b.score && a.last == b.last && a.next == b.next && a.weight_left == b.weight_left));
}

void key_scans_agree(const Case& made, std::size_t min_leaf, double start) {
  std::vector<std::uint32_t> keys;
  for (std::size_t i = 0; i < made.entries.size(); ++i)
    keys.push_back(static_cast<std::uint32_t>(made.block.codes[i]) << 16 | (made.entries[i] & 0xffff));
  std::sort(keys.begin(), keys.end());
  keys.resize(keys.size() + 8);
  CountedScratch scratch;
  const std::size_t n = made.entries.size();
  CHECK(equal(counted_kernels().scan_keys(keys.data(), n, made.node, min_leaf, start, scratch),
              counted_kernels_baseline().scan_keys(keys.data(), n, made.node, min_leaf, start, scratch)));
}

void bin_scans_agree(const Case& made, std::size_t min_leaf, double start) {
  const std::size_t n_bins = made.block.highest[0] + 1UL, stride = (n_bins + 7) / 8 * 8;
  std::vector<std::uint32_t> bins(stride * made.node.n_classes);
  std::size_t i = 0;
  for (std::size_t s = 0; s < made.node.n_classes; ++s)
    for (std::size_t end = i + made.node.rows[s]; i < end; ++i)
      bins[s * stride + made.block.codes[i]] += 1U << 16 | (made.entries[i] & kWeightMask);
  CountedScratch scratch;
  const CountedBins all{bins.data(), stride, n_bins};
  CHECK(equal(counted_kernels().scan_bins(all, made.node, min_leaf, start, scratch),
              counted_kernels_baseline().scan_bins(all, made.node, min_leaf, start, scratch)));
}

// Leaving out the rows that cannot hold the best split must not change it.
void searches_agree(const Case& made, std::size_t min_leaf, double start, double unit) {
  static CountedSearch fast, plain(counted_kernels_baseline());
  const auto found_by = [&](CountedSearch& search) {
    return search.search(made.block, 0, made.entries.data(), made.entries.size(), made.node, {min_leaf, start, unit});
  };
  CHECK(equal(found_by(fast), found_by(plain)));
}

int main() {
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    const Case made = make_case(seed);
    const double all = static_cast<double>(made.node.weight);
    for (const std::size_t min_leaf : {1UL, 1 + seed % 9})
      for (const double start : {-1.0, all, all * all / 50}) {
        if (made.node.weight > kVectorWeight || made.entries.size() < 2 * min_leaf) continue;
        key_scans_agree(made, min_leaf, start);
        if (made.block.highest[0] < 1000 || seed % 20 == 2) bin_scans_agree(made, min_leaf, start);
        searches_agree(made, min_leaf, start, -1);
        searches_agree(made, min_leaf, start, static_cast<double>(seed % 10) / 10);
      }
  }
}
