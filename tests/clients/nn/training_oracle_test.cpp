// Compares networks after a few training steps with PyTorch's: the cases of tests/fixtures/training.txt, which make_training.py in the same
// folder writes.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>

#include "checks/model_cases.hpp"

namespace fl {
namespace {

constexpr std::size_t kSteps = 8;

struct Trained {
  std::vector<double> losses, parameters;
};

std::vector<double> numbers_of(const std::string& line) {
  std::istringstream words(line.substr(line.find(' ')));
  std::vector<double> numbers;
  for (double x = 0; words >> x;) numbers.push_back(x);
  return numbers;
}

Trained expected(const std::string& name) {
  std::ifstream file(std::string(FL_SOURCE_DIR) + "/tests/fixtures/training.txt");
  for (std::string line; std::getline(file, line);) {
    if (line != "case " + name) continue;
    std::string losses, parameters;
    std::getline(file, losses);
    std::getline(file, parameters);
    return {numbers_of(losses), numbers_of(parameters)};
  }
  ADD_FAILURE() << "no case " << name;
  return {};
}

// Rows of make_training.py.
Dataset<double> waves(std::size_t rows, const std::vector<std::size_t>& shape) {
  Dataset<double> data;
  data.name = "waves";
  data.num_rows = rows;
  data.num_features = std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
  if (shape.size() > 1) data.shape = shape;
  data.num_classes = 3;
  data.allocate_dense();
  for (std::size_t r = 0; r < rows; ++r) {
    const auto row = static_cast<double>(r);
    for (std::size_t j = 0; j < data.num_features; ++j)
      data.dense_row(r)[j] = std::sin(0.37 * row + 1.3 * static_cast<double>(j)) + 0.002 * row;
    data.label.push_back(static_cast<std::int32_t>(r * 7 % 11 % 3));
  }
  return data;
}

Dataset<double> words() {
  Dataset<double> data;
  data.name = "words";
  data.num_rows = 9;
  data.num_features = 6;
  data.num_classes = data.vocabulary.size = 5;
  data.tokens.resize_discard(data.num_rows * data.num_features);
  for (std::size_t r = 0; r < data.num_rows; ++r) {
    for (std::size_t t = 0; t < 6; ++t) data.tokens[r * 6 + t] = static_cast<std::int32_t>((3 * r + 5 * t + r * t) % 5);
    data.label.push_back(static_cast<std::int32_t>((2 * r + 1) % 5));
  }
  return data;
}

std::unique_ptr<Model<double>> network_of(const std::vector<std::string>& layers, const Dataset<double>& data) {
  Value::List texts;
  for (const std::string& layer : layers) texts.push_back(Value{layer});
  return checks::make_model<double>("neural_network", {{"layers", Value{texts}}}, data);
}

Trained train(const Model<double>& model, const Dataset<double>& data, double rate) {
  const LayerTable table = model.layers();
  const std::size_t P = table.size();
  Trained found{{}, std::vector<double>(P)};
  std::vector<double>& x = found.parameters;
  model.initial(1, x.data());
  std::vector<double> gamma(P, rate);
  for (const Layer& tensor : table.layers)
    for (std::size_t j = tensor.begin; j < tensor.begin + tensor.size(); ++j) {
      if (tensor.running_rate > 0)
        gamma[j] = tensor.running_rate;
      else
        x[j] = 0.4 * std::sin(1.7 * static_cast<double>(j) + 0.3);
    }
  Workspace workspace;
  Exec exec;
  exec.workspace = &workspace;
  const std::vector<std::uint32_t> rows = checks::all_rows(data.num_rows);
  const std::span<const std::uint32_t> all = rows;
  const RandomStream random;
  std::vector<double> g(P);
  for (std::size_t step = 0; step < kSteps; ++step) {
    double loss = 0;
    model.stochastic_gradient(exec, shared_view(x.data(), 1, P), {{&all, 1}, {&random, 1}}, {g.data(), nullptr, 1, P, P}, &loss);
    found.losses.push_back(loss);
    for (std::size_t j = 0; j < P; ++j) x[j] -= gamma[j] * g[j];
  }
  return found;
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t j = 0; j < found.size(); ++j) EXPECT_NEAR(found[j], expected[j], 1e-10 * (1 + std::fabs(expected[j]))) << j;
}

void expect_trained_like(const std::string& name, const std::vector<std::string>& layers, const Dataset<double>& data, double rate) {
  SCOPED_TRACE(name);
  const Trained pytorch = expected(name), found = train(*network_of(layers, data), data, rate);
  expect_near(found.losses, pytorch.losses);
  expect_near(found.parameters, pytorch.parameters);
}

// A minibatch has one mean and one variance, whatever its size.
TEST(TrainingOracleTest, BatchNormTakesAWholeMinibatchAsPyTorchDoes) {
  expect_trained_like("1200 rows under batch_norm", {"dense(4)", "batch_norm", "relu", "dense(classes)"}, waves(1200, {5}), 0.5);
  expect_trained_like("600 images under batch_norm",
                      {"conv2d(3, 3, padding=1, bias=false)", "batch_norm(momentum=0.3)", "relu", "flatten", "dense(classes)"},
                      waves(600, {2, 4, 4}), 0.2);
}

TEST(TrainingOracleTest, LstmHasPyTorchsTwoBiases) {
  expect_trained_like("lstm of two biases", {"embedding(vocabulary, 3)", "lstm(4, last=true)", "dense(classes)"}, words(), 1.0);
}

// The full gradient is that of all rows as one minibatch, but for the statistics, which have no part in it.
TEST(TrainingOracleTest, TheFullGradientTakesAllRowsAtOnce) {
  const Dataset<double> data = waves(1200, {5});
  const auto model = network_of({"dense(4)", "batch_norm", "relu", "dense(classes)"}, data);
  const std::size_t P = model->layers().size();
  std::vector<double> x(P), full(P), minibatch(P);
  model->initial(3, x.data());
  Workspace workspace;
  Exec exec;
  exec.workspace = &workspace;
  const std::vector<std::uint32_t> rows = checks::all_rows(data.num_rows);
  const std::span<const std::uint32_t> all = rows;
  const RandomStream random;
  double full_loss = 0, minibatch_loss = 0;
  model->gradient(exec, shared_view(x.data(), 1, P), {&all, 1}, {full.data(), nullptr, 1, P, P}, &full_loss);
  model->stochastic_gradient(exec, shared_view(x.data(), 1, P), {{&all, 1}, {&random, 1}}, {minibatch.data(), nullptr, 1, P, P},
                             &minibatch_loss);
  for (const Layer& tensor : model->layers().layers)
    if (tensor.running_rate > 0) std::fill_n(minibatch.begin() + static_cast<std::ptrdiff_t>(tensor.begin), tensor.size(), 0.0);
  EXPECT_EQ(full, minibatch);
  EXPECT_EQ(full_loss, minibatch_loss);
}

// The declared memory of a gradient is an upper bound on the memory of its workspace.
TEST(TrainingOracleTest, AWholeMinibatchSaysWhatItTakes) {
  const Dataset<double> data = waves(1200, {2, 4, 4});
  const auto model = network_of(
      {"conv2d(3, 3, padding=1)", "batch_norm", "relu", "residual([conv2d(3, 3, padding=1), batch_norm])", "dense(classes)"}, data);
  EXPECT_TRUE(model->minibatch_needs(1200).takes_whole);
  const std::size_t P = model->layers().size();
  std::vector<double> x(P), g(P);
  model->initial(3, x.data());
  Workspace workspace;
  Exec exec;
  exec.workspace = &workspace;
  const std::vector<std::uint32_t> rows = checks::all_rows(data.num_rows);
  const std::span<const std::uint32_t> all = rows;
  for (int call = 0; call < 3; ++call)  // a workspace is one piece from the second call on
    model->gradient(exec, shared_view(x.data(), 1, P), {&all, 1}, {g.data(), nullptr, 1, P, P}, nullptr);
  const auto declared = static_cast<double>(model->minibatch_needs(1200).bytes);
  const auto taken = static_cast<double>(workspace.capacity_bytes());
  EXPECT_LT(taken, 1.5 * declared);
  EXPECT_GT(taken, 0.8 * declared);
  EXPECT_GT(static_cast<double>(model->minibatch_needs(2400).bytes), 1.9 * declared);
}

}  // namespace
}  // namespace fl
