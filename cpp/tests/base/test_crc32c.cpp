#include <cstring>
#include <vector>

#include "base/crc32c.hpp"
#include "base/rng.hpp"
#include "tests/check.hpp"

using namespace oldgrowth;

void known_checksum() {
  CHECK(crc32c("123456789", 9) == 0xe3069283U);
  CHECK(crc32c_portable("123456789", 9) == 0xe3069283U);
  CHECK(crc32c("", 0) == 0);
}

void fast_and_portable_agree_and_continue() {
  std::vector<std::uint8_t> bytes(20000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(draw(5, i));
  for (const std::size_t size : {0, 1, 7, 8, 9, 3071, 3072, 3073, 9216, 20000}) {
    const std::uint32_t whole = crc32c_portable(bytes.data(), size);
    CHECK(crc32c(bytes.data(), size) == whole);
    const std::size_t half = size / 3;
    const std::uint32_t begin = crc32c(bytes.data(), half);
    CHECK(crc32c(bytes.data() + half, size - half, begin) == whole);
    CHECK(crc32c_joined(begin, crc32c(bytes.data() + half, size - half), size - half) == whole);
  }
}

int main() {
  known_checksum();
  fast_and_portable_agree_and_continue();
}
