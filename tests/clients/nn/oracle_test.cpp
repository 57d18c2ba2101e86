// Compares every layer with PyTorch: outputs and derivatives on the cases of tests/fixtures/layers.txt, which make_layers.py in the same
// folder writes.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "clients/nn/layer_text.hpp"

namespace fl::nn {
namespace {

struct OracleCase {
  std::string layer;
  Shape input;
  std::vector<double> weights, in, coefficients, out, by_input, by_weights;
};

std::vector<double> read_line(std::istream& file, const std::string& name) {
  std::string line, word;
  std::getline(file, line);
  std::istringstream words(line);
  words >> word;
  EXPECT_EQ(word, name);
  std::vector<double> numbers;
  while (words >> word) numbers.push_back(std::stod(word));  // also nan and inf
  return numbers;
}

std::vector<OracleCase> read_cases() {
  std::ifstream file(std::string(FL_SOURCE_DIR) + "/tests/fixtures/layers.txt");
  std::vector<OracleCase> cases;
  for (std::string line; std::getline(file, line);) {
    const std::size_t bar = line.find(" | ");
    OracleCase& c = cases.emplace_back();
    c.layer = line.substr(5, bar - 5);
    std::istringstream shape(line.substr(bar + 3));
    for (std::string d; std::getline(shape, d, 'x');) c.input.dims.push_back(std::stoul(d));
    c.weights = read_line(file, "weights");
    c.in = read_line(file, "input");
    c.coefficients = read_line(file, "coefficients");
    c.out = read_line(file, "output");
    c.by_input = read_line(file, "by_input");
    c.by_weights = read_line(file, "by_weights");
  }
  return cases;
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected, std::size_t count, const char* what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (std::size_t j = 0; j < count; ++j) {
    if (std::isfinite(expected[j])) {
      EXPECT_NEAR(found[j], expected[j], 1e-11 * (1 + std::fabs(expected[j]))) << what << ' ' << j;
    } else {
      EXPECT_TRUE(found[j] == expected[j] || (std::isnan(found[j]) && std::isnan(expected[j])))
          << what << ' ' << j << " is " << found[j] << ", not " << expected[j];
    }
  }
}

TEST(OracleTest, LayersAreThoseOfPyTorch) {
  const std::vector<OracleCase> cases = read_cases();
  ASSERT_EQ(cases.size(), 28u);
  for (const OracleCase& c : cases) {
    SCOPED_TRACE(c.layer + " on " + c.input.text());
    const auto layer = make_layer<double>(c.layer, {});
    const std::size_t B = c.in.size() / c.input.size(), n_out = layer->bind(c.input).size();
    ASSERT_EQ(num_parameters(*layer), c.weights.size());
    ASSERT_EQ(c.out.size(), B * n_out);
    Workspace workspace;
    Exec exec;
    exec.workspace = &workspace;
    const Pass pass{.exec = exec, .B = B};
    std::vector<double> out(c.out.size()), saved(layer->saved_size(B)), by_input(c.by_input.size()), by_weights(c.weights.size());
    layer->forward(pass, c.weights.data(), c.in.data(), out.data(), saved.data());
    layer->backward(pass, c.weights.data(), c.in.data(), out.data(), saved.data(), c.coefficients.data(),
                    by_input.empty() ? nullptr : by_input.data(), by_weights.data());
    std::size_t weights = 0;  // statistics have no derivative
    for (const Layer& tensor : layer->tensors()) weights += tensor.running_rate > 0 ? 0 : tensor.size();
    expect_near(out, c.out, out.size(), "output");
    expect_near(by_input, c.by_input, by_input.size(), "by input");
    expect_near(by_weights, c.by_weights, weights, "by weights");
  }
}

}  // namespace
}  // namespace fl::nn
