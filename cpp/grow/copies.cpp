#include "grow/copies.hpp"

#include <bit>
#include <limits>
#include <stdexcept>

namespace oldgrowth {

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

template <class Count>
void CopyCounter::count(const std::uint64_t* keys, const double* weights, std::size_t n, Count* copies) {
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t more = weights == nullptr ? 1 : copies_of(weights[i]);
    copies[i] = 0;
    if (more == 0) continue;
    Slot* slot = &slot_of(keys[i]);
    if (slot->copies == 0 && ++keys_ * 2 > slots_.size()) {
      grow();
      slot = &slot_of(keys[i]);
    }
    if (slot->copies > std::numeric_limits<Count>::max())
      throw std::length_error("a bucket has too many equal rows: choose a smaller bucket_size");
    copies[i] = static_cast<Count>(slot->copies);
    slot->key = keys[i];
    slot->copies += more;
  }
}

template void CopyCounter::count(const std::uint64_t*, const double*, std::size_t, std::uint32_t*);
template void CopyCounter::count(const std::uint64_t*, const double*, std::size_t, std::uint64_t*);

}  // namespace oldgrowth
