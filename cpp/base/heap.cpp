#include "base/heap.hpp"

#include <algorithm>
#include <cstdlib>  // says whether the C library is glibc
#include <latch>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace oldgrowth {

#if defined(__GLIBC__)

constexpr std::size_t kLeastKept = 1 << 20;
constexpr std::size_t kMostKept = 32 << 20;  // glibc allows no more
constexpr int kFewArenas = 4;
// More than there are heaps: threads that began before heaps were few may have some of their own.
constexpr int kThreadsToTrim = 16;
constexpr std::size_t kTrimmingBlock = 128 << 10;  // when one of 64 kB or more is freed, the end of its heap may be

namespace {

int most_arenas = kFewArenas;  // changed before there are threads
bool few_heaps = false;        // otherwise new threads would make more
int kept_end = 0;              // of each heap, if it was set
std::mutex trimming;

// Returns the free ends of all heaps but the first, which malloc_trim leaves. New threads are given heaps in turn,
// those that no thread has first.
void trim_ends() {
  if (kept_end == 0 || !few_heaps || most_arenas == 1) return;
  std::vector<std::thread> threads;
  threads.reserve(kThreadsToTrim);
  mallopt(M_TRIM_THRESHOLD, 0);
  std::latch all_began(kThreadsToTrim);
  try {
    for (int i = 0; i < kThreadsToTrim; ++i) {
      threads.emplace_back([&] {
        void* volatile block = std::malloc(kTrimmingBlock);
        std::free(block);
        all_began.arrive_and_wait();
      });
    }
  } catch (const std::system_error&) {  // there can be no more threads: what they would return is kept
    all_began.count_down(kThreadsToTrim - static_cast<int>(threads.size()));
  }
  for (std::thread& thread : threads) thread.join();
  mallopt(M_TRIM_THRESHOLD, kept_end);
}

}  // namespace

void release_memory() {
  const std::scoped_lock lock(trimming);
  malloc_trim(0);
  trim_ends();
}

void keep_freed_blocks(std::size_t most_bytes) {
  const std::scoped_lock lock(trimming);
  const int most = static_cast<int>(std::clamp(most_bytes, kLeastKept, kMostKept));
  kept_end = 2 * most;
  mallopt(M_MMAP_THRESHOLD, most);
  mallopt(M_TRIM_THRESHOLD, kept_end);
}

void share_few_heaps() {
  few_heaps = true;
  mallopt(M_ARENA_MAX, most_arenas);
}

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
