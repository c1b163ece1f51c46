#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "rows/float_rows.hpp"
#include "tests/check.hpp"

using namespace oldgrowth;

template <class T>
void columns_become_rows(std::size_t n, std::size_t d) {
  std::mt19937_64 random(n + d);
  std::vector<std::vector<T>> values(d, std::vector<T>(n));
  auto missing = std::make_unique<bool[]>(n);
  for (std::size_t i = 0; i < n; ++i) missing[i] = random() % 7 == 0;
  std::vector<Column> columns;
  for (std::size_t f = 0; f < d; ++f) {
    for (T& value : values[f]) value = static_cast<T>(random());
    columns.push_back({static_cast<const T*>(values[f].data()), f % 2 == 0 ? nullptr : missing.get()});
  }
  for (const std::size_t start : {std::size_t{0}, n / 3}) {
    std::vector<float> rows((n - start) * d + 1, -1.0F);
    rows_of_columns(columns, start, n - start, rows.data());
    for (std::size_t i = start; i < n; ++i)
      for (std::size_t f = 0; f < d; ++f) {
        const float found = rows[(i - start) * d + f];
        if (f % 2 == 1 && missing[i])
          CHECK(std::isnan(found));
        else
          CHECK(found == static_cast<float>(values[f][i]));
      }
    CHECK(rows.back() == -1.0F);  // nothing was written behind the last row
  }
}

void bytes_become_rows(std::size_t n, std::size_t d) {
  std::mt19937_64 random(n * d);
  std::vector<std::vector<std::uint8_t>> values(d, std::vector<std::uint8_t>(n));
  std::vector<const std::uint8_t*> columns;
  for (std::vector<std::uint8_t>& column : values) {
    for (std::uint8_t& value : column) value = static_cast<std::uint8_t>(random());
    columns.push_back(column.data());
  }
  for (const std::size_t start : {std::size_t{0}, n / 3}) {
    std::vector<std::uint8_t> rows((n - start) * d + 1, 99);
    rows_of_bytes(columns, start, n - start, rows.data());
    CHECK(rows.back() == 99);
    std::size_t seen = 0;
    as_floats(rows.data(), n - start, d, [&](std::size_t first, const float* floats, std::size_t count) {
      CHECK(first == seen);
      for (std::size_t i = 0; i < count; ++i)
        for (std::size_t f = 0; f < d; ++f)
          CHECK(floats[i * d + f] == static_cast<float>(values[f][start + first + i]));
      seen += count;
    });
    CHECK(seen == n - start);
  }
}

void oddities_are_found_wherever_they_are() {
  const std::size_t n = 9000;
  for (const std::size_t at : {0UL, 1UL, 4095UL, 4096UL, 8999UL})
    for (const float odd : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
      std::vector<float> values(n, std::numeric_limits<float>::max());
      CHECK(find_non_finite(values.data(), n).infinite == -1 && !find_non_finite(values.data(), n).missing);
      values[at] = std::nanf("");
      CHECK(find_non_finite(values.data(), n).infinite == -1 && find_non_finite(values.data(), n).missing);
      values[at] = odd;
      CHECK(find_non_finite(values.data(), n).infinite == static_cast<std::int64_t>(at));
      values[n - 1] = odd;
      CHECK(find_non_finite(values.data(), n).infinite == static_cast<std::int64_t>(at));
    }
}

int main() {
  for (const std::size_t n : {1UL, 63UL, 64UL, 65UL, 300UL})
    for (const std::size_t d : {1UL, 3UL, 81UL, 700UL}) {
      bytes_become_rows(n, d);
      columns_become_rows<std::int8_t>(n, d);
      columns_become_rows<std::uint8_t>(n, d);
      columns_become_rows<std::int16_t>(n, d);
      columns_become_rows<std::uint16_t>(n, d);
      columns_become_rows<std::int32_t>(n, d);
      columns_become_rows<std::uint32_t>(n, d);
      columns_become_rows<std::int64_t>(n, d);
      columns_become_rows<std::uint64_t>(n, d);
      columns_become_rows<float>(n, d);
      columns_become_rows<double>(n, d);
    }
  oddities_are_found_wherever_they_are();
}
