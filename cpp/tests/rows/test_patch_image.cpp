#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "rows/patch_image.hpp"
#include "tests/check.hpp"

using namespace oldgrowth;

struct Scene {
  PatchImage::Shape shape;
  std::vector<float> values;  // by line, pixel and layer
  std::vector<std::uint8_t> valid, is_row;
};

Scene random_scene(const PatchImage::Shape& shape, double share_of_rows, std::uint64_t seed) {
  auto bits = test::random_bits(seed);
  std::uniform_real_distribution<> share(0, 1);
  const std::size_t n = shape.height * shape.width;
  Scene scene{shape, std::vector<float>(n * shape.layers), std::vector<std::uint8_t>(n), std::vector<std::uint8_t>(n)};
  for (float& value : scene.values) value = static_cast<float>(bits() % 200);
  for (std::size_t i = 0; i < n; ++i) {
    scene.valid[i] = share(bits) < 0.9;
    scene.is_row[i] = scene.valid[i] && share(bits) < share_of_rows;
  }
  return scene;
}

PatchImage image_of(const Scene& scene, std::vector<std::uint32_t> columns) {
  PatchImage image(scene.shape, std::move(columns));
  const std::size_t width = scene.shape.width, of_line = width * scene.shape.layers;
  for (std::size_t y = scene.shape.height; y-- > 0;) {  // lines may come in any order
    const float* values = scene.values.data() + y * of_line;
    const std::vector<std::uint8_t> bytes(values, values + of_line);
    if (scene.shape.bytes)
      image.put_values(y, bytes.data(), scene.valid.data() + y * width);
    else
      image.put_values(y, values, scene.valid.data() + y * width);
    image.put_rows(y, scene.is_row.data() + y * width);
  }
  image.finish();
  return image;
}

// The features of a pixel's row, one by one.
std::vector<float> expected(const Scene& scene, std::size_t pixel) {
  const auto& shape = scene.shape;
  const auto half = static_cast<std::ptrdiff_t>(shape.patch / 2);
  const auto height = static_cast<std::ptrdiff_t>(shape.height), width = static_cast<std::ptrdiff_t>(shape.width);
  std::vector<float> row;
  for (std::ptrdiff_t dx = -half; dx <= half; ++dx)
    for (std::ptrdiff_t dy = -half; dy <= half; ++dy)
      for (std::size_t layer = 0; layer < shape.layers; ++layer) {
        const auto y = static_cast<std::ptrdiff_t>(pixel) / width + dy,
                   x = static_cast<std::ptrdiff_t>(pixel) % width + dx;
        const bool there = y >= 0 && x >= 0 && y < height && x < width;
        const auto at = static_cast<std::size_t>(there ? y * width + x : 0);
        const bool known = there && scene.valid[at];
        row.push_back(known ? scene.values[at * shape.layers + layer] : std::numeric_limits<float>::quiet_NaN());
      }
  return row;
}

void rows_are_the_patches_of_their_pixels() {
  std::uint64_t seed = 0;
  for (const std::size_t patch : {1, 3, 5})
    for (const std::size_t width : {1, 2, 63, 64, 65, 700})
      for (const double share : {0.01, 0.5, 1.0})
        for (const bool bytes : {false, true}) {
          const Scene scene = random_scene({9, width, 3, patch, bytes}, share, ++seed);
          const PatchImage image = image_of(scene, {});
          std::vector<float> row(image.n_features());
          std::uint64_t number = 0;
          for (std::size_t pixel = 0; pixel < scene.is_row.size(); ++pixel) {
            if (!scene.is_row[pixel]) continue;
            image.features(number++, row.data());
            const std::vector<float> wanted = expected(scene, pixel);
            for (std::size_t f = 0; f < row.size(); ++f)
              CHECK(row[f] == wanted[f] || (std::isnan(row[f]) && std::isnan(wanted[f])));
          }
          CHECK(number == image.n_rows());
        }
}

void columns_are_chosen_in_their_order() {
  const Scene scene = random_scene({5, 20, 2, 3, true}, 1.0, 1);
  const PatchImage all = image_of(scene, {}), some = image_of(scene, {17, 0, 9});
  std::vector<float> row(all.n_features()), chosen(3);
  CHECK(some.n_features() == 3);
  for (std::uint64_t number = 0; number < all.n_rows(); ++number) {
    all.features(number, row.data());
    some.features(number, chosen.data());
    const float wanted[] = {row[17], row[0], row[9]};
    for (std::size_t f = 0; f < 3; ++f)
      CHECK(chosen[f] == wanted[f] || (std::isnan(chosen[f]) && std::isnan(wanted[f])));
  }
}

void what_is_not_there_is_refused() {
  const Scene scene = random_scene({5, 20, 2, 3, true}, 0.5, 1);
  const PatchImage image = image_of(scene, {});
  std::vector<float> row(image.n_features());
  bool refused = false;
  try {
    image.features(image.n_rows(), row.data());
  } catch (const std::invalid_argument&) {
    refused = true;
  }
  CHECK(refused);
}

int main() {
  rows_are_the_patches_of_their_pixels();
  columns_are_chosen_in_their_order();
  what_is_not_there_is_refused();
}
