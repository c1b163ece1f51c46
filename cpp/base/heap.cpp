#include "base/heap.hpp"

#include <cstdlib>  // says whether the C library is glibc

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace oldgrowth {

#if defined(__GLIBC__)

// glibc's dynamic threshold grows up to 32 MB, and so does the memory that each thread's heap keeps.
constexpr int kMappedBytes = 1 << 20;
constexpr int kFewArenas = 4;
constexpr std::size_t kLargestKept = (32UL << 20) - (1UL << 14);  // the block and its header take 32 MB at most

namespace {
int most_arenas = kFewArenas;  // changed before there are threads
}

void release_memory() { malloc_trim(0); }

void return_memory_when_freed() {
  mallopt(M_MMAP_THRESHOLD, kMappedBytes);
  mallopt(M_TRIM_THRESHOLD, kMappedBytes);
  mallopt(M_ARENA_MAX, most_arenas);
}

void share_one_heap() {
  most_arenas = 1;
  mallopt(M_ARENA_MAX, most_arenas);
}

void keep_freed_memory() {
  void* volatile block = std::malloc(kLargestKept);  // its pages are never touched
  std::free(block);
}

#else

void release_memory() {}
void return_memory_when_freed() {}
void share_one_heap() {}
void keep_freed_memory() {}

#endif

}  // namespace oldgrowth
