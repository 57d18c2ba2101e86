// Tests the costs that models state, against products counted by hand.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/clients/problem_data.hpp"

namespace fl::test {
namespace {

using checks::image_rows;
using checks::token_rows;
using Settings = std::vector<std::pair<std::string, Value>>;

Settings layers(const std::vector<std::string>& texts) {
  std::vector<Value> values;
  for (const std::string& text : texts) values.push_back(Value{text});
  return {{"layers", Value{values}}};
}

// The operations of a row by stretches, forward or backward.
template <class T>
std::vector<double> operations(const Model<T>& model, PassCost StretchCost::*pass) {
  std::vector<double> found;
  for (const StretchCost& stretch : model.cost()->stretches) found.push_back((stretch.*pass).row.operations);
  return found;
}

// A softmax over 10 classes: its exponentials, ten more operations for each class, and a logarithm; two for each derivative.
constexpr double kSoftmax = 10 * (kFunctionOperations + 3) + kFunctionOperations, kSlopes = 20;

// McMahan et al.'s 2NN on MNIST: 784-200-200-10, 199,210 parameters, of which 410 are biases.
TEST(ModelCostTest, TheTwoNnTakesItsProducts) {
  const Dataset<float> data = image_rows<float>(20, 10, 1);
  const auto model = make_model<float>("mlp", {{"hidden", Value{std::vector<Value>{Value{200}, Value{200}}}}}, data);
  ASSERT_TRUE(model->cost().has_value());
  ASSERT_EQ(model->layers().size(), 199210u);
  EXPECT_EQ(operations(*model, &StretchCost::forward),
            (std::vector<double>{2 * 156800 + 200, 200, 2 * 40000 + 200, 200, 2 * 2000 + 10, kSoftmax}));
  // The first layer needs no derivative by the pixels; the others take two products.
  EXPECT_EQ(operations(*model, &StretchCost::backward),
            (std::vector<double>{2 * 156800 + 200, 400, 4 * 40000 + 200, 400, 4 * 2000 + 10, kSlopes}));
  // 2 * 198,800 + 410 forward, 2 * (2 * 198,800 - 156,800) + 410 backward, and what is not a product.
  EXPECT_EQ(model->cost()->gradient(1).operations, 398010 + 482010 + 400 + 800 + kSoftmax + kSlopes);
}

TEST(ModelCostTest, StretchesAreTheParametersInOrder) {
  const Dataset<float> data = image_rows<float>(20, 10, 1);
  const auto model = make_model<float>("neural_network", layers({"dense(8)", "batch_norm", "relu", "dense(classes)"}), data);
  const std::vector<StretchCost>& all = model->cost()->stretches;
  std::vector<std::size_t> begins, ends;
  for (const StretchCost& stretch : all) begins.push_back(stretch.begin), ends.push_back(stretch.end);
  // Running averages are the last parameters of a model, and of no stretch.
  EXPECT_EQ(begins, (std::vector<std::size_t>{0, 6280, 6296, 6296, 6386}));
  EXPECT_EQ(ends, (std::vector<std::size_t>{6280, 6296, 6296, 6386, 6386}));
}

// Weights are read once forward, once for the derivative by the input, and their gradient is written; rows come on top.
TEST(ModelCostTest, WeightsAreReadOncePerMinibatch) {
  const Dataset<float> data = image_rows<float>(20, 10, 1);
  const auto model = make_model<float>("neural_network", layers({"dense(classes)"}), data);
  const ModelCost& cost = *model->cost();
  const double one = cost.gradient(1).bytes, two = cost.gradient(2).bytes;
  EXPECT_EQ(2 * one - two, 4 * 2 * 7850);
  EXPECT_EQ(cost.gradient(0), Work{});
  EXPECT_EQ(cost.gradient(2).operations, 2 * cost.gradient(1).operations);
}

// LeNet-5's convolutions on 28 x 28: 6 maps of 28 x 28 from windows of 25, 16 maps of 10 x 10 from windows of 150.
TEST(ModelCostTest, LeNetTakesItsWindows) {
  const Dataset<float> data = image_rows<float>(20, 10, 1);
  const auto model = make_model<float>("neural_network",
                                       layers({"conv2d(6, 5, padding=2)", "tanh", "mean_pool(2)", "conv2d(16, 5)", "tanh", "mean_pool(2)",
                                               "dense(120)", "tanh", "dense(84)", "tanh", "dense(classes)"}),
                                       data);
  const double f = kFunctionOperations;
  EXPECT_EQ(operations(*model, &StretchCost::forward),
            (std::vector<double>{2 * 6 * 784 * 25 + 6 * 784, f * 6 * 784, 6 * 784, 2 * 16 * 100 * 150 + 1600, f * 1600, 1600,
                                 2 * 400 * 120 + 120, f * 120, 2 * 120 * 84 + 84, f * 84, 2 * 84 * 10 + 10, kSoftmax}));
  const std::vector<double> backward = operations(*model, &StretchCost::backward);
  EXPECT_EQ(backward[0], 2 * 6 * 784 * 25 + 6 * 784) << "no derivative by the image";
  EXPECT_EQ(backward[3], 4 * 16 * 100 * 150 + 1600);
}

TEST(ModelCostTest, BranchesAddUp) {
  const Dataset<float> data = image_rows<float>(20, 10, 1);
  const auto plain = make_model<float>("neural_network", layers({"dense(16)", "dense(16)", "dense(classes)"}), data);
  const auto joined = make_model<float>("neural_network", layers({"dense(16)", "residual([dense(16)])", "dense(classes)"}), data);
  EXPECT_EQ(joined->cost()->gradient(1).operations - plain->cost()->gradient(1).operations, 16 + 16) << "a sum each way";
}

TEST(ModelCostTest, LinearModelsTakeTheirFeaturesTwice) {
  const auto rows = random_rows(30, 50, 3, 0.2, 1);
  std::size_t stored = 0;
  for (const PlainRow& row : rows) stored += row.entries.size();
  const auto dense = make_model<double>("logistic_regression", {}, make_dataset<double>(rows, Storage::dense, 50));
  const double links = 3 * (kFunctionOperations + 4), biases = 2 * 3;
  EXPECT_EQ(dense->cost()->gradient(30).operations, 30 * (4 * 50 * 3 + biases + links));
  const auto sparse = make_model<double>("logistic_regression", {}, make_dataset<double>(rows, Storage::sparse, 50));
  EXPECT_EQ(sparse->cost()->gradient(30, static_cast<double>(stored)).operations,
            static_cast<double>(stored) * 4 * 3 + 30 * (biases + links));
  const auto binary = make_model<double>("linear_regression", {{"bias", Value{false}}}, make_dataset<double>(rows, Storage::dense, 50));
  EXPECT_EQ(binary->cost()->gradient(1).operations, 4 * 50 + 3);
}

TEST(ModelCostTest, RecurrentLayersCountTheirPositions) {
  const Dataset<double> data = token_rows<double>(20, 1);
  const auto model =
      make_model<double>("neural_network", layers({"embedding(vocabulary, 3)", "lstm(4, last=true)", "dense(classes)"}), data);
  const std::vector<double> forward = operations(*model, &StretchCost::forward);
  EXPECT_EQ(forward[0], 0) << "vectors are copied";
  // Six positions of 16 gates from 3 inputs, five of them from 4 states; a bias for each gate, five functions and four operations a unit.
  EXPECT_EQ(forward[1], 2 * 6 * 16 * 3 + 2 * 5 * 16 * 4 + 6 * 16 + 6 * 4 * (5 * kFunctionOperations + 4));
}

}  // namespace
}  // namespace fl::test
