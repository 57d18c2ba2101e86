// Compares Winograd's algorithm with plain loops in double. An output has the rounding errors of its tile, so bounds are shares of the
// largest sum of absolute products and not of its own.
#include "clients/nn/winograd.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "fl_core/random/random.hpp"

namespace fl::nn {
namespace {

struct WinogradCase {
  Convolution c;
  std::size_t B;
};
// Tiles of both sizes; images that tiles do not fill, and wider than high; channels that fill neither vectors nor blocks; no, one and two
// zeros around images; all tiles at once, and blocks of them with the last one shorter.
const std::vector<WinogradCase> kCases = {
    {{16, 8, 8, 16, 3, 1}, 1},  {{64, 4, 4, 64, 3, 1}, 5},   {{40, 2, 2, 24, 3, 1}, 6},   {{19, 9, 7, 37, 3, 2}, 3},
    {{33, 6, 10, 17, 3, 0}, 3}, {{70, 5, 12, 130, 3, 1}, 2}, {{16, 31, 33, 20, 3, 1}, 3}, {{17, 4, 70, 16, 3, 1}, 5},
    {{20, 2, 60, 18, 3, 1}, 3}, {{16, 3, 3, 16, 3, 1}, 4},   {{90, 12, 12, 70, 3, 1}, 9}, {{24, 3, 4, 16, 3, 2}, 2},
    {{16, 4, 6, 16, 3, 0}, 4},  {{32, 14, 14, 64, 5, 2}, 3}, {{17, 5, 9, 33, 5, 4}, 3},   {{40, 7, 8, 16, 5, 0}, 1},
};

template <class T>
struct WinogradInput {
  explicit WinogradInput(const WinogradCase& k)
      : in(k.B * k.c.C * k.c.H * k.c.W),
        w(k.c.OC * k.c.C * k.c.K * k.c.K),
        bias(k.c.OC),
        slope(k.B * k.c.OC * k.c.out_height() * k.c.out_width()) {
    RandomSequence random(21, Purpose::start);
    for (auto* numbers : {&in, &w, &bias, &slope})
      for (T& v : *numbers) v = static_cast<T>(random.normal());
  }
  std::vector<T> in, w, bias, slope;
};

// Sums of products and of their absolute values.
struct Sums {
  explicit Sums(std::size_t n) : value(n), size(n) {}
  void add(std::size_t j, double product) { value[j] += product, size[j] += std::fabs(product); }
  std::vector<double> value, size;
};

// Calls f(output, input, weight) for every product of a convolution.
template <class F>
void each_term(const WinogradCase& k, const F& f) {
  const Convolution& c = k.c;
  for (std::size_t plane = 0; plane < k.B * c.OC; ++plane)
    for (std::size_t y = 0; y < c.out_height(); ++y)
      for (std::size_t x = 0; x < c.out_width(); ++x)
        for (std::size_t channel = 0; channel < c.C; ++channel)
          for (std::size_t t = 0; t < c.K * c.K; ++t) {
            const std::size_t row = y + t / c.K - c.P, column = x + t % c.K - c.P;  // beyond every height and width where they are negative
            if (row >= c.H || column >= c.W) continue;
            f((plane * c.out_height() + y) * c.out_width() + x, ((plane / c.OC * c.C + channel) * c.H + row) * c.W + column,
              (plane % c.OC * c.C + channel) * c.K * c.K + t);
          }
}

template <class T>
class WinogradTest : public ::testing::Test {
 protected:
  WinogradTest() { exec.workspace = &workspace; }
  static void expect_close(const std::vector<T>& found, const Sums& expected, const WinogradCase& k, const char* what) {
    const double bound = (sizeof(T) == 4 ? 1e-6 : 2e-15) * *std::ranges::max_element(expected.size);
    for (std::size_t j = 0; j < found.size(); ++j)
      ASSERT_NEAR(static_cast<double>(found[j]), expected.value[j], bound)
          << what << ' ' << j << " of " << k.c.C << 'x' << k.c.H << 'x' << k.c.W << " to " << k.c.OC;
  }
  Workspace workspace;
  Exec exec;
};
using Precisions = ::testing::Types<float, double>;
TYPED_TEST_SUITE(WinogradTest, Precisions);

TYPED_TEST(WinogradTest, OutputsAreThoseOfPlainLoops) {
  for (const WinogradCase& k : kCases) {
    ASSERT_TRUE(winograd::suits(k.c, k.B)) << k.c.H << 'x' << k.c.W;
    const WinogradInput<TypeParam> p(k);
    Sums expected(p.slope.size());
    each_term(k, [&](auto o, auto i, auto w) { expected.add(o, static_cast<double>(p.in[i]) * static_cast<double>(p.w[w])); });
    std::vector<TypeParam> out(p.slope.size(), TypeParam(7));
    winograd::convolve(this->exec, k.c, k.B, p.w.data(), static_cast<const TypeParam*>(nullptr), p.in.data(), out.data());
    this->expect_close(out, expected, k, "output");
    for (std::size_t j = 0; j < out.size(); ++j)
      expected.add(j, static_cast<double>(p.bias[j / (k.c.out_height() * k.c.out_width()) % k.c.OC]));
    winograd::convolve(this->exec, k.c, k.B, p.w.data(), p.bias.data(), p.in.data(), out.data());
    this->expect_close(out, expected, k, "output with bias");
  }
}

TYPED_TEST(WinogradTest, DerivativesAreThoseOfPlainLoops) {
  for (const WinogradCase& k : kCases) {
    const WinogradInput<TypeParam> p(k);
    Sums by_in(p.in.size()), by_w(p.w.size());
    each_term(k, [&](auto o, auto i, auto w) {
      by_in.add(i, static_cast<double>(p.slope[o]) * static_cast<double>(p.w[w]));
      by_w.add(w, static_cast<double>(p.slope[o]) * static_cast<double>(p.in[i]));
    });
    std::vector<TypeParam> d_in(p.in.size(), TypeParam(7)), d_w(p.w.size(), TypeParam(2));
    winograd::convolve_back_to_input(this->exec, k.c, k.B, p.w.data(), p.slope.data(), d_in.data());
    this->expect_close(d_in, by_in, k, "input");
    winograd::convolve_back_to_weights(this->exec, k.c, k.B, p.in.data(), p.slope.data(), false, d_w.data());
    this->expect_close(d_w, by_w, k, "weight");
    winograd::convolve_back_to_weights(this->exec, k.c, k.B, p.in.data(), p.slope.data(), true, d_w.data());
    for (double& value : by_w.value) value *= 2;
    for (double& size : by_w.size) size *= 2;
    this->expect_close(d_w, by_w, k, "weight, added");
  }
}

// Tiles share products of matrices, but no sum.
TYPED_TEST(WinogradTest, AnImageDoesNotDependOnOthers) {
  for (const WinogradCase& k : kCases) {
    const WinogradInput<TypeParam> p(k);
    const std::size_t inputs = p.in.size() / k.B, outputs = p.slope.size() / k.B;
    std::vector<TypeParam> out(p.slope.size()), d_in(p.in.size()), alone(outputs), d_alone(inputs);
    winograd::convolve(this->exec, k.c, k.B, p.w.data(), p.bias.data(), p.in.data(), out.data());
    winograd::convolve_back_to_input(this->exec, k.c, k.B, p.w.data(), p.slope.data(), d_in.data());
    for (std::size_t b = 0; b < k.B; ++b) {
      winograd::convolve(this->exec, k.c, 1, p.w.data(), p.bias.data(), p.in.data() + b * inputs, alone.data());
      winograd::convolve_back_to_input(this->exec, k.c, 1, p.w.data(), p.slope.data() + b * outputs, d_alone.data());
      EXPECT_TRUE(std::equal(alone.begin(), alone.end(), out.begin() + static_cast<std::ptrdiff_t>(b * outputs)));
      EXPECT_TRUE(std::equal(d_alone.begin(), d_alone.end(), d_in.begin() + static_cast<std::ptrdiff_t>(b * inputs)));
    }
  }
}

TYPED_TEST(WinogradTest, BitsDoNotDependOnWhereImagesLie) {
  for (const WinogradCase& k : kCases) {
    const WinogradInput<TypeParam> p(k);
    std::vector<TypeParam> first[3];
    for (const std::size_t shift : {0, 1, 5}) {
      const auto moved = [shift](std::vector<TypeParam> numbers) {
        numbers.insert(numbers.begin(), shift, TypeParam(0));
        return numbers;
      };
      const std::vector<TypeParam> in = moved(p.in), w = moved(p.w), slope = moved(p.slope);
      std::vector<TypeParam> found[3] = {slope, in, w};
      winograd::convolve(this->exec, k.c, k.B, w.data() + shift, p.bias.data(), in.data() + shift, found[0].data() + shift);
      winograd::convolve_back_to_input(this->exec, k.c, k.B, w.data() + shift, slope.data() + shift, found[1].data() + shift);
      winograd::convolve_back_to_weights(this->exec, k.c, k.B, in.data() + shift, slope.data() + shift, false, found[2].data() + shift);
      for (int i = 0; i < 3; ++i) {
        found[i].erase(found[i].begin(), found[i].begin() + static_cast<std::ptrdiff_t>(shift));
        if (shift == 0) first[i] = found[i];
        EXPECT_EQ(found[i], first[i]) << "moved by " << shift;
      }
    }
  }
}

TEST(WinogradSuitsTest, SmallWindowsSideBySideOfManyChannels) {
  EXPECT_TRUE(winograd::suits({64, 32, 32, 64, 3, 1}, 1));
  EXPECT_FALSE(winograd::suits({64, 32, 32, 64, 7, 3}, 20));
  EXPECT_FALSE(winograd::suits({64, 32, 32, 64, 3, 1, 2}, 20));
  EXPECT_FALSE(winograd::suits({64, 32, 32, 64, 3, 3}, 20));
  EXPECT_FALSE(winograd::suits({3, 32, 32, 64, 3, 1}, 20));
  EXPECT_FALSE(winograd::suits({64, 32, 32, 10, 3, 1}, 20));
  EXPECT_FALSE(winograd::suits({64, 4, 4, 64, 3, 1}, 3)) << "too few tiles to pay for the transform of the weights";
  EXPECT_FALSE(winograd::suits({64, 1, 1, 64, 3, 1}, 20)) << "one pixel has nine products and a tile sixteen";
}

// Numbers that are not finite reach the outputs of their tile, and zeros stay zeros.
TEST(WinogradSpecialTest, NanSpreadsAndZerosStay) {
  Workspace workspace;
  Exec exec;
  exec.workspace = &workspace;
  const WinogradCase k{{16, 8, 8, 16, 3, 1}, 2};
  WinogradInput<float> p(k);
  std::fill(p.in.begin(), p.in.end(), 0.0f);
  std::vector<float> out(p.slope.size(), 7.0f);
  winograd::convolve(exec, k.c, k.B, p.w.data(), static_cast<const float*>(nullptr), p.in.data(), out.data());
  EXPECT_TRUE(std::ranges::all_of(out, [](float v) { return v == 0; }));
  p.in[9] = std::numeric_limits<float>::quiet_NaN();
  winograd::convolve(exec, k.c, k.B, p.w.data(), static_cast<const float*>(nullptr), p.in.data(), out.data());
  EXPECT_TRUE(std::isnan(out[9]));
  EXPECT_EQ(out[16 * 64 + 9], 0) << "another image";
}

}  // namespace
}  // namespace fl::nn
