// Compares float convolutions and their derivatives with plain loops in double, and tests that results do not depend on the memory
// addresses of images.
#include "clients/nn/convolution.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "fl_core/random/random.hpp"

namespace fl::nn {
namespace {

// Images of one channel and of many, rows shorter and longer than a vector, windows that reach past the image, windows apart from each
// other, images with fewer pixels than a vector has numbers, and images that do not fit into the second-level cache.
const std::vector<Convolution> kShapes = {
    {1, 28, 28, 6, 5, 2},    {1, 9, 28, 32, 5, 2},    {6, 14, 14, 16, 5, 0},     {32, 14, 14, 64, 5, 2},  {3, 8, 8, 16, 3, 1},
    {5, 6, 19, 37, 3, 2},    {2, 9, 9, 3, 7, 3},      {64, 4, 4, 64, 3, 1},      {40, 2, 2, 24, 3, 1},    {9, 7, 7, 11, 3, 1},
    {16, 8, 8, 19, 3, 1, 2}, {20, 8, 8, 13, 1, 0, 2}, {33, 5, 6, 7, 1, 0},       {3, 11, 10, 5, 4, 5, 3}, {2, 6, 3, 4, 2, 0, 5},
    {1, 1, 1, 1, 1, 0},      {2, 60, 200, 3, 3, 1},   {12, 90, 130, 2, 5, 2, 2}, {1, 1, 30, 2, 3, 1}};
constexpr std::size_t kImages = 3;
// Shares of the slopes that are zero: none, those behind max pooling and a ReLU, nearly all, all.
constexpr double kZeros[] = {0, 0.85, 0.98, 1};

template <class T>
struct ConvolutionInput {
  explicit ConvolutionInput(const Convolution& c, double zeros = 0)
      : in(kImages * c.C * c.H * c.W), w(c.OC * c.C * c.K * c.K), bias(c.OC), slope(kImages * c.OC * c.out_height() * c.out_width()) {
    RandomSequence random(9, Purpose::start);
    for (auto* numbers : {&in, &w, &bias, &slope})
      for (T& v : *numbers) v = static_cast<T>(random.normal());
    for (T& v : slope) v = random.uniform() < zeros ? T(0) : v;
  }
  std::vector<T> in, w, bias, slope;
};

// Calls f(output, input, weight) for every product that a convolution sums.
template <class F>
void each_product(const Convolution& c, const F& f) {
  for (std::size_t b = 0; b < kImages; ++b)
    for (std::size_t o = 0; o < c.OC; ++o)
      for (std::size_t y = 0; y < c.out_height(); ++y)
        for (std::size_t x = 0; x < c.out_width(); ++x)
          for (std::size_t channel = 0; channel < c.C; ++channel)
            for (std::size_t i = 0; i < c.K; ++i)
              for (std::size_t j = 0; j < c.K; ++j) {
                const std::size_t row = y * c.S + i, column = x * c.S + j;
                if (row < c.P || row >= c.H + c.P || column < c.P || column >= c.W + c.P) continue;
                f(((b * c.OC + o) * c.out_height() + y) * c.out_width() + x, ((b * c.C + channel) * c.H + row - c.P) * c.W + column - c.P,
                  ((o * c.C + channel) * c.K + i) * c.K + j);
              }
}

// A sum and the size of what it is the sum of.
struct Sum {
  double value = 0, size = 1;
  void add(double product) { value += product, size += std::fabs(product); }
};

template <class T>
void expect_sums(const std::vector<T>& found, const std::vector<Sum>& expected, double tolerance, const char* what) {
  for (std::size_t j = 0; j < found.size(); ++j)
    ASSERT_NEAR(static_cast<double>(found[j]), expected[j].value, tolerance * expected[j].size) << what << ' ' << j;
}

template <class T>
class ConvolutionTest : public ::testing::Test {
 protected:
  ConvolutionTest() { exec.workspace = &workspace; }
  static constexpr double kTolerance = sizeof(T) == 4 ? 1e-6 : 1e-14;
  Workspace workspace;
  Exec exec;
};
using Precisions = ::testing::Types<float, double>;
TYPED_TEST_SUITE(ConvolutionTest, Precisions);

TYPED_TEST(ConvolutionTest, SumsAreThoseOfPlainLoops) {
  for (const Convolution& c : kShapes) {
    const ConvolutionInput<TypeParam> p(c);
    std::vector<TypeParam> out(p.slope.size());
    for (const bool has_bias : {false, true}) {
      std::vector<Sum> expected(out.size());
      each_product(c, [&](auto o, auto i, auto w) { expected[o].add(static_cast<double>(p.in[i]) * static_cast<double>(p.w[w])); });
      for (std::size_t j = 0; has_bias && j < expected.size(); ++j)
        expected[j].add(static_cast<double>(p.bias[j / (c.out_height() * c.out_width()) % c.OC]));
      convolve(this->exec, c, kImages, p.w.data(), has_bias ? p.bias.data() : nullptr, p.in.data(), out.data());
      expect_sums(out, expected, this->kTolerance, "output");
    }
  }
}

TYPED_TEST(ConvolutionTest, DerivativesAreThoseOfPlainLoops) {
  for (const Convolution& c : kShapes)
    for (const auto& [zeros, add] :
         {std::pair{kZeros[0], false}, {kZeros[0], true}, {kZeros[1], false}, {kZeros[1], true}, {kZeros[2], false}, {kZeros[3], true}}) {
      const ConvolutionInput<TypeParam> p(c, zeros);
      std::vector<TypeParam> d_in(p.in.size(), TypeParam(7)), d_w(p.w.size(), TypeParam(2));
      std::vector<Sum> by_in(d_in.size()), by_w(d_w.size());
      if (add)
        for (Sum& sum : by_w) sum.add(2);
      each_product(c, [&](auto o, auto i, auto w) {
        by_in[i].add(static_cast<double>(p.slope[o]) * static_cast<double>(p.w[w]));
        by_w[w].add(static_cast<double>(p.slope[o]) * static_cast<double>(p.in[i]));
      });
      convolve_back(this->exec, c, kImages, p.w.data(), p.in.data(), p.slope.data(), add, d_in.data(), d_w.data());
      expect_sums(d_in, by_in, this->kTolerance, "input");
      expect_sums(d_w, by_w, this->kTolerance, "weight");
      std::vector<TypeParam> alone(p.w.size(), TypeParam(2));
      convolve_back(this->exec, c, kImages, p.w.data(), p.in.data(), p.slope.data(), add, static_cast<TypeParam*>(nullptr), alone.data());
      EXPECT_EQ(alone, d_w) << "without the derivative by the input";
    }
}

TYPED_TEST(ConvolutionTest, BitsDoNotDependOnWhereImagesLie) {
  using Numbers = std::vector<TypeParam>;
  for (std::size_t n = 0; n < 2 * kShapes.size(); ++n) {
    const Convolution& c = kShapes[n / 2];
    const ConvolutionInput<TypeParam> p(c, kZeros[n % 2]);
    std::vector<Numbers> first;
    for (const std::size_t shift : {0, 1, 5, 16}) {
      const auto moved = [shift](const Numbers& numbers) {
        Numbers all(numbers.size() + shift);
        std::copy(numbers.begin(), numbers.end(), all.begin() + static_cast<std::ptrdiff_t>(shift));
        return all;
      };
      const Numbers in = moved(p.in), w = moved(p.w), slope = moved(p.slope);
      Numbers out(slope.size()), d_in(in.size()), d_w(w.size());
      convolve(this->exec, c, kImages, w.data() + shift, p.bias.data(), in.data() + shift, out.data() + shift);
      convolve_back(this->exec, c, kImages, w.data() + shift, in.data() + shift, slope.data() + shift, false, d_in.data() + shift,
                    d_w.data() + shift);
      std::vector<Numbers> found;
      for (const Numbers& numbers : {out, d_in, d_w})
        found.emplace_back(numbers.begin() + static_cast<std::ptrdiff_t>(shift), numbers.end());
      if (shift == 0) first = found;
      EXPECT_EQ(found, first) << "moved by " << shift;
    }
  }
}

}  // namespace
}  // namespace fl::nn
