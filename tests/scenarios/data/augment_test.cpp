// Tests random changes to training images: their effect on each pixel, their inputs, and where they must not appear.
#include <gmock/gmock.h>

#include <cmath>
#include <set>
#include <tuple>
#include <vector>

#include "clients/learning/model.hpp"
#include "clients/nn/neural_model.hpp"
#include "fl_core/memory/workspace.hpp"

namespace fl {
namespace {

using testing::ElementsAre;

constexpr std::size_t kHeight = 5, kWidth = 4, kChannels = 2, kSize = kChannels * kHeight * kWidth;

Dataset<double> images(const Augmentation& augment) {
  Dataset<double> data;
  data.name = "images";
  data.num_rows = 40;
  data.num_features = kSize;
  data.num_classes = 2;
  data.shape = {kChannels, kHeight, kWidth};
  data.images.pixels.resize_discard(data.num_rows * kSize);
  for (std::size_t i = 0; i < data.images.pixels.size(); ++i) data.images.pixels[i] = static_cast<std::uint8_t>(1 + i * 7 % 255);
  for (std::size_t r = 0; r < data.num_rows; ++r) data.label.push_back(static_cast<std::int32_t>(r % 2));
  data.class_names = {"0", "1"};
  data.images.mean = {0.5, 0.25};
  data.images.deviation = {0.5, 0.125};
  data.images.augment = augment;
  return data;
}

std::vector<std::uint32_t> all_rows(const Dataset<double>& data) {
  std::vector<std::uint32_t> rows(data.num_rows);
  for (std::uint32_t r = 0; r < rows.size(); ++r) rows[r] = r;
  return rows;
}

std::vector<double> changed(const Dataset<double>& data, const RandomStream& random, std::size_t first = 0) {
  std::vector<double> out(data.num_rows * kSize);
  data.gather_changed(all_rows(data), random, first, out.data());
  return out;
}

// The plain description: shift by (dy, dx) with zero bytes around, then mirror.
std::vector<double> reference(const Dataset<double>& data, std::size_t row, int dy, int dx, bool mirrored) {
  std::vector<double> out;
  for (std::size_t c = 0; c < kChannels; ++c)
    for (int y = 0; y < static_cast<int>(kHeight); ++y)
      for (int x = 0; x < static_cast<int>(kWidth); ++x) {
        const int from_y = y + dy, from_x = (mirrored ? static_cast<int>(kWidth) - 1 - x : x) + dx;
        const bool is_inside = from_y >= 0 && from_y < static_cast<int>(kHeight) && from_x >= 0 && from_x < static_cast<int>(kWidth);
        const int byte =
            is_inside
                ? data.images
                      .pixels[row * kSize + (c * kHeight + static_cast<std::size_t>(from_y)) * kWidth + static_cast<std::size_t>(from_x)]
                : 0;
        out.push_back((byte / 255.0 - data.images.mean[c]) / data.images.deviation[c]);
      }
  return out;
}

// Returns the change that made an image; {9, 9, false} if no change did.
std::tuple<int, int, bool> change_of(const Dataset<double>& data, std::size_t row, const double* image, int most) {
  for (int dy = -most; dy <= most; ++dy)
    for (int dx = -most; dx <= most; ++dx)
      for (const bool mirrored : {false, true}) {
        const std::vector<double> expected = reference(data, row, dy, dx, mirrored);
        bool is_same = true;
        for (std::size_t j = 0; j < kSize; ++j) is_same = is_same && std::abs(image[j] - expected[j]) < 1e-12;
        if (is_same) return {dy, dx, mirrored};
      }
  return {9, 9, false};
}

TEST(Augment, EveryImageIsCutAndMirroredAsDescribed) {
  const auto data = images({.crop = 2, .flip = true});
  std::set<int> rows_moved, columns_moved;
  int mirrored = 0;
  for (std::uint32_t round = 1; round <= 20; ++round) {
    const std::vector<double> out = changed(data, RandomStream(77, 3, round, 1));
    for (std::size_t r = 0; r < data.num_rows; ++r) {
      const auto [dy, dx, is_mirrored] = change_of(data, r, out.data() + r * kSize, 2);
      ASSERT_NE(dy, 9) << "row " << r << " is no change of its image";
      rows_moved.insert(dy);
      columns_moved.insert(dx);
      mirrored += is_mirrored ? 1 : 0;
    }
  }
  EXPECT_THAT(rows_moved, ElementsAre(-2, -1, 0, 1, 2));
  EXPECT_THAT(columns_moved, ElementsAre(-2, -1, 0, 1, 2));
  EXPECT_NEAR(mirrored, 400, 60);  // of 800; four standard deviations
}

TEST(Augment, EachOptionAlone) {
  const auto only_flip = images({.flip = true});
  const auto only_crop = images({.crop = 1});
  const std::vector<double> flipped = changed(only_flip, RandomStream(5, 0, 1)), cut = changed(only_crop, RandomStream(5, 0, 1));
  for (std::size_t r = 0; r < only_flip.num_rows; ++r) {
    EXPECT_NE(std::get<0>(change_of(only_flip, r, flipped.data() + r * kSize, 0)), 9);
    const auto [dy, dx, is_mirrored] = change_of(only_crop, r, cut.data() + r * kSize, 1);
    EXPECT_NE(dy, 9);
    EXPECT_FALSE(is_mirrored);
  }
}

TEST(Augment, DependsOnSeedClientRoundStepAndExampleAlone) {
  const auto data = images({.crop = 2, .flip = true});
  const auto base = changed(data, RandomStream(77, 3, 1, 1));
  EXPECT_EQ(base, changed(data, RandomStream(77, 3, 1, 1)));
  for (const RandomStream& other :
       {RandomStream(78, 3, 1, 1), RandomStream(77, 4, 1, 1), RandomStream(77, 3, 2, 1), RandomStream(77, 3, 1, 2)})
    EXPECT_NE(base, changed(data, other));
  // The second half gathered on its own is the second half.
  const std::vector<std::uint32_t> rows = all_rows(data);
  std::vector<double> half(20 * kSize);
  data.gather_changed(std::span(rows).subspan(20), RandomStream(77, 3, 1, 1), 20, half.data());
  EXPECT_TRUE(std::equal(half.begin(), half.end(), base.begin() + static_cast<std::ptrdiff_t>(half.size())));
}

// A model sees changed images in stochastic gradients alone.
TEST(Augment, OnlyMinibatchesAreChanged) {
  const auto plain = images({}), augmented = images({.crop = 2, .flip = true});
  const std::vector<std::uint32_t> rows = all_rows(plain);
  const std::span<const std::uint32_t> all(rows);
  Workspace workspace;
  const Exec exec{.workspace = &workspace};
  struct Seen {
    std::vector<double> full, stochastic;
    double loss = 0;
  };
  const auto see = [&](const Dataset<double>& data) {
    nn::NeuralModel<double> model({"dense(classes)"}, nn::Loss::softmax_cross_entropy);
    model.bind(data);
    const std::size_t P = model.layers().size();
    std::vector<double> x(P);
    model.initial(1, x.data());
    Seen seen{std::vector<double>(P), std::vector<double>(P)};
    const RandomStream random(9, 1, 1, 1);
    model.gradient(exec, shared_view(x.data(), 1, P), {&all, 1}, {seen.full.data(), nullptr, 1, P, P}, nullptr);
    model.stochastic_gradient(exec, shared_view(x.data(), 1, P), {{&all, 1}, {&random, 1}}, {seen.stochastic.data(), nullptr, 1, P, P},
                              nullptr);
    seen.loss = model.loss_sum(exec, x.data(), data, all, nullptr);
    return seen;
  };
  const Seen without = see(plain), with = see(augmented);
  EXPECT_EQ(without.full, with.full);
  EXPECT_EQ(without.loss, with.loss);
  EXPECT_EQ(without.full, without.stochastic);
  EXPECT_NE(without.stochastic, with.stochastic);
}

}  // namespace
}  // namespace fl
