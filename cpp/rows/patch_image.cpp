#include "rows/patch_image.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace oldgrowth {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr std::size_t kBlockWords = 8;
constexpr std::size_t kRowsAtATime = 64;

std::size_t words_of(std::size_t width) { return (width + 63) / 64; }
std::size_t blocks_of(std::size_t width) { return (words_of(width) + kBlockWords - 1) / kBlockWords; }

// The place of the n-th set bit, counted from 0.
std::size_t nth_bit(std::uint64_t word, std::uint64_t n) {
  for (; n > 0; --n) word &= word - 1;
  return static_cast<std::size_t>(std::countr_zero(word));
}

}  // namespace

PixelBits::PixelBits(std::size_t height, std::size_t width)
    : width_(width), words_per_line_(words_of(width)), words_(height * words_of(width)) {}

void PixelBits::put_line(std::size_t line, const std::uint8_t* pixels) {
  std::uint64_t* words = words_.data() + line * words_per_line_;
  std::fill_n(words, words_per_line_, 0);
  for (std::size_t x = 0; x < width_; ++x) words[x / 64] |= std::uint64_t{pixels[x] != 0} << (x % 64);
}

bool PixelBits::all(std::size_t line, std::size_t first, std::size_t stop) const {
  for (std::size_t x = first; x < stop; ++x)
    if (!at(line, x)) return false;
  return true;
}

PatchImage::PatchImage(const Shape& shape, std::vector<std::uint32_t> columns)
    : shape_(shape),
      columns_(std::move(columns)),
      valid_(shape.height, shape.width),
      rows_(shape.height, shape.width),
      line_rows_(shape.height),
      line_start_(shape.height + 1),
      block_start_(shape.height * blocks_of(shape.width)) {
  if (shape.patch % 2 == 0 || shape.layers == 0) throw std::invalid_argument("a patch has a pixel in its middle");
  for (const std::uint32_t column : columns_)
    if (column >= all_features()) throw std::invalid_argument("a feature that the patch does not have");
  const std::size_t n = shape.height * shape.width * shape.layers;
  if (shape.bytes)
    bytes_.reset(new std::uint8_t[n]);
  else
    floats_.reset(new float[n]);
}

std::size_t PatchImage::bytes_of(const Shape& shape) {
  const std::size_t values = shape.height * shape.width * shape.layers * (shape.bytes ? 1 : sizeof(float));
  const std::size_t of_line = 2 * words_of(shape.width) * sizeof(std::uint64_t) + sizeof(std::uint64_t) +
                              (1 + blocks_of(shape.width)) * sizeof(std::uint32_t);
  return values + shape.height * of_line;
}

void PatchImage::put_values(std::size_t line, const std::uint8_t* values, const std::uint8_t* valid) {
  if (!shape_.bytes || line >= shape_.height) throw std::invalid_argument("a line of another image");
  const std::size_t n = shape_.width * shape_.layers;
  std::memcpy(bytes_.get() + line * n, values, n);
  valid_.put_line(line, valid);
}

void PatchImage::put_values(std::size_t line, const float* values, const std::uint8_t* valid) {
  if (shape_.bytes || line >= shape_.height) throw std::invalid_argument("a line of another image");
  const std::size_t n = shape_.width * shape_.layers;
  std::memcpy(floats_.get() + line * n, values, n * sizeof(float));
  valid_.put_line(line, valid);
}

void PatchImage::put_rows(std::size_t line, const std::uint8_t* is_row) {
  if (line >= shape_.height) throw std::invalid_argument("a line of another image");
  rows_.put_line(line, is_row);
  std::uint32_t* blocks = block_start_.data() + line * blocks_of(shape_.width);
  std::uint32_t count = 0;
  for (std::size_t i = 0; i < rows_.words_per_line(); ++i) {
    if (i % kBlockWords == 0) blocks[i / kBlockWords] = count;
    count += static_cast<std::uint32_t>(std::popcount(rows_.word(line, i)));
  }
  line_rows_[line] = count;
}

void PatchImage::finish() {
  for (std::size_t line = 0; line < shape_.height; ++line) line_start_[line + 1] = line_start_[line] + line_rows_[line];
}

PatchImage::Place PatchImage::place_of(std::uint64_t number) const {
  if (number >= n_rows()) throw std::invalid_argument("a row that the image does not have");
  const auto after = std::upper_bound(line_start_.begin(), line_start_.end(), number);
  const auto line = static_cast<std::size_t>(after - line_start_.begin()) - 1;
  auto left = static_cast<std::uint32_t>(number - line_start_[line]);
  const std::uint32_t* blocks = block_start_.data() + line * blocks_of(shape_.width);
  const auto block =
      static_cast<std::size_t>(std::upper_bound(blocks, blocks + blocks_of(shape_.width), left) - blocks) - 1;
  left -= blocks[block];
  std::size_t i = block * kBlockWords;
  for (;; ++i) {
    const auto here = static_cast<std::uint32_t>(std::popcount(rows_.word(line, i)));
    if (left < here) break;
    left -= here;
  }
  return {line, 64 * i + nth_bit(rows_.word(line, i), left)};
}

bool PatchImage::inside(const Place& place) const {
  const std::size_t half = shape_.patch / 2, x = place.pixel, y = place.line;
  if (x < half || y < half || x + half >= shape_.width || y + half >= shape_.height) return false;
  for (std::size_t line = y - half; line <= y + half; ++line)
    if (!valid_.all(line, x - half, x + half + 1)) return false;
  return true;
}

template <class Value>
void PatchImage::fill_inside(const Value* values, const Place& place, float* out) const {
  const std::size_t patch = shape_.patch, half = patch / 2, layers = shape_.layers;
  for (std::size_t dy = 0; dy < patch; ++dy) {
    const Value* from = values + ((place.line - half + dy) * shape_.width + place.pixel - half) * layers;
    for (std::size_t dx = 0; dx < patch; ++dx, from += layers) {
      float* to = out + (dx * patch + dy) * layers;
      for (std::size_t layer = 0; layer < layers; ++layer) to[layer] = static_cast<float>(from[layer]);
    }
  }
}

template <class Value>
void PatchImage::fill(const Value* values, const Place& place, float* out) const {
  if (inside(place)) return fill_inside(values, place, out);
  const std::size_t patch = shape_.patch, half = patch / 2, layers = shape_.layers;
  for (std::size_t dx = 0; dx < patch; ++dx)
    for (std::size_t dy = 0; dy < patch; ++dy, out += layers) {
      // Lines and pixels before the first wrap around to large numbers.
      const std::size_t y = place.line + dy - half, x = place.pixel + dx - half;
      if (y >= shape_.height || x >= shape_.width || !valid_.at(y, x)) {
        std::fill_n(out, layers, kNan);
        continue;
      }
      const Value* from = values + (y * shape_.width + x) * layers;
      std::copy(from, from + layers, out);
    }
}

void PatchImage::features(std::uint64_t number, float* out) const {
  const Place place = place_of(number);
  const auto fill_row = [&](float* row) {
    shape_.bytes ? fill(bytes_.get(), place, row) : fill(floats_.get(), place, row);
  };
  if (columns_.empty()) return fill_row(out);
  thread_local std::vector<float> all;
  all.resize(all_features());
  fill_row(all.data());
  for (std::size_t f = 0; f < columns_.size(); ++f) out[f] = all[columns_[f]];
}

bool PatchImage::encode(const RowCodec& codec, std::span<const std::uint64_t> numbers, const std::uint64_t* target_bits,
                        std::uint8_t* records, std::uint64_t* keys) const {
  const std::size_t n_values = n_features(), apart = codec.record_bytes();
  if (codec.n_features() != n_values) throw std::invalid_argument("a codec of other features");
  std::vector<float> rows(kRowsAtATime * n_values);
  for (std::size_t first = 0; first < numbers.size(); first += kRowsAtATime) {
    const std::size_t count = std::min(kRowsAtATime, numbers.size() - first);
    for (std::size_t i = 0; i < count; ++i) features(numbers[first + i], rows.data() + i * n_values);
    if (!codec.encode({rows.data(), count, n_values}, target_bits + first, {records + first * apart, apart},
                      keys + first))
      return false;
  }
  return true;
}

}  // namespace oldgrowth
