// Compares every layer with finite differences in double, alone and inside a network. Tests layers as text and the initial weights.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "clients/nn/network.hpp"

namespace fl::nn {
namespace {

using ::testing::HasSubstr;

const DataNames kNames{{"classes", 4}, {"features", 6}, {"vocabulary", 9}, {"users", 5}, {"items", 7}};

struct LayerCase {
  std::string layer;
  std::vector<std::size_t> input, output;
  std::size_t parameters = 0;
  bool tokens = false;  // the input is class numbers below 5, and has no derivative
};

std::vector<LayerCase> layer_cases() {
  return {
      {"dense(5)", {6}, {5}, 35},
      {"dense(5, bias=false)", {2, 3, 1}, {5}, 30},
      {"dense(3)", {4, 5}, {4, 3}, 18},
      {"relu", {7}, {7}},
      {"tanh", {2, 3}, {2, 3}},
      {"gelu", {7}, {7}},
      {"flatten", {2, 3, 4}, {24}},
      {"dropout(0.4)", {30}, {30}},
      {"batch_norm", {3, 2, 2}, {3, 2, 2}, 12},
      {"batch_norm", {5}, {5}, 20},
      {"max_pool(2)", {2, 6, 5}, {2, 3, 2}},
      {"max_pool(2)", {3, 4, 20}, {3, 2, 10}},
      {"max_pool(2)", {5, 6, 2}, {5, 3, 1}},
      {"max_pool(3, stride=1)", {1, 5, 5}, {1, 3, 3}},
      {"mean_pool(2)", {2, 4, 6}, {2, 2, 3}},
      {"mean_pool(size=0)", {3, 4, 5}, {3, 1, 1}},
      {"conv2d(3, 3)", {2, 5, 6}, {3, 3, 4}, 57},
      {"conv2d(2, 5, padding=2)", {1, 6, 6}, {2, 6, 6}, 52},
      {"conv2d(4, 3, padding=1, stride=2, bias=false)", {3, 7, 8}, {4, 4, 4}, 108},
      {"conv2d(13, 3, padding=2)", {3, 4, 20}, {13, 6, 22}, 364},
      {"conv2d(3, 7, padding=3)", {2, 9, 9}, {3, 9, 9}, 297},
      {"conv2d(9, 5)", {4, 6, 21}, {9, 2, 17}, 909},
      {"conv2d(37, 3, padding=1)", {2, 4, 5}, {37, 4, 5}, 703},
      {"conv2d(33, 5, padding=2)", {1, 3, 4}, {33, 3, 4}, 858},
      {"conv2d(32, 7, padding=3)", {1, 4, 3}, {32, 4, 3}, 1600},
      {"conv2d(2, 4)", {2, 5, 5}, {2, 2, 2}, 66},
      {"conv2d(17, 3, padding=1)", {16, 2, 4}, {17, 2, 4}, 2465},
      {"conv2d(16, 3)", {17, 6, 4}, {16, 4, 2}, 2464},
      {"conv2d(2, 1, stride=2)", {3, 5, 5}, {2, 3, 3}, 8},
      {"group_norm(2)", {4, 3, 2}, {4, 3, 2}, 8},
      {"group_norm", {6}, {6}, 12},
      {"embedding(5, 3)", {4}, {4, 3}, 15, true},
      {"lstm(4)", {5, 3}, {5, 4}, 4 * 4 * (3 + 4) + 32},
      {"lstm(3, last=true)", {4, 2}, {3}, 4 * 3 * (2 + 3) + 24},
      {"lstm(3, bias=one, forget_bias=1)", {4, 2}, {4, 3}, 4 * 3 * (2 + 3) + 12},
      {"lstm(3)", {1, 2}, {1, 3}, 4 * 3 * (2 + 3) + 24},
      {"residual([conv2d(2, 3, padding=1), tanh, conv2d(2, 3, padding=1)])", {2, 4, 4}, {2, 4, 4}, 76},
      {"residual([conv2d(3, 3, padding=1, stride=2), gelu], shortcut=[conv2d(3, 1, stride=2)])", {2, 4, 4}, {3, 2, 2}, 66},
      {"residual([dropout(0.3), dense(6)])", {6}, {6}, 42},
      {"conv2d(2, 3, padding=3)", {1, 2, 2}, {2, 6, 6}, 20},
      {"product", {2, 5}, {5}},
      {"product", {3, 4}, {4}},
      {"concat([dense(3), tanh], [dense(2), dropout(0.3)])", {5}, {5}, 30},
      {"concat([embedding(5, 3), product], [embedding(5, 2), flatten])", {2}, {7}, 25, true},
  };
}

bool is_case_of(const LayerCase& c, const std::string& name) { return c.layer.substr(0, c.layer.find('(')) == name; }

// Returns the cases above, and each other registered layer with its defaults on the first of some inputs that it accepts.
std::vector<LayerCase> every_layer_case() {
  std::vector<LayerCase> cases = layer_cases();
  for (const std::string& name : Registry::instance().names("layer")) {
    const std::vector<std::vector<std::size_t>> inputs{{2, 4, 4}, {6}, {4, 3}};
    for (auto input = inputs.begin(); input != inputs.end(); ++input) {
      if (std::ranges::any_of(cases, [&name](const LayerCase& c) { return is_case_of(c, name); })) break;
      try {
        const auto layer = make_layer<double>(name, kNames);
        const Shape output = layer->bind({*input});
        cases.push_back({name, *input, output.dims, num_parameters(*layer)});
      } catch (const ConfigError&) {  // it takes another input, or has options without a default and needs a case above
      }
    }
  }
  return cases;
}

class LayerTest : public ::testing::TestWithParam<LayerCase> {
 protected:
  // sum_j coefficient_j out_j as a function of input and weights: its derivatives are what backward gives for d_out = coefficients.
  struct Bench {
    explicit Bench(const LayerCase& c) : layer(make_layer<double>(c.layer, kNames)) {
      exec.workspace = &workspace;
      output = layer->bind({c.input});
      P = num_parameters(*layer);
      RandomSequence random(3, Purpose::start);
      w.resize(P);
      layer->initial(random, w.data());
      for (double& v : w) v += 0.3 * random.normal();
      in.resize(kB * Shape{c.input}.size());
      for (double& v : in) v = c.tokens ? static_cast<double>(random.below(5)) : random.normal();
      coefficient.resize(kB * output.size());
      for (double& v : coefficient) v = random.normal();
      out.resize(coefficient.size());
      saved.resize(layer->saved_size(kB));
    }
    double value() {
      layer->forward(pass(), w.data(), in.data(), out.data(), saved.data());
      double sum = 0;
      for (std::size_t j = 0; j < out.size(); ++j) sum += coefficient[j] * out[j];
      return sum;
    }
    Pass pass(bool accumulate = false) const {
      return {.exec = exec, .B = kB, .training = true, .accumulate = accumulate, .drops = true, .random = RandomStream(5, 1, 2)};
    }
    double slope(double& x) {
      const double at = x, h = 1e-6;
      x = at + h;
      const double above = value();
      x = at - h;
      const double below = value();
      x = at;
      return (above - below) / (2 * h);
    }
    static constexpr std::size_t kB = 3;
    Workspace workspace;
    Exec exec;
    std::unique_ptr<Module<double>> layer;
    Shape output;
    std::size_t P = 0;
    std::vector<double> w, in, coefficient, out, saved;
  };
};

TEST_P(LayerTest, ShapesAndParametersAreAsStated) {
  const Bench bench(GetParam());
  EXPECT_EQ(bench.output.dims, GetParam().output);
  EXPECT_EQ(bench.P, GetParam().parameters);
}

TEST_P(LayerTest, GradientsAreFiniteDifferences) {
  Bench bench(GetParam());
  static_cast<void>(bench.value());
  std::vector<double> d_in(bench.in.size(), 7.0), d_w(bench.P, 7.0);
  bench.layer->backward(bench.pass(), bench.w.data(), bench.in.data(), bench.out.data(), bench.saved.data(), bench.coefficient.data(),
                        GetParam().tokens ? nullptr : d_in.data(), d_w.data());
  const auto tensors = bench.layer->tensors();
  const auto is_statistic = [&tensors](std::size_t j) {
    return std::any_of(tensors.begin(), tensors.end(),
                       [j](const Layer& t) { return t.running_rate > 0 && j >= t.begin && j < t.begin + t.size(); });
  };
  for (std::size_t j = 0; j < bench.P; ++j)
    if (!is_statistic(j)) {
      EXPECT_NEAR(d_w[j], bench.slope(bench.w[j]), 1e-7 * (1 + std::fabs(d_w[j]))) << "weight " << j;
    }
  if (GetParam().tokens) return;
  for (std::size_t j = 0; j < d_in.size(); ++j)
    EXPECT_NEAR(d_in[j], bench.slope(bench.in[j]), 1e-7 * (1 + std::fabs(d_in[j]))) << "input " << j;
}

TEST_P(LayerTest, AccumulatesWhereItIsAskedTo) {
  Bench bench(GetParam());
  static_cast<void>(bench.value());
  std::vector<double> once(bench.P), twice(bench.P, 2.0);
  const auto backward = [&bench](bool accumulate, std::vector<double>& d_w) {
    bench.layer->backward(bench.pass(accumulate), bench.w.data(), bench.in.data(), bench.out.data(), bench.saved.data(),
                          bench.coefficient.data(), nullptr, d_w.data());
  };
  backward(false, once);
  backward(true, twice);
  for (std::size_t j = 0; j < bench.P; ++j) EXPECT_NEAR(twice[j], once[j] + 2, 1e-12 * (1 + std::fabs(once[j])));
}

std::string name_of(const ::testing::TestParamInfo<LayerCase>& info) {
  std::string name = std::to_string(info.index) + "_" + info.param.layer;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(Every, LayerTest, ::testing::ValuesIn(every_layer_case()), name_of);

TEST(LayersTest, EveryRegisteredLayerIsTried) {
  for (const std::string& name : Registry::instance().names("layer")) {
    const auto cases = every_layer_case();
    EXPECT_TRUE(std::ranges::any_of(cases, [&name](const LayerCase& c) { return is_case_of(c, name); })) << name;
  }
}

std::string refusal_of(const std::string& layer, const Shape& input) {
  try {
    static_cast<void>(make_layer<float>(layer, kNames)->bind(input));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(LayersTest, WrongLayersAreRefusedWithTheirPlace) {
  const Shape image{{1, 8, 8}};
  EXPECT_THAT(refusal_of("denze(3)", image), HasSubstr("did you mean \"dense\"?"));
  EXPECT_THAT(refusal_of("dense(units 3)", image), HasSubstr("character 13: expected ','"));
  EXPECT_THAT(refusal_of("dense(3", image), HasSubstr("expected ','"));
  EXPECT_THAT(refusal_of("dense(3))", image), HasSubstr("character 9: expected the end"));
  EXPECT_THAT(refusal_of("dense(unit=3)", image), HasSubstr("did you mean \"units\"?"));
  EXPECT_THAT(refusal_of("dense(3, units=4)", image), HasSubstr("units is given twice"));
  EXPECT_THAT(refusal_of("dense", image), HasSubstr("units is missing and has no default; its meaning: outputs"));
  EXPECT_THAT(refusal_of("dense(0)", image), HasSubstr("units must be >= 1"));
  EXPECT_THAT(refusal_of("dropout(1)", image), HasSubstr("must be >= 0, < 1, is 1"));
  EXPECT_THAT(refusal_of("relu(3)", image), HasSubstr("takes 0 options"));
  EXPECT_THAT(refusal_of("conv2d(3, 11)", image), HasSubstr("does not fit into 1x8x8"));
  EXPECT_THAT(refusal_of("conv2d(3)", {{5}}), HasSubstr("needs images"));
  EXPECT_THAT(refusal_of("product", image), HasSubstr("product needs a sequence {length, features}, its input is 1x8x8"));
  EXPECT_THAT(refusal_of("concat([relu], [dense(3)])", {{2, 4}}), HasSubstr("a branch gives 2x4; end it with \"flatten\""));
  EXPECT_THAT(refusal_of("concat([relu])", {{4}}), HasSubstr("second is missing and has no default; its meaning: layers in brackets"));
  EXPECT_THAT(refusal_of("max_pool(9)", image), HasSubstr("does not fit"));
  EXPECT_THAT(refusal_of("dense(4, init=\"x\")", image), HasSubstr("expected a value"));
  EXPECT_THAT(refusal_of("dense(4, init=pytorc)", image), HasSubstr("did you mean \"pytorch\"?"));
}

TEST(LayersTest, NamesOfTheDataStandForNumbers) {
  EXPECT_EQ(make_layer<float>("dense(classes)", kNames)->bind({{6}}).dims, Shape{{4}}.dims);
}

TEST(LayersTest, BatchNormNeedsTwoValuesOfAChannel) {
  const auto least = [](const std::string& text, const Shape& input) {
    const auto layer = make_layer<float>(text, kNames);
    static_cast<void>(layer->bind(input));
    return layer->least_examples();
  };
  EXPECT_EQ(least("batch_norm", {{5}}), 2u);
  EXPECT_EQ(least("batch_norm", {{5, 1, 1}}), 2u);
  EXPECT_EQ(least("batch_norm", {{5, 1, 2}}), 1u);
  EXPECT_EQ(least("residual([dense(5), batch_norm])", {{5}}), 2u);
  EXPECT_EQ(least("concat([batch_norm, flatten], [mean_pool(0), batch_norm, flatten])", {{2, 3, 3}}), 2u);
  EXPECT_EQ(least("group_norm", {{5}}), 1u);
}

TEST(LayersTest, LstmBeginsAsPyTorchsOrTensorFlows) {
  const auto start = [](const std::string& text) {
    const auto layer = make_layer<double>(text, kNames);
    static_cast<void>(layer->bind({{4, 30}}));
    std::vector<double> w(num_parameters(*layer));
    RandomSequence random(1, Purpose::initial_model);
    layer->initial(random, w.data());
    return w;
  };
  constexpr std::size_t kH = 100, kWeights = 4 * kH * (30 + kH);
  const std::vector<double> two = start("lstm(100)"), one = start("lstm(100, bias=one, forget_bias=1)");
  ASSERT_EQ(two.size(), kWeights + 8 * kH);
  ASSERT_EQ(one.size(), kWeights + 4 * kH);
  const auto square = [&two](std::size_t begin, std::size_t count) {
    double sum = 0;
    for (std::size_t j = begin; j < begin + count; ++j) {
      EXPECT_LE(std::fabs(two[j]), 0.1);
      sum += two[j] * two[j];
    }
    return sum / static_cast<double>(count);
  };
  EXPECT_NEAR(square(0, kWeights), 0.01 / 3, 1e-4);
  EXPECT_NEAR(square(kWeights, 4 * kH), 0.01 / 3, 6e-4) << "4 standard deviations";
  EXPECT_NEAR(square(kWeights + 4 * kH, 4 * kH), 0.01 / 3, 6e-4);
  EXPECT_NE(two[kWeights], two[kWeights + 4 * kH]);
  for (std::size_t j = 0; j < 4 * kH; ++j) EXPECT_EQ(one[kWeights + j], j / kH == 1 ? 1.0 : 0.0);
  EXPECT_TRUE(std::equal(one.begin(), one.begin() + kWeights, two.begin()));
  const std::vector<double> raised = start("lstm(100, forget_bias=2)");
  for (std::size_t j = 0; j < 8 * kH; ++j) EXPECT_EQ(raised[kWeights + j], two[kWeights + j] + (j / kH == 1 ? 2.0 : 0.0));
}

TEST(LayersTest, WeightsBeginWithinTheirBounds) {
  const auto layer = make_layer<double>("dense(300)", kNames);
  static_cast<void>(layer->bind({{100}}));
  std::vector<double> w(num_parameters(*layer));
  RandomSequence random(1, Purpose::initial_model);
  layer->initial(random, w.data());
  double square = 0;
  for (const double v : w) {
    EXPECT_LE(std::fabs(v), 0.1);
    square += v * v;
  }
  EXPECT_NEAR(square / static_cast<double>(w.size()), 0.01 / 3, 1e-4);
}

TEST(LayersTest, DropoutZerosItsRateAndKeepsTheMean) {
  const auto layer = make_layer<double>("dropout(0.3)", kNames);
  const std::size_t n = 100000;
  static_cast<void>(layer->bind({{n}}));
  const Exec exec;
  const std::vector<double> in(n, 1.0);
  std::vector<double> out(n), again(n), other(n), evaluated(n);
  const Pass pass{.exec = exec, .B = 1, .training = true, .accumulate = false, .drops = true, .random = RandomStream(9, 1, 1)};
  Pass later = pass, still = pass;
  later.random = RandomStream(9, 1, 2);
  still.drops = false;
  layer->forward(pass, nullptr, in.data(), out.data(), nullptr);
  layer->forward(pass, nullptr, in.data(), again.data(), nullptr);
  layer->forward(later, nullptr, in.data(), other.data(), nullptr);
  layer->forward(still, nullptr, in.data(), evaluated.data(), nullptr);
  EXPECT_EQ(out, again);
  EXPECT_NE(out, other);
  EXPECT_EQ(evaluated, in);
  double sum = 0, zeros = 0;
  for (const double v : out) sum += v, zeros += v == 0 ? 1 : 0;
  EXPECT_NEAR(zeros / n, 0.3, 0.01);  // 7 standard deviations
  EXPECT_NEAR(sum / n, 1.0, 0.02);
}

// A long minibatch is computed in pieces, which drop what the whole of it would drop.
TEST(LayersTest, DropoutOfAPieceGoesOnWhereTheLastOneEnded) {
  const auto layer = make_layer<double>("dropout(0.5)", kNames);
  const std::size_t n = 7, examples = 24, first = 8;
  static_cast<void>(layer->bind({{n}}));
  const Exec exec;
  const std::vector<double> in(examples * n, 1.0);
  std::vector<double> whole(in.size()), pieces(in.size());
  Pass pass{.exec = exec, .B = examples, .training = true, .accumulate = false, .drops = true, .random = RandomStream(9, 1, 1)};
  layer->forward(pass, nullptr, in.data(), whole.data(), nullptr);
  pass.B = first;
  layer->forward(pass, nullptr, in.data(), pieces.data(), nullptr);
  pass.first = first;
  pass.B = examples - first;
  layer->forward(pass, nullptr, in.data(), pieces.data() + first * n, nullptr);
  EXPECT_EQ(whole, pieces);
}

TEST(NetworkTest, GradientsFlowThroughAllLayers) {
  const Network<double> network({"conv2d(3, 3, padding=1)", "tanh", "mean_pool(2)", "dense(6)", "gelu", "dense(classes)"}, {{2, 6, 6}},
                                kNames);
  Workspace workspace;
  Exec exec;
  exec.workspace = &workspace;
  RandomSequence random(3, Purpose::start);
  const std::size_t B = 2, outputs = network.output().size();
  std::vector<double> w(network.size()), in(B * 72), coefficient(B * outputs);
  network.initial(random, w.data());
  for (double& v : in) v = random.normal();
  for (double& v : coefficient) v = random.normal();
  Workspace::Frame frame(workspace);
  const Tape<double> tape = network.open(frame, B);
  const Pass pass{.exec = exec, .B = B};
  const auto value = [&] {
    std::copy(in.begin(), in.end(), tape.activation[0]);
    const double* z = network.forward(pass, w.data(), tape);
    double sum = 0;
    for (std::size_t j = 0; j < coefficient.size(); ++j) sum += coefficient[j] * z[j];
    return sum;
  };
  static_cast<void>(value());
  std::vector<double> d_w(w.size()), d_in(in.size());
  std::copy(coefficient.begin(), coefficient.end(), network.slope_of_output(tape));
  network.backward(pass, w.data(), tape, d_in.data(), d_w.data());
  const auto slope = [&](double& x) {
    const double at = x, h = 1e-6;
    x = at + h;
    const double above = value();
    x = at - h;
    const double below = value();
    x = at;
    return (above - below) / (2 * h);
  };
  for (std::size_t j = 0; j < w.size(); ++j) EXPECT_NEAR(d_w[j], slope(w[j]), 1e-7);
  for (std::size_t j = 0; j < in.size(); ++j) EXPECT_NEAR(d_in[j], slope(in[j]), 1e-7);
}

// A network pools before it takes max(x, 0): the same numbers, also where all of a window is below zero.
TEST(NetworkTest, PoolingBeforeReluChangesNothing) {
  const Shape input{{3, 6, 28}};
  const std::size_t B = 2, n_in = input.size(), n_out = n_in / 4;
  Workspace workspace;
  Exec exec;
  exec.workspace = &workspace;
  const Pass pass{.exec = exec, .B = B};
  RandomSequence random(5, Purpose::start);
  std::vector<double> in(B * n_in), slope(B * n_out), rectified(in.size()), pooled(slope.size()), by_rectified(in.size()), by_in(in.size());
  for (double& v : in) v = random.normal() - 0.7;
  for (double& v : slope) v = random.normal();
  const auto relu = make_layer<double>("relu", kNames), pool = make_layer<double>("max_pool(2)", kNames);
  pool->bind(relu->bind(input));
  relu->forward(pass, nullptr, in.data(), rectified.data(), nullptr);
  pool->forward(pass, nullptr, rectified.data(), pooled.data(), nullptr);
  pool->backward(pass, nullptr, rectified.data(), pooled.data(), nullptr, slope.data(), by_rectified.data(), nullptr);
  relu->backward(pass, nullptr, in.data(), rectified.data(), nullptr, by_rectified.data(), by_in.data(), nullptr);

  const Network<double> network({"relu", "max_pool(2)"}, input, kNames);
  EXPECT_EQ(network.output().size(), n_out);
  Workspace::Frame frame(workspace);
  const Tape<double> tape = network.open(frame, B);
  std::copy(in.begin(), in.end(), tape.activation[0]);
  const double* out = network.forward(pass, nullptr, tape);
  EXPECT_EQ(std::vector<double>(out, out + pooled.size()), pooled);
  std::copy(slope.begin(), slope.end(), network.slope_of_output(tape));
  std::vector<double> d_in(in.size());
  network.backward(pass, nullptr, tape, d_in.data(), nullptr);
  EXPECT_EQ(d_in, by_in);
}

TEST(NetworkTest, NamesItsTensorsByPlace) {
  const Network<float> network({"dense(3)", "relu", "dense(classes, bias=false)"}, {{5}}, kNames);
  std::vector<std::string> names;
  for (const Layer& layer : network.tensors()) names.push_back(layer.name);
  EXPECT_THAT(names, ::testing::ElementsAre("1.dense.weight", "1.dense.bias", "3.dense.weight"));
  EXPECT_EQ(network.size(), 5u * 3 + 3 + 3 * 4);
}

TEST(NetworkTest, LstmNamesItsBiases) {
  const auto names = [](const std::string& layer) {
    std::vector<std::string> found;
    for (const Layer& tensor : Network<float>({layer}, {{5, 2}}, kNames).tensors()) found.push_back(tensor.name);
    return found;
  };
  EXPECT_THAT(names("lstm(3)"), ::testing::ElementsAre("1.lstm.weight_in", "1.lstm.weight_h", "1.lstm.bias_in", "1.lstm.bias_h"));
  EXPECT_THAT(names("lstm(3, bias=one)"), ::testing::ElementsAre("1.lstm.weight_in", "1.lstm.weight_h", "1.lstm.bias"));
}

TEST(NetworkTest, ALayerThatDoesNotFitIsNamedWithItsPlace) {
  try {
    Network<float>({"max_pool(2)", "conv2d(4, 9)"}, {{1, 8, 8}}, kNames);
    FAIL() << "was accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("layer 2, \"conv2d(4, 9)\": conv2d with kernel 9 does not fit into 1x4x4"));
  }
}

}  // namespace
}  // namespace fl::nn
