// Compares each quantiser with its published equations, written again as plain loops: three steps of error feedback, entry by entry, and
// the numbers that distinguish it from similar quantisers.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>

#include "compressors/codec/codec.hpp"
#include "compressors/support/normal_centroids.hpp"
#include "tests/compressors/quantizer_support.hpp"

namespace fl::test {
namespace {

using Vector = std::vector<double>;
using Settings = std::vector<std::pair<std::string, Value>>;

const Vector kGradients[] = {
    {0.9, -0.3, 0.05, -1.2, 0.0, 0.4, 0.007}, {-0.2, 0.6, -0.04, 1.5, 0.3, -0.45, 0.0009}, {0.31, 0.02, -0.7, -0.11, 0.8, 0.26, -0.5}};

Value whole(std::int64_t n) { return Value{n}; }
Value text(const char* s) { return Value{std::string(s)}; }

// Random word j of the client that Sent stands for.
double uniform(std::size_t j, std::uint32_t round) { return RandomStream(99, 1, round).bits(j) * 0x1p-32; }
double norm_of(const Vector& x) { return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0)); }
double largest_of(const Vector& x) {
  double largest = 0;
  for (const double v : x) largest = std::max(largest, std::fabs(v));
  return largest;
}
double signed_like(double magnitude, double x) { return x < 0 ? -magnitude : magnitude; }
// floor(a) or the next integer, by word j
double drawn(double a, std::size_t j, std::uint32_t round) { return std::floor(a) + (uniform(j, round) < a - std::floor(a) ? 1 : 0); }

// p = e + g, c = C(p), e = p - c for three rounds. plain(p, round) is C as published.
void expect_three_steps(const std::string& name, const Settings& settings, const std::function<Vector(const Vector&, std::uint32_t)>& plain,
                        double tolerance = 1e-12) {
  const auto op = make_operator<double>(name, settings);
  Vector e(7, 0.0);
  for (std::uint32_t r = 1; r <= 3; ++r) {
    Vector p = kGradients[r - 1];
    for (std::size_t j = 0; j < p.size(); ++j) p[j] += e[j];
    const Sent<double> sent(*op, p, whole_vector(7), 1, r);
    const Vector expected = plain(p, r);
    for (std::size_t j = 0; j < p.size(); ++j) {
      EXPECT_NEAR(sent.c[j], expected[j], tolerance) << name << ", round " << r << ", entry " << j << ", p = " << p[j];
      e[j] = p[j] - expected[j];
    }
  }
}

template <class F>
Vector each(const Vector& p, F f) {
  Vector c(p.size());
  for (std::size_t j = 0; j < p.size(); ++j) c[j] = f(p[j], j);
  return c;
}

TEST(OneBit, SendsTheMeansOfTwoGroups) {
  expect_three_steps("one_bit", {}, [](const Vector& p, std::uint32_t) {
    double sum[2] = {}, count[2] = {};
    for (const double x : p) sum[x >= 0] += x, count[x >= 0] += 1;
    return each(p, [&](double x, std::size_t) { return sum[x >= 0] / count[x >= 0]; });
  });
  // ef_sign would send +-2 and have an error of 20 - 16.
  const auto op = make_operator<double>("one_bit");
  EXPECT_EQ(Sent<double>(*op, {1.0, 1.0, -3.0, -3.0}, whole_vector(4)).c, (Vector{1.0, 1.0, -3.0, -3.0}));
  EXPECT_EQ(Sent<double>(*op, {1.0, 3.0, 0.0, 0.0}, whole_vector(4)).c, (Vector{1.0, 1.0, 1.0, 1.0})) << "zero is of the upper group";
  EXPECT_DOUBLE_EQ(op->published_bits(Sent<double>(*op, Vector(100, 1.0), whole_vector(100)).message, whole_vector(100)), 100 + 64);
}

TEST(TernGrad, ClipsAndDraws) {
  expect_three_steps("terngrad", {{"clip", Value{1.0}}}, [](const Vector& p, std::uint32_t r) {
    const double n = static_cast<double>(p.size()), mean = std::accumulate(p.begin(), p.end(), 0.0) / n;
    double variance = 0;
    for (const double x : p) variance += (x - mean) * (x - mean) / n;
    const double m = std::min(largest_of(p), std::sqrt(variance));
    return each(p, [&](double x, std::size_t j) { return uniform(j, r) < std::min(std::fabs(x), m) / m ? signed_like(m, x) : 0.0; });
  });
}
TEST(TernGrad, WithoutClippingIsUnbiasedAndWithItIsNot) {
  const Scope scope = whole_vector(64);
  EXPECT_DOUBLE_EQ(*make_operator<double>("terngrad", {{"clip", Value{0.0}}})->contract(scope).omega, 3.5);
  Vector x(64, 1.0 / 9);
  x[17] = 1;
  EXPECT_NEAR(relative_error(*make_operator<double>("terngrad", {{"clip", Value{0.0}}}), x, 8000), 3.5, 0.15);
  const Contract clipped = make_operator<double>("terngrad")->contract(scope);
  EXPECT_EQ(clipped.domain.unbiased_up_to, "clipping");
  EXPECT_FALSE(make_operator<double>("terngrad", {{"scaled", Value{true}}})->contract(scope).delta.has_value());
}

TEST(Sign, SendsNoScale) {
  const auto op = make_operator<double>("sign");
  const Sent<double> sent(*op, {3.0, -1e-9, 0.0, -0.0}, whole_vector(4));
  EXPECT_EQ(sent.c, (Vector{1.0, -1.0, 1.0, 1.0}));
  EXPECT_TRUE(sent.message.scale.empty());
  EXPECT_DOUBLE_EQ(op->published_bits(sent.message, whole_vector(4)), 4);
  EXPECT_NE(op->contract(whole_vector(4)).no_memory.find("ef_sign"), std::string::npos);
}

TEST(NaturalDithering, RoundsToPowersOfTwoOfTheNorm) {
  for (const char* norm : {"l1", "l2", "max"})
    expect_three_steps("natural_dithering", {{"levels", whole(4)}, {"norm", text(norm)}}, [norm](const Vector& p, std::uint32_t r) {
      double scale = largest_of(p);
      if (norm == std::string("l2")) scale = norm_of(p);
      if (norm == std::string("l1")) scale = std::accumulate(p.begin(), p.end(), 0.0, [](double s, double x) { return s + std::fabs(x); });
      return each(p, [&](double x, std::size_t j) {
        const double t = std::min(1.0, std::fabs(x) / scale);
        double low = 0, high = 1.0 / 8;
        for (const double level : {1.0 / 8, 1.0 / 4, 1.0 / 2})
          if (t >= level) low = level, high = 2 * level;
        if (t == 1) return signed_like(scale, x);
        return signed_like(scale * (uniform(j, r) < (t - low) / (high - low) ? high : low), x);
      });
    });
}
// x = 1/sqrt(d): t = 1/8 lies half-way between 0 and 1/4 (s = 3), so the error is t everywhere.
TEST(NaturalDithering, VarianceBelowTheSmallestLevel) {
  const auto op = make_operator<double>("natural_dithering", {{"levels", whole(3)}});
  EXPECT_NEAR(relative_error(*op, Vector(64, -0.125), 200), 1.0, 1e-9);
  EXPECT_DOUBLE_EQ(*op->contract(whole_vector(64)).omega, 1.0 / 8 + 2);
}

TEST(Dettmers8, TakesTheNearestOfTheTree) {
  Vector tree = {0.0};
  for (int code = 1; code <= 127; ++code) {  // seven bits: zeros, a one, and a fraction
    int zeros = 0;
    while ((code & (64 >> zeros)) == 0) ++zeros;
    const int parts = 64 >> zeros, fraction = code - parts;
    tree.push_back(std::pow(10.0, -zeros) * (0.1 + 0.9 * (fraction + 0.5) / parts));
  }
  expect_three_steps("dettmers8", {}, [&](const Vector& p, std::uint32_t) {
    const double scale = largest_of(p);
    return each(p, [&](double x, std::size_t) {
      const double t = std::fabs(x) / scale;
      return signed_like(
          scale * *std::min_element(tree.begin(), tree.end(), [t](double a, double b) { return std::fabs(a - t) < std::fabs(b - t); }), x);
    });
  });
}

TEST(StochasticRounding, RoundsToFixedPointAndSaturates) {
  expect_three_steps("stochastic_rounding", {{"integer_bits", whole(1)}, {"fraction_bits", whole(3)}},
                     [](const Vector& p, std::uint32_t r) {
                       return each(p, [&](double x, std::size_t j) { return drawn(std::clamp(8 * x, -8.0, 7.0), j, r) / 8; });
                     });
  const auto op = make_operator<double>("stochastic_rounding", {{"integer_bits", whole(2)}, {"fraction_bits", whole(3)}});
  EXPECT_EQ(Sent<double>(*op, {5.0, -5.0}, whole_vector(2)).c, (Vector{1.875, -2.0}));
  EXPECT_DOUBLE_EQ(*op->contract(whole_vector(64)).kappa, 8 * 0.125 / 2);
  // Half-way everywhere: the variance is d epsilon^2 / 4, the bound.
  EXPECT_NEAR(64 * 0.0625 * 0.0625 * relative_error(*op, Vector(64, 0.0625), 10), std::pow(*op->contract(whole_vector(64)).kappa, 2),
              1e-12);
  EXPECT_THROW(make_operator<double>("stochastic_rounding", {{"integer_bits", whole(20)}, {"fraction_bits", whole(20)}}), ConfigError);
}

TEST(Lpc, SpansTheRange) {
  for (const double clip : {1.0, 0.5})
    expect_three_steps("lpc", {{"bits", whole(3)}, {"clip", Value{clip}}}, [clip](const Vector& p, std::uint32_t r) {
      const double step = clip * largest_of(p) / 3;
      return each(p, [&](double x, std::size_t j) { return step * drawn(std::clamp(x / step, -4.0, 3.0), j, r); });
    });
}

TEST(ThreeLc, KeepsWhatIsAboveHalfTheScale) {
  for (const double s : {1.0, 1.5})
    expect_three_steps("three_lc", {{"sparsity", Value{s}}}, [s](const Vector& p, std::uint32_t) {
      const double m = s * largest_of(p);
      return each(p, [&](double x, std::size_t) { return m * std::round(x / m); });
    });
}
// Bytes of five: two that are not zero, then 15 zero ones: a run of 14 in one byte and one alone; 4 bytes and the scale.
TEST(ThreeLc, CountsPackedBytesAndRunsOfZeros) {
  const auto op = make_operator<double>("three_lc");
  Vector x(85, 0.0);
  x[0] = 1, x[7] = -1;
  EXPECT_DOUBLE_EQ(op->published_bits(Sent<double>(*op, x, whole_vector(85)).message, whole_vector(85)), 8 * 4 + 32);
  x[84] = 1;
  EXPECT_DOUBLE_EQ(op->published_bits(Sent<double>(*op, x, whole_vector(85)).message, whole_vector(85)), 8 * 4 + 32);
  x[45] = 1;
  EXPECT_DOUBLE_EQ(op->published_bits(Sent<double>(*op, x, whole_vector(85)).message, whole_vector(85)), 8 * 6 + 32);
}

TEST(Fp8, TakesTheNearestNumberOfTheFormat) {
  for (const bool e4m3 : {true, false}) {
    const int mantissa_bits = e4m3 ? 3 : 2, bias = e4m3 ? 7 : 15;
    Vector numbers;
    for (int code = 0; code <= (e4m3 ? 0x7e : 0x7b); ++code) {
      const int exponent = code >> mantissa_bits, mantissa = code & ((1 << mantissa_bits) - 1);
      const double fraction = std::ldexp(mantissa, -mantissa_bits);
      numbers.push_back(exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias));
    }
    EXPECT_EQ(numbers.back(), e4m3 ? 448 : 57344);
    for (const bool scaled : {true, false})
      expect_three_steps("fp8", {{"format", text(e4m3 ? "e4m3" : "e5m2")}, {"scaled", Value{scaled}}}, [&](const Vector& p, std::uint32_t) {
        const double scale = scaled ? largest_of(p) / numbers.back() : 1;
        return each(p, [&](double x, std::size_t) {
          const double t = std::fabs(x) / scale;
          return signed_like(scale * *std::min_element(numbers.begin(), numbers.end(),
                                                       [t](double a, double b) { return std::fabs(a - t) < std::fabs(b - t); }),
                             x);
        });
      });
  }
}

TEST(Adaqs, IsQsgdWithLevelsThatDouble) {
  const auto op = make_operator<double>("adaqs", {{"levels", whole(3)}, {"double_every", whole(2)}, {"max_levels", whole(10)}});
  const std::int64_t levels[] = {3, 3, 6, 6, 10, 10, 10};
  for (std::uint32_t r = 1; r <= 7; ++r) {
    const auto same = make_operator<double>("qsgd", {{"levels", whole(levels[r - 1])}});
    EXPECT_EQ(Sent<double>(*op, kGradients[0], whole_vector(7), 1, r).c, Sent<double>(*same, kGradients[0], whole_vector(7), 1, r).c) << r;
  }
  EXPECT_THROW(make_operator<double>("adaqs", {{"levels", whole(200)}}), ConfigError);
}

TEST(Dqsgd, TakesLevelsByTheNorm) {
  expect_three_steps("dqsgd", {{"levels_per_unit", Value{2.5}}}, [](const Vector& p, std::uint32_t r) {
    const double norm = norm_of(p), step = norm / std::max(1.0, std::ceil(2.5 * norm));
    return each(p, [&](double x, std::size_t j) { return signed_like(step * drawn(std::fabs(x) / step, j, r), x); });
  });
  const auto op = make_operator<double>("dqsgd", {{"levels_per_unit", Value{4.0}}, {"rule", text("lambda")}});
  EXPECT_DOUBLE_EQ(*op->contract(whole_vector(64)).kappa, 2);
  EXPECT_DOUBLE_EQ(op->kappa_at(whole_vector(64), {.in_input = 0.25}), 0.5);
}

TEST(Inceptionn, CutsByExponent) {
  expect_three_steps("inceptionn", {{"error_bits", whole(6)}}, [](const Vector& p, std::uint32_t) {
    return each(p, [&](double x, std::size_t) {
      const double a = std::fabs(x);
      const int places = a < 0x1p-3 ? 7 : 15;  // 2^-floor(6/2)
      return a < 0x1p-6 ? 0.0 : signed_like(std::ldexp(std::trunc(std::ldexp(a, places)), -places), x);
    });
  });
  // 2 bits of tag each; dropped, 8, 16 and 32 bits.
  const auto op = make_operator<double>("inceptionn", {{"error_bits", whole(6)}});
  const Sent<double> sent(*op, {0.01, -0.1, 0.5, 1.5}, whole_vector(4));
  EXPECT_DOUBLE_EQ(op->published_bits(sent.message, whole_vector(4)), 4 * 2 + 0 + 8 + 16 + 32);
  EXPECT_DOUBLE_EQ(*op->contract(whole_vector(4)).kappa, 2 * 0x1p-6);
}

TEST(AbsoluteRounding, RoundsToAGridOfItsOwn) {
  expect_three_steps("absolute_rounding", {{"step", Value{0.25}}}, [](const Vector& p, std::uint32_t r) {
    return each(p, [&](double x, std::size_t j) { return signed_like(0.25 * drawn(std::fabs(x) / 0.25, j, r), x); });
  });
  expect_three_steps("absolute_rounding", {{"step", Value{0.25}}, {"rounding", text("nearest")}, {"deadzone", Value{1.5}}},
                     [](const Vector& p, std::uint32_t) {
                       return each(p, [&](double x, std::size_t) { return std::fabs(x) < 0.375 ? 0.0 : 0.25 * std::rint(x / 0.25); });
                     });
}
TEST(AbsoluteRounding, KappaFollowsTheStepSizeOnTheGradientsScale) {
  const Scope scope = whole_vector(64);
  const auto op = make_operator<double>("absolute_rounding", {{"step", Value{0.5}}, {"rule", text("lambda")}});
  EXPECT_DOUBLE_EQ(*op->contract(scope).kappa, 2);
  EXPECT_DOUBLE_EQ(op->kappa_at(scope, {.in_input = 0.1}), 0.2);
  EXPECT_EQ(to_string(op->contract(scope).domain), "at step size 1");
  const auto rule = make_operator<double>("absolute_rounding", {{"step", text("2*sqrt(epsilon/d)")}, {"epsilon", Value{0.09}}});
  EXPECT_DOUBLE_EQ(*rule->contract(scope).kappa, 0.3);
  EXPECT_DOUBLE_EQ(*make_operator<double>("absolute_rounding", {{"step", Value{0.5}}, {"deadzone", Value{3.0}}})->contract(scope).kappa,
                   12);
  EXPECT_THROW(make_operator<double>("absolute_rounding", {{"step", Value{0.0}}}), ConfigError);
}
// The half-way input attains kappa; the width of levels follows the largest; zeros cost a header.
TEST(AbsoluteRounding, ErrorAndBits) {
  const Scope scope = whole_vector(1000);
  const auto op = make_operator<double>("absolute_rounding", {{"step", Value{0.5}}});
  EXPECT_NEAR(64 * 0.0625 * relative_error(*op, Vector(64, 0.25), 10), std::pow(*op->contract(whole_vector(64)).kappa, 2), 1e-12);
  Vector x(1000, 0.1);
  EXPECT_EQ(Sent<double>(*op, x, scope).message.level_format.bits, 2);
  x[3] = 15 * 0.5;
  EXPECT_EQ(Sent<double>(*op, x, scope).message.level_format.bits, 5);
  EXPECT_LT(wire_bits(*op, Sent<double>(*op, Vector(1000, 0.0), scope).message, scope), 32u);
  x[3] = 1e300;
  EXPECT_EQ(Sent<double>(*op, x, scope).c, x) << "an entry that no level reaches is sent as it is";
}

TEST(Vqsgd, DrawsVerticesOfTheCrossPolytope) {
  expect_three_steps("vqsgd", {{"repetitions", whole(3)}}, [](const Vector& p, std::uint32_t r) {
    const double n = 7, norm = norm_of(p);
    double l1 = 0;
    for (const double x : p) l1 += std::fabs(x);
    Vector c(7, 0.0);
    for (std::uint32_t i = 0; i < 3; ++i) {
      std::uint32_t word[4];
      RandomStream(99, 1, r).quad(i, word);
      const double where = (word[1] + std::ldexp(word[2] >> 11, -21)) * 0x1p-32;
      std::size_t j = 0;
      double sign = 1;
      if (word[0] * 0x1p-32 < l1 / (norm * std::sqrt(n))) {
        for (double sum = std::fabs(p[0]); sum <= where * l1; sum += std::fabs(p[++j])) {
        }
        sign = p[j] < 0 ? -1 : 1;
      } else {
        j = static_cast<std::size_t>(where * 2 * n) / 2;
        sign = static_cast<std::size_t>(where * 2 * n) % 2 == 0 ? 1 : -1;
      }
      c[j] += sign * std::sqrt(n) * norm / 3;
    }
    return c;
  });
  const auto op = make_operator<double>("vqsgd", {{"repetitions", whole(1)}});
  EXPECT_NEAR(relative_error(*op, Vector{0.3, -1.0, 2.0, 0.0, 0.1}, 2000), 4, 0.5) << "omega = d - 1, whatever x is";
  EXPECT_DOUBLE_EQ(op->published_bits(Sent<double>(*op, Vector(64, 1.0), whole_vector(64)).message, whole_vector(64)), 7 + 32);
}

TEST(SketchMl, SendsTheMeansOfQuantileBuckets) {
  expect_three_steps("sketchml", {{"buckets", whole(3)}}, [](const Vector& p, std::uint32_t) {
    Vector sorted = p;
    std::sort(sorted.begin(), sorted.end());
    const auto bucket = [&](double x) { return (x >= sorted[7 / 3] ? 1 : 0) + (x >= sorted[14 / 3] ? 1 : 0); };
    double sum[3] = {}, count[3] = {};
    for (const double x : p) sum[bucket(x)] += x, count[bucket(x)] += 1;
    return each(p, [&](double x, std::size_t) { return sum[bucket(x)] / count[bucket(x)]; });
  });
  const auto exact = make_operator<double>("sketchml");
  EXPECT_EQ(Sent<double>(*exact, kGradients[0], whole_vector(7)).c, kGradients[0]) << "as many buckets as entries";
}

// The rotation of rotation.hpp as a matrix [n,n], from its definition. Row-major.
std::vector<Vector> rotation(std::size_t n, std::uint32_t round) {
  std::vector<Vector> R(n, Vector(n, 0.0));
  for (std::size_t i = 0; i < n; ++i) R[i][i] = 1;
  const std::size_t N = std::bit_floor(n);
  const auto flip = [&](std::size_t i, unsigned bit) {
    if ((RandomStream(99, 1, round).bits(i) >> bit & 1) != 0)
      for (double& v : R[i]) v = -v;
  };
  const auto hadamard = [&](std::size_t first) {
    std::vector<Vector> turned = R;
    for (std::size_t i = 0; i < N; ++i)
      for (std::size_t column = 0; column < n; ++column) {
        double sum = 0;
        for (std::size_t j = 0; j < N; ++j) sum += (std::popcount(i & j) % 2 == 0 ? 1 : -1) * R[first + j][column];
        turned[first + i][column] = sum / std::sqrt(static_cast<double>(N));
      }
    R = turned;
  };
  if (n > N) {
    for (std::size_t i = 0; i < n; ++i) flip(i, 2);
    for (std::size_t i = 0; i < n / 2; ++i)
      for (std::size_t column = 0; column < n; ++column) {
        const double a = R[i][column], b = R[i + (n + 1) / 2][column];
        R[i][column] = (a + b) / std::sqrt(2), R[i + (n + 1) / 2][column] = (a - b) / std::sqrt(2);
      }
  }
  for (std::size_t i = 0; i < N; ++i) flip(i, 0);
  hadamard(0);
  if (n == N) return R;
  for (std::size_t i = n - N; i < n; ++i) flip(i, 1);
  hadamard(n - N);
  return R;
}
Vector times(const std::vector<Vector>& R, const Vector& x) {
  Vector y;
  for (const Vector& row : R) y.push_back(std::inner_product(row.begin(), row.end(), x.begin(), 0.0));
  return y;
}
Vector transposed_times(const std::vector<Vector>& R, const Vector& y) {
  Vector x(y.size(), 0.0);
  for (std::size_t i = 0; i < y.size(); ++i)
    for (std::size_t j = 0; j < y.size(); ++j) x[j] += R[i][j] * y[i];
  return x;
}

TEST(Drive, SendsSignsOfTheRotatedVector) {
  for (const bool unbiased : {true, false})
    expect_three_steps("drive", {{"scale", text(unbiased ? "unbiased" : "min_error")}}, [unbiased](const Vector& p, std::uint32_t r) {
      const std::vector<Vector> R = rotation(7, r);
      Vector z = times(R, p);
      double l1 = 0;
      for (const double v : z) l1 += std::fabs(v);
      const double scale = unbiased ? norm_of(p) * norm_of(p) / l1 : l1 / 7;
      for (double& v : z) v = v < 0 ? -scale : scale;
      return transposed_times(R, z);
    });
}
TEST(Drive, TravelsAsBitsAndComesBack) {
  const auto op = make_operator<double>("drive");
  const Scope scope = whole_vector(96);
  Vector x(96, 0.0);
  x[5] = 2;  // ef_sign would send 1/48 everywhere
  const Sent<double> sent(*op, x, scope);
  EXPECT_NEAR(std::inner_product(x.begin(), x.end(), sent.c.begin(), 0.0), 4.0, 1e-12) << "<C(x), x> = |x|^2";
  EXPECT_DOUBLE_EQ(op->published_bits(sent.message, scope), 96 + 32);
  EXPECT_LE(wire_bits(*op, sent.message, scope), 96u + 64 + 32);
  EXPECT_NEAR(relative_error(*op, Vector(64, 1.0), 200), 0.57, 0.25) << "pi/2 - 1";
  EXPECT_NEAR(relative_error(*make_operator<double>("drive", {{"scale", text("min_error")}}), kGradients[0], 2000), 1 - 2 / M_PI, 0.15);
}

// Max 1960, table I: levels and errors.
TEST(Eden, HasTheCentroidsOfTheNormalLaw) {
  const std::vector<Vector> published = {
      {0.7980}, {0.4528, 1.510}, {0.2451, 0.7560, 1.344, 2.152}, {0.1284, 0.3881, 0.6568, 0.9424, 1.256, 1.618, 2.069, 2.733}};
  for (int bits = 1; bits <= 4; ++bits) {
    const NormalCentroids table = normal_centroids(bits);
    ASSERT_EQ(table.count, 1 << (bits - 1));
    for (std::int32_t i = 0; i < table.count; ++i)
      EXPECT_NEAR(table.centroid[i], published[static_cast<std::size_t>(bits - 1)][static_cast<std::size_t>(i)], 6e-4)
          << bits << " bits, " << i;
  }
  const NormalCentroids finest = normal_centroids(8);
  for (std::int32_t i = 1; i < finest.count; ++i) EXPECT_GT(finest.centroid[i], finest.centroid[i - 1]);
}
TEST(Eden, QuantisesTheRotatedVector) {
  const Vector centroid = {0.45278, 1.51042};  // to five digits: the scale makes up for a common factor only
  for (const bool unbiased : {true, false})
    expect_three_steps(
        "eden", {{"bits", whole(2)}, {"scale", text(unbiased ? "unbiased" : "min_error")}},
        [&](const Vector& p, std::uint32_t r) {
          const std::vector<Vector> R = rotation(7, r);
          const Vector turned = times(R, p);
          Vector q = turned;
          for (double& v : q)
            v = signed_like(centroid[std::fabs(v) * std::sqrt(7.0) / norm_of(p) < (centroid[0] + centroid[1]) / 2 ? 0 : 1], v);
          const double product = std::inner_product(turned.begin(), turned.end(), q.begin(), 0.0);
          const double scale = unbiased ? norm_of(p) * norm_of(p) / product : product / (norm_of(q) * norm_of(q));
          for (double& v : q) v *= scale;
          return transposed_times(R, q);
        },
        5e-4);
}
TEST(Eden, OfOneBitIsDrive) {
  for (const char* scale : {"unbiased", "min_error"}) {
    const auto drive = make_operator<double>("drive", {{"scale", text(scale)}});
    const auto eden = make_operator<double>("eden", {{"bits", whole(1)}, {"scale", text(scale)}});
    const Vector a = Sent<double>(*drive, kGradients[0], whole_vector(7)).c, b = Sent<double>(*eden, kGradients[0], whole_vector(7)).c;
    for (std::size_t j = 0; j < 7; ++j) EXPECT_NEAR(a[j], b[j], 1e-14);
  }
}
TEST(Eden, ErrsAsNormalNumbersDo) {
  Vector x(256);  // dense: the rotation of a few entries takes a few values, which levels may happen to meet
  for (std::size_t j = 0; j < 256; ++j) x[j] = std::sin(1.0 + static_cast<double>(j * j));
  const double published[] = {0.3634, 0.1175, 0.03454, 0.009497};
  for (std::int64_t bits = 2; bits <= 4; ++bits) {
    const auto op = make_operator<double>("eden", {{"bits", whole(bits)}, {"scale", text("min_error")}});
    const double seen = relative_error(*op, x, 300);
    EXPECT_LT(seen, 1.2 * published[bits - 1]) << bits;
    EXPECT_GT(seen, 0.8 * published[bits - 1]) << bits;
  }
}

}  // namespace
}  // namespace fl::test
