// Row numbers of the whole data set are 64-bit; lists of them use 32 bits each where that is enough.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

namespace oldgrowth {

// Whether 32 bits are enough for the numbers of this many rows.
constexpr bool fits_32_bits(std::uint64_t rows) { return rows <= (std::uint64_t{1} << 32); }

// A list of row numbers, or all rows in order.
class RowIndex {
 public:
  RowIndex() = default;
  explicit RowIndex(const std::uint32_t* rows) : narrow_(rows) {}
  explicit RowIndex(const std::uint64_t* rows) : wide_(rows) {}

  std::uint64_t operator[](std::size_t i) const {
    if (narrow_ != nullptr) return narrow_[i];
    return wide_ != nullptr ? wide_[i] : i;
  }

 private:
  const std::uint32_t* narrow_ = nullptr;
  const std::uint64_t* wide_ = nullptr;
};

// Groups rows by bucket: the places of the rows of bucket b go to order[start[b]..start[b + 1]), ascending, where
// `start` is what is returned. `Place` must hold the place of each row.
template <class Place>
std::vector<std::uint64_t> group_by_bucket(std::span<const std::uint32_t> buckets, std::size_t n_buckets,
                                           std::vector<Place>& order) {
  std::vector<std::uint64_t> start(n_buckets + 1);
  for (const std::uint32_t b : buckets) {
    if (b >= n_buckets) throw std::invalid_argument("bucket out of range");
    ++start[b + 1];
  }
  for (std::size_t b = 0; b < n_buckets; ++b) start[b + 1] += start[b];
  std::vector<std::uint64_t> next(start.begin(), start.end() - 1);
  order.resize(buckets.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[next[buckets[i]]++] = static_cast<Place>(i);
  return start;
}

}  // namespace oldgrowth
