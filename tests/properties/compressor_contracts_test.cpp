// Every registered compressor keeps the contract it states: pointwise claims exactly, expectations by Monte Carlo over 500 clients with
// equal inputs. Tolerances of the latter are 6 standard errors (and a Bernstein term for rare events): a sound operator fails one claim
// with probability below 1e-8.
#include <gtest/gtest.h>

#include "tests/properties/property_cases.hpp"

namespace fl::test {
namespace {

constexpr std::uint32_t kDraws = 500;
constexpr double kStandardErrors = 6;

template <class T>
class CompressorContracts : public testing::Test {};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(CompressorContracts, Precisions);

double dot(const double* x, const double* y, std::size_t n) {
  double sum = 0;
  for (std::size_t j = 0; j < n; ++j) sum += x[j] * y[j];
  return sum;
}

// Contract::domain says where a claim holds, in words; here the same as a test of the input.
template <class T>
bool in_domain(const Case& c, const std::vector<T>& p) {
  double largest = 0;
  for (const T x : p) largest = std::max(largest, std::fabs(static_cast<double>(x)));
  const bool fp16 = c.label.find("fp16") != std::string::npos, fp32 = c.label.find("fp32") != std::string::npos;
  if (fp16 && (largest > 6e4 || (largest > 0 && largest < 1e-3))) return false;
  if (fp16 && c.name == "hard_threshold" && largest > 0.25 * 0x1p11) return false;
  if (fp32 && (largest > 1e38 || (largest > 0 && largest < 1e-30))) return false;
  if (c.name == "scaled_integer") return largest < 15;
  if (c.name == "qsgd" || c.name == "natural") return largest == 0 || largest > 1e6 * static_cast<double>(std::numeric_limits<T>::min());
  return true;
}

struct Sample {
  double mean = 0, standard_error = 0;
};
Sample sample_of(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  Sample s;
  for (const double v : values) s.mean += v / n;
  double variance = 0;
  for (const double v : values) variance += (v - s.mean) * (v - s.mean) / (n - 1);
  s.standard_error = std::sqrt(variance / n);
  return s;
}

// One input many times, and the errors c - p of each draw, divided by |p| (so that nothing overflows).
template <class T>
struct Draws {
  Draws(Compressor<T>& compressor, const Scope& scope, Shape shape, std::uint32_t draws) : P(scope.P), block(shape, draws, P, 21) {
    for (std::uint32_t k = 1; k < draws; ++k) {
      std::copy_n(block.e.begin(), P, block.e.begin() + static_cast<std::ptrdiff_t>(k * P));
      std::copy_n(block.g.begin(), P, block.g.begin() + static_cast<std::ptrdiff_t>(k * P));
    }
    p = block.p();
    p.resize(P);
    double largest = 0;
    for (const T x : p) largest = std::max(largest, std::fabs(static_cast<double>(x)));
    if (largest == 0) largest = 1;
    double sum = 0;
    for (const T x : p) sum += std::pow(static_cast<double>(x) / largest, 2);
    norm = largest * std::sqrt(sum);
    const Outcome<T> outcome = Sender<T>(compressor, scope).send(block, StateRule::none, false, draws);
    const double unit = norm > 0 ? norm : 1;
    for (std::size_t i = 0; i < outcome.c.size(); ++i)
      error.push_back((static_cast<double>(outcome.c[i]) - static_cast<double>(p[i % P])) / unit);
    for (std::uint32_t k = 0; k < draws; ++k) squared.push_back(dot(&error[k * P], &error[k * P], P));
  }
  std::size_t P;
  Block<T> block;
  std::vector<T> p;
  double norm = 0;
  std::vector<double> error, squared;  // [draws,P], [draws]: relative
};

// Rounding in computing c and c - p, and in adding up many of them.
template <class T>
double rounding() {
  return 16 * static_cast<double>(std::numeric_limits<T>::epsilon()) + 1e-12;
}

template <class T>
void expect_pointwise(const Contract& contract, const Draws<T>& draws) {
  for (const double squared : draws.squared) {
    const double error = std::sqrt(squared);
    if (contract.delta && contract.delta_holds == Contract::Holds::pointwise) {
      ASSERT_LE(error, std::sqrt(std::max(0.0, 1 - *contract.delta)) + rounding<T>());
    }
    if (contract.kappa && contract.kappa_holds == Contract::Holds::pointwise && draws.norm > 0) {
      ASSERT_LE(error, *contract.kappa / draws.norm + rounding<T>());
    }
  }
}

TYPED_TEST(CompressorContracts, PointwiseClaimsHold) {
  using T = TypeParam;
  for_each_case<T>([](const Case& c, Compressor<T>& compressor, const std::string& label, const Scope& scope) {
    for (const Shape shape : kShapes) {
      SCOPED_TRACE(c.label + ", " + label + ", " + to_string(shape));
      const Draws<T> draws(compressor, scope, shape, 20);
      if (in_domain(c, draws.p)) expect_pointwise(compressor.contract(scope), draws);
    }
  });
}

template <class T>
void expect_mean_error(const Contract& contract, const Draws<T>& draws) {
  const Sample s = sample_of(draws.squared);
  const double slack = kStandardErrors * s.standard_error + rounding<T>();
  if (contract.omega) {
    EXPECT_LE(s.mean, *contract.omega + slack);
  }
  if (contract.delta) {
    EXPECT_LE(s.mean, 1 - *contract.delta + slack);
  }
  if (contract.kappa) {
    EXPECT_LE(s.mean, std::pow(*contract.kappa / draws.norm, 2) + slack);
  }
}

// Projections of c - p on the signs of p and on random directions have mean 0.
template <class T>
void expect_unbiased(double omega, const Draws<T>& draws) {
  RandomSequence random(3, Purpose::synthetic_data);
  for (int direction = 0; direction < 4; ++direction) {
    std::vector<double> v(draws.P), projected;
    for (std::size_t j = 0; j < draws.P; ++j) v[j] = direction == 0 ? (draws.p[j] < 0 ? -1.0 : 1.0) : random.normal();
    for (std::uint32_t k = 0; k < kDraws; ++k) projected.push_back(dot(&draws.error[k * draws.P], v.data(), draws.P));
    const Sample s = sample_of(projected);
    const double length = std::sqrt(dot(v.data(), v.data(), draws.P));
    const double rare = std::sqrt(omega) * length / kDraws;
    EXPECT_LE(std::fabs(s.mean), kStandardErrors * (s.standard_error + rare) + rounding<T>() * length);
  }
}

TYPED_TEST(CompressorContracts, ExpectationsHold) {
  using T = TypeParam;
  int num_unbiased = 0;
  for_each_case<T>([&](const Case& c, Compressor<T>& compressor, const std::string& label, const Scope& scope) {
    const Contract contract = compressor.contract(scope);
    const bool is_unbiased = contract.omega && contract.domain.find("unbiased up to") == std::string::npos;
    const bool expected_delta = contract.delta && contract.delta_holds == Contract::Holds::in_expectation;
    const bool expected_kappa = contract.kappa && contract.kappa_holds == Contract::Holds::in_expectation;
    if (!contract.omega && !expected_delta && !expected_kappa) return;
    for (const Shape shape : {Shape::random, Shape::sparse, Shape::tied}) {
      SCOPED_TRACE(c.label + ", " + label + ", " + to_string(shape));
      const Draws<T> draws(compressor, scope, shape, kDraws);
      if (!in_domain(c, draws.p) || draws.norm == 0) continue;
      expect_mean_error(contract, draws);
      if (is_unbiased) expect_unbiased(*contract.omega, draws);
      num_unbiased += is_unbiased ? 1 : 0;
    }
  });
  EXPECT_GT(num_unbiased, 0);
}

}  // namespace
}  // namespace fl::test
