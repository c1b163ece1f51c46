// An image whose pixels are rows: the features of a row are the values of all layers in a square patch around its
// pixel. Rows are numbered in the order of the scan; some pixels are no rows, some have no valid value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rows/row_codec.hpp"

namespace oldgrowth {

// A bit for each pixel; lines begin at whole words.
class PixelBits {
 public:
  PixelBits(std::size_t height, std::size_t width);

  // Sets the bits of a line, one byte for each pixel.
  void put_line(std::size_t line, const std::uint8_t* pixels);
  bool at(std::size_t line, std::size_t pixel) const {
    return words_[line * words_per_line_ + pixel / 64] >> (pixel % 64) & 1;
  }
  // Whether all bits from pixel `first` up to, not including, pixel `stop` are set.
  bool all(std::size_t line, std::size_t first, std::size_t stop) const;
  std::size_t words_per_line() const { return words_per_line_; }
  std::uint64_t word(std::size_t line, std::size_t i) const { return words_[line * words_per_line_ + i]; }

 private:
  std::size_t width_, words_per_line_;
  std::vector<std::uint64_t> words_;
};

class PatchImage {
 public:
  struct Shape {
    std::size_t height, width, layers, patch;
    bool bytes;  // values are bytes, not floats
  };

  // `columns` are the features that count, among all of a patch; none means all.
  PatchImage(const Shape& shape, std::vector<std::uint32_t> columns);

  // Memory of an image of this shape.
  static std::size_t bytes_of(const Shape& shape);

  const Shape& shape() const { return shape_; }
  std::size_t n_features() const { return columns_.empty() ? all_features() : columns_.size(); }
  std::uint64_t n_rows() const { return line_start_.back(); }

  // Sets a line: values by pixel and layer, and which pixels have valid ones. Pixels of lines that are never set are
  // not valid.
  void put_values(std::size_t line, const std::uint8_t* values, const std::uint8_t* valid);
  void put_values(std::size_t line, const float* values, const std::uint8_t* valid);
  // Sets which pixels of a line are rows.
  void put_rows(std::size_t line, const std::uint8_t* is_row);
  // Numbers the rows; all lines are set.
  void finish();

  // The features of the row of this number; a value outside the image or of a pixel that is not valid is missing.
  void features(std::uint64_t number, float* out) const;

  // As RowCodec::encode, for the rows of these numbers.
  bool encode(const RowCodec& codec, std::span<const std::uint64_t> numbers, const std::uint64_t* target_bits,
              std::uint8_t* records, std::uint64_t* keys) const;

 private:
  struct Place {
    std::size_t line, pixel;
  };

  std::size_t all_features() const { return shape_.patch * shape_.patch * shape_.layers; }
  Place place_of(std::uint64_t number) const;
  bool inside(const Place& place) const;
  template <class Value>
  void fill(const Value* values, const Place& place, float* out) const;
  template <class Value>
  void fill_inside(const Value* values, const Place& place, float* out) const;

  Shape shape_;
  std::vector<std::uint32_t> columns_;
  std::unique_ptr<std::uint8_t[]> bytes_;
  std::unique_ptr<float[]> floats_;
  PixelBits valid_, rows_;
  std::vector<std::uint32_t> line_rows_;
  std::vector<std::uint64_t> line_start_;   // the number of rows before each line, and of all
  std::vector<std::uint32_t> block_start_;  // rows of a line before each of its blocks of words
};

}  // namespace oldgrowth
