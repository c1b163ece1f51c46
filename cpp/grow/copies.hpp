// Equal rows of a bucket: how many copies of each row came before it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace oldgrowth {

// More copies than this are not drawn one by one but scaled up from this many.
inline constexpr std::uint32_t kMaxDrawnCopies = 64;

// A row counts as many times as its weight has whole units, at least once; the rest of the weight is spread over them.
inline std::uint32_t copies_of(double weight) {
  if (!(weight > 0)) return 0;
  return weight >= kMaxDrawnCopies ? kMaxDrawnCopies : static_cast<std::uint32_t>(std::max(1.0, std::floor(weight)));
}

class CopyCounter {
 public:
  explicit CopyCounter(std::size_t expected_keys = 0);
  // Rows in order, by the hashes of their content: the copies that came before row i go to copies[i]. `weights` may be
  // null. Throws std::length_error if a count exceeds 32 bits and that is all `copies` has.
  template <class Count>
  void count(const std::uint64_t* keys, const double* weights, std::size_t n, Count* copies);
  // Number of distinct keys so far.
  std::size_t keys() const { return keys_; }
  static std::size_t bytes(std::size_t keys) { return slots_for(keys) * sizeof(Slot); }
  // Bytes that hold any count of so many rows: 4 or 8.
  static std::size_t count_bytes(std::uint64_t rows, bool weighted) {
    return rows <= (std::uint64_t{1} << 32) / (weighted ? kMaxDrawnCopies : 1) ? 4 : 8;
  }

 private:
  struct Slot {
    std::uint64_t key;
    std::uint64_t copies;  // zero: free
  };
  static std::size_t slots_for(std::size_t keys);
  Slot& slot_of(std::uint64_t key);
  void grow();

  std::vector<Slot> slots_;
  std::size_t keys_ = 0;
};

}  // namespace oldgrowth
