#include <algorithm>
#include <vector>

#include "grow/sort_keys.hpp"
#include "tests/check.hpp"

using namespace oldgrowth;

void short_sorts_sort() {
  auto random = test::random_bits(1);
  for (const ShortSort sort : {short_sort(), short_sort_baseline()})
    for (std::size_t n = 1; n <= kShortSort; ++n)
      for (const std::uint32_t range : {2U, 50U, 0xffffffffU}) {
        std::vector<std::uint32_t> keys(kShortSort), out(kShortSort);
        for (std::size_t i = 0; i < n; ++i) keys[i] = static_cast<std::uint32_t>(random()) % range;
        sort(keys.data(), n, out.data());
        std::sort(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(n));
        CHECK(std::equal(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(n), out.begin()));
      }
}

template <class Word>
void radix_sort_is_stable() {
  auto random = test::random_bits(2);
  for (const std::size_t n : {1U, 2U, 100U, 1500U, 70000U})
    for (const unsigned bits : {0U, 1U, 8U, 9U, 16U}) {
      constexpr unsigned kLow = 4 * sizeof(Word);
      std::vector<Word> words(n), other(n);
      for (Word& word : words) word = static_cast<Word>(random() & ((std::uint64_t{1} << (kLow + bits)) - 1));
      std::vector<Word> expected = words;
      std::stable_sort(expected.begin(), expected.end(), [](Word a, Word b) { return a >> kLow < b >> kLow; });
      const Word* sorted = radix_sort(words.data(), other.data(), n, kLow, bits);
      CHECK(std::equal(expected.begin(), expected.end(), sorted));
    }
}

int main() {
  short_sorts_sort();
  radix_sort_is_stable<std::uint32_t>();
  radix_sort_is_stable<std::uint64_t>();
}
