// Tests named networks: their published sizes, that they learn, and their errors.
#include <gmock/gmock.h>

#include "checks/model_cases.hpp"
#include "tests/support/sanitized.hpp"

namespace fl {
namespace {

using checks::make_model;
using ::testing::HasSubstr;

Dataset<float> images(std::size_t channels, std::size_t size, std::size_t classes) {
  Dataset<float> data;
  data.name = "images";
  data.shape = {channels, size, size};
  data.num_rows = classes;
  data.num_features = channels * size * size;
  data.num_classes = classes;
  data.images.pixels.resize_discard(data.num_rows * data.num_features);
  for (std::size_t r = 0; r < classes; ++r) data.label.push_back(static_cast<std::int32_t>(r));
  return data;
}

std::size_t size_of(const std::string& model, const std::vector<std::pair<std::string, Value>>& options, const Dataset<float>& data) {
  return make_model<float>(model, options, data)->layers().size();
}

TEST(ModelsTest, HaveTheirPublishedSizes) {
  const auto mnist = images(1, 28, 10), cifar = images(3, 32, 10);
  EXPECT_EQ(size_of("2nn_mcmahan", {}, mnist), 199210u);
  EXPECT_EQ(size_of("mlp", {{"hidden", Value{Value::List{}}}}, mnist), 7850u);
  EXPECT_EQ(size_of("lenet5", {}, mnist), 61706u);
  EXPECT_EQ(size_of("cnn_mcmahan", {}, mnist), 1663370u);
  EXPECT_EQ(size_of("cnn_cifar", {}, cifar), 62006u);
  EXPECT_EQ(size_of("resnet18", {}, cifar), 11173962u);
  EXPECT_EQ(size_of("resnet18", {{"norm", Value{std::string("batch")}}}, cifar), 11173962u + 9600u);
  Dataset<float> text = checks::token_rows<float>(3, 1);
  text.vocabulary.size = text.num_classes = 90;
  const Value::List two_biases{Value{std::string("embedding(vocabulary, 8)")}, Value{std::string("lstm(256)")},
                               Value{std::string("lstm(256)")}, Value{std::string("dense(classes)")}};
  EXPECT_EQ(size_of("char_lstm", {}, text), 820522u);
  text.vocabulary.next_token = NextToken::after_each;
  EXPECT_EQ(size_of("char_lstm", {}, text), 820522u);
  EXPECT_EQ(size_of("neural_network", {{"layers", Value{two_biases}}}, text), 822570u);
  Dataset<float> ratings = checks::rating_rows<float>(37, 1);
  ratings.vocabulary.size = 943 + 1682;  // MovieLens 100K
  ratings.vocabulary.num_users = 943;
  EXPECT_EQ(size_of("ncf", {}, ratings), 40u * 2625 + 2761);
}

TEST(ModelsTest, HaveAFormForAGpu) {
  const auto mnist = images(1, 28, 10), cifar = images(3, 32, 10);
  for (const char* model : {"mlp", "2nn_mcmahan", "lenet5", "cnn_mcmahan"})
    EXPECT_TRUE(make_model<float>(model, {}, mnist)->as_form().has_value()) << model;
  for (const char* model : {"cnn_cifar", "resnet18"}) EXPECT_TRUE(make_model<float>(model, {}, cifar)->as_form().has_value()) << model;
  const auto characters = checks::token_rows<float>(3, 1), text = checks::text_rows<float>(8, 1);
  EXPECT_TRUE(make_model<float>("char_lstm", {}, characters)->as_form().has_value());
  EXPECT_TRUE(make_model<float>("char_lstm", {}, text)->as_form().has_value());
  EXPECT_TRUE(make_model<float>("ncf", {}, checks::rating_rows<float>(37, 1))->as_form().has_value());
}

TEST(ModelsTest, PenaltiesLeaveStatisticsOut) {
  const auto data = images(2, 4, 3);
  const Value::List layers{Value{std::string("batch_norm")}, Value{std::string("dense(classes)")}};
  const auto model = make_model<float>("neural_network", {{"layers", Value{layers}}}, data);
  const LayerTable table = model->layers();
  std::vector<float> x(table.size(), 0.75f);
  Workspace workspace;
  Exec exec;
  exec.workspace = &workspace;
  const std::vector<std::uint32_t> rows{0, 1, 2};
  const std::span<const std::uint32_t> all = rows;
  const RandomStream random;
  const auto gradient = [&](double l2) {
    model->set_regulariser(l2, 0);
    std::vector<float> g(x.size());
    model->stochastic_gradient(exec, shared_view(x.data(), 1, x.size()), {{&all, 1}, {&random, 1}},
                               {g.data(), nullptr, 1, g.size(), g.size()}, nullptr);
    return g;
  };
  const std::vector<float> plain = gradient(0), penalised = gradient(0.5);
  std::size_t weights = 0;
  for (const Layer& tensor : table.layers) {
    weights += tensor.running_rate > 0 ? 0 : tensor.size();
    for (std::size_t j = tensor.begin; j < tensor.begin + tensor.size(); ++j)
      EXPECT_NEAR(penalised[j] - plain[j], tensor.running_rate > 0 ? 0 : 0.375, 1e-6) << tensor.name;
  }
  EXPECT_LT(weights, table.size());
  EXPECT_NEAR(model->regulariser(x.data()), 0.25 * 0.5625 * static_cast<double>(weights), 1e-9);
}

// 1,024 copies of a row are computed in pieces. If both pieces dropped the same entries, the mean would be that of 512 copies.
TEST(ModelsTest, DropoutDrawsAnewForEveryRowOfALongMinibatch) {
  Dataset<double> data;
  data.name = "copies";
  data.num_rows = 1024;
  data.num_features = 5;
  data.num_classes = 2;
  data.allocate_dense();
  for (std::size_t r = 0; r < data.num_rows; ++r) {
    for (std::size_t j = 0; j < data.num_features; ++j) data.dense_row(r)[j] = 1 + static_cast<double>(j);
    data.label.push_back(0);
  }
  const Value::List layers{Value{std::string("dropout(0.5)")}, Value{std::string("dense(classes)")}};
  const auto model = checks::make_model<double>("neural_network", {{"layers", Value{layers}}}, data);
  const std::size_t P = model->layers().size();
  std::vector<double> x(P), half(P), all(P);
  model->initial(1, x.data());
  Workspace workspace;
  Exec exec;
  exec.workspace = &workspace;
  const RandomStream random(1, 2, 3);
  const std::vector<std::uint32_t> rows = checks::all_rows(data.num_rows);
  const auto gradient_of = [&](std::size_t count, std::vector<double>& gradient) {
    const auto some = std::span<const std::uint32_t>(rows).first(count);
    model->stochastic_gradient(exec, shared_view(x.data(), 1, P), {{&some, 1}, {&random, 1}}, {gradient.data(), nullptr, 1, P, P}, nullptr);
  };
  gradient_of(512, half);
  gradient_of(1024, all);
  EXPECT_GT(std::fabs(all[0] - half[0]), 1e-6);
}

// Full-batch gradient descent on few rows drives the loss down, whatever the layers.
TEST(ModelsTest, LearnAFewRowsByHeart) {
  FL_ONLY_ARITHMETIC();
  const std::vector<checks::ModelCase> cases = {
      {.model = "mlp", .label = "mlp", .num_classes = 5},
      {.model = "lenet5", .label = "lenet5", .data = checks::ModelCase::Data::images, .num_classes = 10},
      {"char_lstm", "char_lstm", {{"units", Value{std::int64_t{16}}}}, checks::ModelCase::Data::tokens},
      {"char_lstm", "char_lstm at every position", {{"units", Value{std::int64_t{24}}}}, checks::ModelCase::Data::text},
      {"ncf", "ncf", {}, checks::ModelCase::Data::ratings},
  };
  for (const auto& c : cases) {
    checks::ModelBench<float> bench(c);
    bench.model->set_regulariser(0, 0);
    auto x = bench.point(1);
    const std::vector<std::uint32_t> rows{0, 1, 2, 3, 4, 5, 6, 7};
    double first = 0, last = 0;
    const float rate = c.model == "char_lstm" || c.model == "ncf" ? 1.0f : 0.1f;
    for (int step = 0; step < 300; ++step) {
      const auto g = bench.gradient(x, rows, &last);
      if (step == 0) first = last;
      for (std::size_t j = 0; j < x.size(); ++j) x[j] -= rate * g[j];
    }
    EXPECT_LT(last, 0.3 * first) << c.label;
  }
}

std::string refusal_of(const std::vector<std::string>& layers, const std::string& loss, const Dataset<float>& data) {
  Value::List texts;
  for (const std::string& layer : layers) texts.push_back(Value{layer});
  try {
    static_cast<void>(make_model<float>("neural_network", {{"layers", Value{texts}}, {"loss", Value{loss}}}, data));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(ModelsTest, WhatDoesNotFitTheDataIsRefused) {
  const auto data = images(1, 28, 10);
  EXPECT_THAT(refusal_of({"dense(7)"}, "softmax_cross_entropy", data), HasSubstr("the last layer has 7 outputs, the data 10 classes"));
  EXPECT_THAT(refusal_of({"relu"}, "softmax_cross_entropy", data), HasSubstr("no layer has a parameter"));
  EXPECT_THAT(refusal_of({"dense(1)"}, "squared_error", data), HasSubstr("has no targets"));
  EXPECT_THAT(refusal_of({"embedding(vocabulary, 3)", "dense(classes)"}, "softmax_cross_entropy", data), HasSubstr("vocabulary"));
  auto targets = images(1, 4, 2);
  targets.num_classes = 0;
  targets.target = {0, 1};
  EXPECT_THAT(refusal_of({"dense(2)"}, "logistic", targets), HasSubstr("needs one output"));
  EXPECT_THAT(refusal_of({"dense(2)"}, "softmax_cross_entropy", targets), HasSubstr("needs at least two"));
  const auto text = checks::text_rows<float>(8, 1);
  EXPECT_THAT(refusal_of({"embedding(vocabulary, 3)", "lstm(4, last=true)", "dense(classes)"}, "softmax_cross_entropy", text),
              HasSubstr("every one of 6 positions has a label of 5 classes, the last layer gives 5"));
  EXPECT_THAT(refusal_of({"dense(1)"}, "squared_error", text), HasSubstr("has a label at every position"));
  EXPECT_THROW(static_cast<void>(make_model<float>("ncf", {}, text)), ConfigError);
}

TEST(ModelsTest, PixelsAreNormalisedByTheirChannel) {
  auto data = images(2, 1, 2);
  data.images.mean = {0.5, 0.0};
  data.images.deviation = {0.25, 2.0};
  const std::uint8_t bytes[] = {0, 255, 255, 51};
  std::copy(bytes, bytes + 4, data.images.pixels.data());
  const std::vector<std::uint32_t> rows{1, 0};
  std::vector<float> out(4);
  data.gather(rows, out.data());
  EXPECT_THAT(out, ::testing::Pointwise(::testing::FloatNear(1e-6f), {2.0f, 0.1f, -2.0f, 0.5f}));
  data.expand_pixels();
  EXPECT_FALSE(data.has_pixels());
  std::vector<float> dense(4);
  data.gather(rows, dense.data());
  EXPECT_EQ(dense, out);
}

}  // namespace
}  // namespace fl
