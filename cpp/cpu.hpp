// What the machine can do beyond its baseline, asked at run time.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#define OLDGROWTH_AVX2 [[gnu::target("avx2")]]
#endif

namespace oldgrowth {

inline bool has_avx2() {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("avx2");
  return has;
#else
  return false;
#endif
}

}  // namespace oldgrowth
