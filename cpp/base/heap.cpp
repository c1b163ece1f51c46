#include "base/heap.hpp"

#include <algorithm>
#include <cstdlib>  // says whether the C library is glibc

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace oldgrowth {

#if defined(__GLIBC__)

constexpr std::size_t kLeastKept = 1 << 20;
constexpr std::size_t kMostKept = 32 << 20;  // glibc allows no more
constexpr int kFewArenas = 4;

namespace {
int most_arenas = kFewArenas;  // changed before there are threads
}

void release_memory() { malloc_trim(0); }

void keep_freed_blocks(std::size_t most_bytes) {
  const int most = static_cast<int>(std::clamp(most_bytes, kLeastKept, kMostKept));
  mallopt(M_MMAP_THRESHOLD, most);
  mallopt(M_TRIM_THRESHOLD, 2 * most);
}

void share_few_heaps() { mallopt(M_ARENA_MAX, most_arenas); }

void share_one_heap() {
  most_arenas = 1;
  share_few_heaps();
}

#else

void release_memory() {}
void keep_freed_blocks(std::size_t) {}
void share_few_heaps() {}
void share_one_heap() {}

#endif

}  // namespace oldgrowth
