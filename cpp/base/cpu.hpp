// Features of the processor beyond the baseline, detected at run time.
#pragma once

#include <cstddef>

#if defined(__x86_64__)
#include <immintrin.h>
#define OLDGROWTH_AVX2 [[gnu::target("avx2")]]
#endif

namespace oldgrowth {

// Prefetches the cache lines of some bytes.
inline void fetch(const void* from, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  for (std::size_t i = 0; i < bytes + kLine - 1; i += kLine) __builtin_prefetch(static_cast<const char*>(from) + i);
}

inline bool has_avx2() {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("avx2");
  return has;
#else
  return false;
#endif
}

}  // namespace oldgrowth
