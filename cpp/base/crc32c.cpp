#include "base/crc32c.hpp"

#include <array>
#include <bit>
#include <cstring>

#include "base/cpu.hpp"

namespace oldgrowth {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // reflected
// Bytes of each of three interleaved streams: the instruction has a latency of three cycles.
constexpr std::size_t kStream = 1024;

using Table = std::array<std::uint32_t, 256>;

constexpr std::array<Table, 8> make_tables() {
  std::array<Table, 8> tables{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? kPolynomial : 0);
    tables[0][i] = crc;
  }
  for (std::size_t t = 1; t < 8; ++t)
    for (std::size_t i = 0; i < 256; ++i) tables[t][i] = tables[t - 1][i] >> 8 ^ tables[0][tables[t - 1][i] & 255];
  return tables;
}

constexpr std::array<Table, 8> kTables = make_tables();

constexpr std::uint32_t one_byte(std::uint32_t crc, std::uint8_t byte) {
  return crc >> 8 ^ kTables[0][(crc ^ byte) & 255];
}

// The effect of 2^power zero bytes on each of the 32 bits of a state.
using Shift = std::array<std::uint32_t, 32>;

constexpr std::uint32_t shifted_by(const Shift& shift, std::uint32_t state) {
  std::uint32_t moved = 0;
  for (std::size_t bit = 0; bit < 32; ++bit)
    if (state >> bit & 1) moved ^= shift[bit];
  return moved;
}

constexpr std::array<Shift, 64> make_powers() {
  std::array<Shift, 64> powers{};
  for (std::size_t bit = 0; bit < 32; ++bit) powers[0][bit] = one_byte(1U << bit, 0);
  for (std::size_t power = 1; power < powers.size(); ++power)
    for (std::size_t bit = 0; bit < 32; ++bit)
      powers[power][bit] = shifted_by(powers[power - 1], powers[power - 1][bit]);
  return powers;
}

// The effect of kStream zero bytes on each of the four bytes of a state.
constexpr std::array<Table, 4> make_shift() {
  std::array<Table, 4> shift{};
  std::array<std::uint32_t, 32> of_bit{};
  for (std::size_t bit = 0; bit < 32; ++bit) {
    std::uint32_t crc = 1U << bit;
    for (std::size_t i = 0; i < kStream; ++i) crc = one_byte(crc, 0);
    of_bit[bit] = crc;
  }
  for (std::size_t byte = 0; byte < 4; ++byte)
    for (std::size_t i = 0; i < 256; ++i)
      for (std::size_t bit = 0; bit < 8; ++bit)
        if (i >> bit & 1) shift[byte][i] ^= of_bit[byte * 8 + bit];
  return shift;
}

#if defined(__x86_64__)
constexpr std::array<Table, 4> kShift = make_shift();

std::uint32_t shifted(std::uint64_t state) {
  return kShift[0][state & 255] ^ kShift[1][state >> 8 & 255] ^ kShift[2][state >> 16 & 255] ^
         kShift[3][state >> 24 & 255];
}

std::uint64_t word_at(const std::uint8_t* bytes) {
  std::uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

[[gnu::target("sse4.2")]] std::uint32_t by_instruction(const std::uint8_t* at, std::size_t size, std::uint32_t crc) {
  std::uint64_t a = ~crc;
  for (; size >= 3 * kStream; at += 3 * kStream, size -= 3 * kStream) {
    std::uint64_t b = 0, c = 0;
    for (std::size_t i = 0; i < kStream; i += 8) {
      a = _mm_crc32_u64(a, word_at(at + i));
      b = _mm_crc32_u64(b, word_at(at + kStream + i));
      c = _mm_crc32_u64(c, word_at(at + 2 * kStream + i));
    }
    a = shifted(shifted(a) ^ b) ^ c;
  }
  for (; size >= 8; at += 8, size -= 8) a = _mm_crc32_u64(a, word_at(at));
  auto rest = static_cast<std::uint32_t>(a);
  for (; size > 0; ++at, --size) rest = _mm_crc32_u8(rest, *at);
  return ~rest;
}
#endif

}  // namespace

std::uint32_t crc32c_portable(const void* bytes, std::size_t size, std::uint32_t crc) {
  const auto* at = static_cast<const std::uint8_t*>(bytes);
  crc = ~crc;
  for (; size >= 8; at += 8, size -= 8) {
    const auto low =
        crc ^ (at[0] | std::uint32_t{at[1]} << 8 | std::uint32_t{at[2]} << 16 | std::uint32_t{at[3]} << 24);
    crc = kTables[7][low & 255] ^ kTables[6][low >> 8 & 255] ^ kTables[5][low >> 16 & 255] ^ kTables[4][low >> 24] ^
          kTables[3][at[4]] ^ kTables[2][at[5]] ^ kTables[1][at[6]] ^ kTables[0][at[7]];
  }
  for (; size > 0; ++at, --size) crc = one_byte(crc, *at);
  return ~crc;
}

std::uint32_t crc32c_joined(std::uint32_t crc, std::uint32_t next, std::uint64_t size) {
  static constexpr std::array<Shift, 64> powers = make_powers();
  for (const Shift& shift : powers) {
    if (size & 1) crc = shifted_by(shift, crc);
    size >>= 1;
  }
  return crc ^ next;
}

std::uint32_t crc32c(const void* bytes, std::size_t size, std::uint32_t crc) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return by_instruction(static_cast<const std::uint8_t*>(bytes), size, crc);
#endif
  return crc32c_portable(bytes, size, crc);
}

}  // namespace oldgrowth
