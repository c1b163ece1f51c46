// The fast split search against one that tries every boundary and both sides for missing values.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "grow/criteria/list.hpp"
#include "grow/split_search.hpp"
#include "tests/check.hpp"
#include "tests/rows.hpp"

using namespace oldgrowth;
using namespace oldgrowth::test;

// The impurity of some rows, by its definition. A new criterion needs a definition here.
template <class C>
struct Impurity;

struct Shares {
  std::map<double, double> by_class;
  double weight = 0, sum = 0, squares = 0, y_log_y = 0;
};

template <>
struct Impurity<Gini> {
  static double of(const Shares& rows) {
    double impurity = 1;
    for (const auto& [_, share] : rows.by_class) impurity -= share / rows.weight * (share / rows.weight);
    return impurity;
  }
};

template <>
struct Impurity<Entropy> {
  static double of(const Shares& rows) {
    double impurity = 0;
    for (const auto& [_, share] : rows.by_class) impurity -= share / rows.weight * std::log2(share / rows.weight);
    return impurity;
  }
};

template <>
struct Impurity<SquaredError> {
  static double of(const Shares& rows) {
    return rows.squares / rows.weight - rows.sum / rows.weight * (rows.sum / rows.weight);
  }
};

template <>
struct Impurity<PoissonDeviance> {
  static double of(const Shares& rows) {
    if (rows.sum == 0) return std::numeric_limits<double>::infinity();
    return (rows.y_log_y - rows.sum * std::log(rows.sum / rows.weight)) / rows.weight;
  }
};

using ImpurityOf = double (*)(const Shares&);

double impurity_times_weight(ImpurityOf impurity, const std::vector<double>& y, const std::vector<double>& w,
                             const std::vector<bool>& in) {
  Shares rows;
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (!in[i]) continue;
    rows.by_class[y[i]] += w[i];
    rows.weight += w[i];
    rows.sum += w[i] * y[i];
    rows.squares += w[i] * y[i] * y[i];
    if (y[i] > 0) rows.y_log_y += w[i] * y[i] * std::log(y[i]);
  }
  return rows.weight == 0 ? 0 : impurity(rows) * rows.weight;
}

double best_decrease(const TestRows& rows, const std::vector<double>& w, ImpurityOf impurity, std::size_t f,
                     std::size_t min_leaf) {
  std::set<float> cuts{std::numeric_limits<float>::infinity()};
  bool missing = false;
  for (std::size_t i = 0; i < rows.n; ++i) {
    const float v = rows.x[i * rows.d + f];
    if (std::isnan(v))
      missing = true;
    else
      cuts.insert(v);
  }
  const std::vector<bool> all(rows.n, true);
  const double whole = impurity_times_weight(impurity, rows.targets, w, all);
  double best = -1;
  for (const float cut : cuts)
    for (const bool missing_left : {false, true}) {
      if (missing_left && !missing) continue;
      std::vector<bool> left(rows.n), right(rows.n);
      std::size_t n_left = 0;
      for (std::size_t i = 0; i < rows.n; ++i) {
        const float v = rows.x[i * rows.d + f];
        left[i] = std::isnan(v) ? missing_left : v <= cut;
        right[i] = !left[i];
        n_left += left[i];
      }
      if (n_left < min_leaf || rows.n - n_left < min_leaf) continue;
      best = std::max(best, whole - impurity_times_weight(impurity, rows.targets, w, left) -
                                impurity_times_weight(impurity, rows.targets, w, right));
    }
  return best;
}

double decrease_at(const TestRows& rows, const std::vector<double>& w, ImpurityOf impurity, std::size_t f, float cut,
                   bool missing_left) {
  std::vector<bool> left(rows.n), right(rows.n);
  for (std::size_t i = 0; i < rows.n; ++i) {
    const float v = rows.x[i * rows.d + f];
    left[i] = std::isnan(v) ? missing_left : v <= cut;
    right[i] = !left[i];
  }
  return impurity_times_weight(impurity, rows.targets, w, std::vector<bool>(rows.n, true)) -
         impurity_times_weight(impurity, rows.targets, w, left) -
         impurity_times_weight(impurity, rows.targets, w, right);
}

double whole_impurity(const TestRows& rows, const std::vector<double>& w, ImpurityOf impurity) {
  return impurity_times_weight(impurity, rows.targets, w, std::vector<bool>(rows.n, true));
}

template <class Stats, class Code>
void equals_brute_force(ImpurityOf impurity, std::uint32_t n_classes, bool whole_weights, std::uint64_t seed) {
  auto random = random_bits(seed);
  const std::size_t n = 2 + random() % (seed % 10 == 0 ? 500 : 150);
  TestRows rows = random_rows(n, 4, n_classes, seed);
  if constexpr (Stats::kRefuses)
    for (double& y : rows.targets) y = std::max(0.0, y);
  std::vector<double> w(n);
  for (double& weight : w)
    weight = whole_weights   ? static_cast<double>(1 + random() % 4)
             : seed % 2 == 0 ? 0.1 + static_cast<double>(random() % 1000) / 100
                             : std::pow(10.0, static_cast<double>(random() % 10));
  const Block<Code> block = make_block<Code>(rows.codec, rows.records.data(), {}, n);
  Targets targets;
  targets.weights = w;
  targets.values = rows.targets;
  for (const double y : rows.targets) targets.classes.push_back(n_classes > 0 ? static_cast<std::uint32_t>(y) : 0);
  std::vector<Word<Code>> entries(n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t payload = Stats::kCounts ? targets.classes[i] << kWeightBits | static_cast<std::uint32_t>(w[i])
                                                 : static_cast<std::uint32_t>(i);
    entries[i] = static_cast<Word<Code>>(i) << (8 * sizeof(Code)) | payload;
  }
  if (Stats::kCounts)
    std::sort(entries.begin(), entries.end(),
              [](auto a, auto b) { return (a & kMissing<Code>) < (b & kMissing<Code>); });
  const std::size_t min_leaf = 1 + seed % 3;
  Stats stats(n_classes);
  stats.use(targets);
  SplitSearch<Code, Stats> search(stats, {min_leaf, 0, 0, 1});
  const auto look_at = [&](std::size_t rows_here) {
    stats.clear();
    for (std::size_t i = 0; i < rows_here; ++i) stats.add(static_cast<std::uint32_t>(entries[i] & kMissing<Code>));
    if constexpr (Stats::kClassification) {
      if (stats.sparse(rows_here))
        for (std::size_t i = 0; i < rows_here; ++i)
          stats.touch(static_cast<std::uint32_t>(entries[i] & kMissing<Code>));
    }
    stats.close();
  };
  look_at(n / 2);  // another node before this one leaves nothing behind
  Split<Code> other;
  search.search(block, 0, entries.data(), n / 2, -1, other);
  look_at(n);
  for (std::uint32_t f = 0; f < 4; ++f) {
    Split<Code> drawn, best;
    if (search.search(block, f, entries.data(), n, 0.37, drawn) && drawn.found()) {
      const double there = decrease_at(rows, w, impurity, f, drawn.drawn, drawn.missing_left);
      CHECK(std::abs(drawn.decrease - there) <= 1e-9 * (1 + whole_impurity(rows, w, impurity)));
    }
    const bool varies = search.search(block, f, entries.data(), n, -1, best);
    const double expected = best_decrease(rows, w, impurity, f, min_leaf);
    CHECK(best.found() == (expected >= 0));
    if (!best.found()) continue;
    CHECK(varies);
    CHECK(std::abs(best.decrease - expected) <= 1e-9 * (1 + whole_impurity(rows, w, impurity)));
  }
}

void names_are_found() {
  CHECK(criterion_names(true) == (std::vector<std::string>{"gini", "entropy", "log_loss"}));
  CHECK(criterion_names(false) == (std::vector<std::string>{"squared_error", "poisson"}));
  CHECK(find_criterion("log_loss") == kCriterion<Entropy> && find_criterion("entropy") == kCriterion<Entropy>);
  CHECK(find_criterion("squared_error") == kCriterion<SquaredError> && !find_criterion("Gini"));
  for_each_criterion([]<class C>(Criterion criterion, C) {
    CHECK(visit_criterion(criterion, []<class D>(D) { return std::is_same_v<C, D>; }));
  });
}

int main() {
  names_are_found();
  for (std::uint64_t seed = 0; seed < 60; ++seed)
    for_each_criterion([&]<class C>(Criterion, C) {
      using Whole = typename C::template Stats<true>;
      using Any = typename C::template Stats<false>;
      for (const std::uint32_t classes : kForClasses<C> ? std::vector{2U, 5U, 8U, 11U, 600U} : std::vector{0U}) {
        equals_brute_force<Whole, std::uint16_t>(Impurity<C>::of, classes, true, seed);
        if (seed % 3 == 0) equals_brute_force<Whole, std::uint32_t>(Impurity<C>::of, classes, true, seed);
        if (seed % 4 < 2)
          equals_brute_force<Any, std::uint16_t>(Impurity<C>::of, classes, false, seed);
        else
          equals_brute_force<Any, std::uint32_t>(Impurity<C>::of, classes, false, seed);
      }
    });
}
