#include "base/heap.hpp"

#include <cstdlib>  // says whether the C library is glibc

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace oldgrowth {

#if defined(__GLIBC__)

constexpr int kSmallestMapped = 1 << 20;
constexpr int kFewArenas = 4;
constexpr int kLargestKept = 32 << 20;  // glibc allows no more

namespace {
int most_arenas = kFewArenas;  // changed before there are threads
}

void release_memory() { malloc_trim(0); }

void return_memory_when_freed() {
  mallopt(M_MMAP_THRESHOLD, kSmallestMapped);
  mallopt(M_TRIM_THRESHOLD, kSmallestMapped);
  mallopt(M_ARENA_MAX, most_arenas);
}

void share_one_heap() {
  most_arenas = 1;
  mallopt(M_ARENA_MAX, most_arenas);
}

void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, kLargestKept);
  mallopt(M_TRIM_THRESHOLD, 2 * kLargestKept);
}

#else

void release_memory() {}
void return_memory_when_freed() {}
void share_one_heap() {}
void keep_freed_memory() {}

#endif

}  // namespace oldgrowth
