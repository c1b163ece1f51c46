#include <cmath>
#include <vector>

#include "rows/row_codec.hpp"
#include "tests/check.hpp"
#include "tests/rows.hpp"

using namespace oldgrowth;
using namespace oldgrowth::test;

bool same(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

void records_give_back_the_values(const TestRows& rows) {
  std::vector<float> values(rows.d);
  for (std::size_t i = 0; i < rows.n; ++i) {
    rows.codec.decode(rows.records.data() + i * rows.codec.record_bytes(), values.data());
    for (std::size_t f = 0; f < rows.d; ++f) CHECK(same(values[f], rows.x[i * rows.d + f]));
  }
  CHECK(rows.codec.knows(rows.records.data(), rows.n));
  CHECK(rows.codec.has_keys(rows.records.data(), rows.n, rows.target_bits.data(), rows.keys.data()));
}

void records_are_lossless() {
  const TestRows small = random_rows(3000, 8, 3, 1);
  CHECK(small.encoded);
  records_give_back_the_values(small);
  const TestRows large = random_rows(70000, 6, 3, 2);  // continuous features have too many values for codes
  CHECK(large.codec.feature(0).width == Width::four);
  CHECK(large.codec.feature(1).width == Width::one);
  records_give_back_the_values(large);
}

void odd_values_survive() {
  const float tiny = std::numeric_limits<float>::denorm_min(), huge = std::numeric_limits<float>::max();
  const TestRows rows(6, 1, {tiny, -tiny, huge, -huge, 0.0F, -0.0F}, {0, 0, 0, 0, 0, 0});
  CHECK(rows.codec.feature(0).values == (std::vector<float>{-huge, -tiny, 0.0F, tiny, huge}));
  records_give_back_the_values(rows);
  CHECK(rows.keys[4] == rows.keys[5]);
  CHECK(rows.keys[0] != rows.keys[1]);
}

void unseen_values_are_refused() {
  const TestRows rows = random_rows(500, 4, 2, 4);
  std::vector<std::uint8_t> records(rows.codec.record_bytes());
  std::uint64_t key = 0;
  const auto encodes = [&](std::vector<float> row) {
    return rows.codec.encode({row.data(), 1, 4}, rows.target_bits.data(), {records.data(), records.size()}, &key);
  };
  std::vector<float> row(rows.x.begin(), rows.x.begin() + 4);
  CHECK(encodes(row));
  for (const float bad : {0.5F, 1e30F, -1e30F, 1e-10F, std::nanf("")}) {
    std::vector<float> changed = row;
    changed[1] = bad;
    CHECK(!encodes(changed));
  }
  row[2] = 0.123F;
  CHECK(!encodes(row));
}

// Whole numbers of dense ranges, one and two bytes wide, some missing: in runs of every length around a register's.
void dense_integers_are_lossless_and_checked() {
  std::mt19937_64 random(5);
  for (std::size_t d = 1; d < 40; ++d) {
    const std::size_t n = 2000;
    std::vector<float> x(n * d);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t f = 0; f < d; ++f) {
        const bool two_bytes = f >= d / 2;
        const auto value = static_cast<float>(random() % (two_bytes ? 600 : 200)) - static_cast<float>(50 + f);
        x[i * d + f] = f % 3 == 0 && random() % 9 == 0 ? std::nanf("") : value;
      }
    const TestRows rows(n, d, x, std::vector<double>(n, 0.0));
    CHECK(rows.encoded);
    CHECK(rows.codec.feature(d - 1).width == Width::two);
    if (d > 1) CHECK(rows.codec.feature(0).width == Width::one);
    records_give_back_the_values(rows);
    std::vector<std::uint8_t> record(rows.codec.record_bytes());
    std::uint64_t key = 0;
    for (std::size_t f = 0; f < d; ++f)
      for (const float bad : {1000.0F, -1000.0F, 0.5F, 1e30F, -2147483648.0F, f % 3 == 0 ? 3e9F : std::nanf("")}) {
        std::vector<float> row(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(d));
        row[f] = bad;
        CHECK(!rows.codec.encode({row.data(), 1, d}, rows.target_bits.data(), {record.data(), record.size()}, &key));
      }
  }
}

// Rows that differ in one value, or in their target, have different keys.
void keys_tell_rows_apart() {
  for (std::size_t d = 1; d < 40; ++d) {
    std::vector<float> x((d + 1) * d, 0.0F);
    for (std::size_t f = 0; f < d; ++f) x[f * d + f] = f % 2 == 0 ? 1.0F : 0.25F;
    std::vector<double> y(d + 1, 0.0);
    const TestRows rows(d + 1, d, x, y);
    for (std::size_t i = 0; i <= d; ++i)
      for (std::size_t j = 0; j < i; ++j) CHECK(rows.keys[i] != rows.keys[j]);
    y[d] = 1.0;
    CHECK(TestRows(d + 1, d, x, y).keys[d] != rows.keys[d]);
  }
}

// A profile made in many pieces, which passes over what it knows already, finds what one made value by value does.
void profiles_miss_nothing() {
  std::mt19937_64 random(6);
  for (std::size_t d = 1; d < 30; ++d) {
    const std::size_t n = 3000;
    std::vector<float> x(n * d);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t f = 0; f < d; ++f) {
        float value = static_cast<float>(random() % (3 + i / 8)) - 40;  // there is news now and then
        if (f % 5 == 1) value = static_cast<float>(random() % 90000);
        if (f % 5 == 2) value /= 4;
        if (f % 5 == 3 && i > n / 2 && random() % 500 == 0) value = std::nanf("");
        x[i * d + f] = value;
      }
    Profile pieces(d);
    for (std::size_t start = 0; start < n; start += 100)
      pieces.add(x.data() + start * d, std::min<std::size_t>(100, n - start), d, 0, d);
    for (std::size_t f = 0; f < d; ++f) {
      FeatureProfile alone;
      for (std::size_t i = 0; i < n; ++i) alone.add(x[i * d + f]);
      CHECK(pieces.feature(f).values() == alone.values());
      CHECK(pieces.feature(f).has_missing() == alone.has_missing());
      CHECK(pieces.feature(f).is_wide() == alone.is_wide());
    }
  }
}

int main() {
  profiles_miss_nothing();
  dense_integers_are_lossless_and_checked();
  keys_tell_rows_apart();
  records_are_lossless();
  odd_values_survive();
  unseen_values_are_refused();
}
