#include "base/heap.hpp"

#include <cstdlib>  // says whether the C library is glibc

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace oldgrowth {

#if defined(__GLIBC__)

// glibc's dynamic threshold grows up to 32 MB, and so does the memory that each thread's heap keeps.
constexpr int kMappedBytes = 1 << 20;
constexpr int kMostArenas = 4;

void release_memory() { malloc_trim(0); }

void return_memory_when_freed() {
  mallopt(M_MMAP_THRESHOLD, kMappedBytes);
  mallopt(M_TRIM_THRESHOLD, kMappedBytes);
  mallopt(M_ARENA_MAX, kMostArenas);
}

#else

void release_memory() {}
void return_memory_when_freed() {}

#endif

}  // namespace oldgrowth
