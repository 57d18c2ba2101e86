// Tests the clients' views of their rows: rotations calculated by hand, noise by its variance, and a problem whose test set is unchanged.
#include "scenarios/data/feature_shift.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "fl_core/config/error.hpp"
#include "tests/support/run_scenario.hpp"
#include "tests/support/scenario_text.hpp"

namespace fl {
namespace {

// Two channels of 3 x 3: bytes 0 .. 8 and 10 .. 18 in every row.
Dataset<double> small_images(std::size_t num_rows) {
  Dataset<double> data;
  data.name = "small";
  data.num_rows = num_rows;
  data.num_features = 18;
  data.num_classes = 2;
  data.shape = {2, 3, 3};
  data.label.assign(num_rows, 0);
  data.images.pixels = Buffer<std::uint8_t>(num_rows * 18);
  for (std::size_t j = 0; j < data.images.pixels.size(); ++j)
    data.images.pixels[j] = static_cast<std::uint8_t>(j % 18 + (j % 18 >= 9 ? 1 : 0));
  return data;
}

std::vector<int> pixels_of_row(const Dataset<double>& data, std::size_t row) {
  return {data.images.pixels.data() + row * data.num_features, data.images.pixels.data() + (row + 1) * data.num_features};
}

TEST(FeatureShift, TurnsEachChannelCounterClockwise) {
  const std::vector<Shard> shards = {{0}, {1}, {2}, {3}};
  const std::vector<FeatureShift> shifts = {{.quarter_turns = 0}, {.quarter_turns = 1}, {.quarter_turns = 2}, {.quarter_turns = 3}};
  const Dataset<double> seen = as_clients_see<double>(small_images(5), shards, shifts, 1);
  const std::vector<std::vector<int>> expected = {{0, 1, 2, 3, 4, 5, 6, 7, 8},
                                                  {2, 5, 8, 1, 4, 7, 0, 3, 6},
                                                  {8, 7, 6, 5, 4, 3, 2, 1, 0},
                                                  {6, 3, 0, 7, 4, 1, 8, 5, 2},
                                                  {0, 1, 2, 3, 4, 5, 6, 7, 8}};  // the last row belongs to no client
  for (std::size_t row = 0; row < 5; ++row) {
    std::vector<int> both = expected[row];
    for (const int pixel : expected[row]) both.push_back(pixel + 10);
    EXPECT_EQ(pixels_of_row(seen, row), both) << row;
  }
}

TEST(FeatureShift, TurnsDenseRowsAsPixels) {
  const std::vector<Shard> shards = {{0, 2}, {1}};
  const std::vector<FeatureShift> shifts = {{.quarter_turns = 3}, {.quarter_turns = 1}};
  Dataset<double> as_pixels = as_clients_see<double>(small_images(3), shards, shifts, 1), expanded = small_images(3);
  expanded.expand_pixels();
  const Dataset<double> as_numbers = as_clients_see<double>(expanded, shards, shifts, 1);
  as_pixels.expand_pixels();
  EXPECT_TRUE(std::ranges::equal(as_pixels.dense.span(), as_numbers.dense.span()));
}

TEST(FeatureShift, DrawsNoiseOncePerRowWithTheVarianceAskedFor) {
  constexpr std::size_t kRows = 4000;
  std::vector<Shard> shards(3);
  for (std::uint32_t row = 0; row < kRows - 10; ++row) shards[row % 2].push_back(row);
  shards[2] = {kRows - 10};
  const std::vector<FeatureShift> shifts = {{.noise_variance = 0.25}, {.noise_variance = 4}, {}};
  Dataset<double> plain = small_images(kRows);
  const Dataset<double> seen = as_clients_see<double>(plain, shards, shifts, 7), again = as_clients_see<double>(plain, shards, shifts, 7);
  plain.expand_pixels();
  ASSERT_FALSE(seen.has_pixels());
  for (std::size_t i = 0; i < 2; ++i) {
    double sum = 0, squares = 0;
    for (const std::uint32_t row : shards[i])
      for (std::size_t j = 0; j < 18; ++j) {
        const double z = seen.dense_row(row)[j] - plain.dense_row(row)[j];
        sum += z;
        squares += z * z;
      }
    const auto count = static_cast<double>(shards[i].size() * 18);
    EXPECT_NEAR(squares / count, shifts[i].noise_variance, 0.05 * shifts[i].noise_variance);  // 6 deviations of an estimate from 36000
    EXPECT_NEAR(sum / count, 0, 0.05);
  }
  for (std::uint32_t row = kRows - 10; row < kRows; ++row) EXPECT_EQ(seen.dense_row(row)[5], plain.dense_row(row)[5]);
  EXPECT_TRUE(std::ranges::equal(seen.dense.span(), again.dense.span()));
}

TEST(FeatureShift, RefusesWhatCannotBeShifted) {
  const std::vector<Shard> shards = {{0}, {1}};
  const std::vector<FeatureShift> turn = {{}, {.quarter_turns = 1}}, noise = {{}, {.noise_variance = 1}};
  const auto seen = [&](Dataset<double> data, const std::vector<FeatureShift>& shifts) {
    return as_clients_see<double>(data, shards, shifts, 1).num_rows;
  };
  const auto changed = [](auto change) {
    Dataset<double> data = small_images(2);
    change(data);
    return data;
  };
  EXPECT_EQ(seen(small_images(2), turn), 2u);
  EXPECT_EQ(seen(small_images(2), noise), 2u);
  EXPECT_THROW((void)seen(changed([](auto& d) { d.shape = {2, 9, 1}; }), turn), ConfigError);
  EXPECT_THROW((void)seen(changed([](auto& d) { d.shape = {}; }), turn), ConfigError);
  EXPECT_THROW((void)seen(changed([](auto& d) { d.vocabulary.size = 80; }), noise), ConfigError);
  EXPECT_THROW((void)seen(changed([](auto& d) { d.is_sparse = true; }), noise), ConfigError);
  EXPECT_THROW((void)seen(changed([](auto& d) { d.label.clear(); }), noise), ConfigError);
}

// The gradients and the loss of clients read what clients see; rows held out for testing are as the data have them.
TEST(FeatureShift, ReachesClientsAndNotTheTestSet) {
  test::ScenarioText s = test::mushrooms(4);
  s.data = "name = 'mushrooms'\nrows = 1003\ntest_fraction = 0.25\nstorage = 'dense'";
  s.partition = "kind = 'shuffled'\nclients = 4";
  s.model = "kind = 'logistic_regression'\nl2 = 0.01";
  s.local = "kind = 'gradient'\nlearning_rate = 0.5";
  test::OneRun<double> plain(s.str());
  s.partition = "kind = 'feature_noise'\nsigma = 1\nclients = 4";
  test::OneRun<double> noisy(s.str());
  ASSERT_EQ(plain.problem().shards(), noisy.problem().shards());
  ASSERT_EQ(plain.problem().test_rows(), noisy.problem().test_rows());
  std::vector<double> x(plain.problem().P());
  std::iota(x.begin(), x.end(), -60.0);
  for (double& v : x) v /= 100;
  EXPECT_EQ(plain->evaluator().test(x).loss, noisy->evaluator().test(x).loss);
  EXPECT_GT(noisy->evaluator().train_loss(x), 1.01 * plain->evaluator().train_loss(x));
  EXPECT_NE(plain->evaluator().gradient(x).norm_sq, noisy->evaluator().gradient(x).norm_sq);
}

}  // namespace
}  // namespace fl
