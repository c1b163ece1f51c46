// The least of a test framework: CHECK stops the program with the place and the expression.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <random>

#define CHECK(condition)                                                                 \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      std::fprintf(stderr, "%s:%d: CHECK(%s) failed\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                                      \
    }                                                                                    \
  } while (false)

namespace oldgrowth::test {

inline std::mt19937_64 random_bits(std::uint64_t seed) { return std::mt19937_64(seed); }

}  // namespace oldgrowth::test
