// Tests that synthetic data have the properties that their descriptions promise.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fl_core/config/error.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/data/data_generator.hpp"

namespace fl {
namespace {

using Settings = std::vector<std::pair<std::string, Value>>;

Options options_of(const std::string& name, const Settings& settings) {
  Options options = Registry::instance().default_options("data", name);
  Schema schema = options.schema();
  for (const auto& [key, value] : settings) {
    Field* field = schema.find(key);
    if (field == nullptr) throw Error("no option " + key);
    if (const auto refused = field->assign(value)) throw Error(key + " " + *refused);
  }
  return options;
}

template <class T>
Dataset<T> generate(const std::string& name, const Settings& settings = {}, std::uint64_t seed = 1) {
  const auto part = make_part<DataGenerator<T>>("data", name, options_of(name, settings), Device::cpu, kPrecisionOf<T>);
  return part->generate(seed);
}

Value number(double x) { return Value{x}; }
Value whole(std::int64_t x) { return Value{x}; }
Value text(const char* x) { return Value{std::string(x)}; }

class EveryGenerator : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryGenerator, RepeatsForItsSeedAndAgreesAcrossPrecisions) {
  const auto a = generate<double>(GetParam()), b = generate<double>(GetParam());
  const auto single = generate<float>(GetParam());
  ASSERT_EQ(a.dense.size(), a.num_rows * a.dense_stride());
  EXPECT_TRUE(std::equal(a.dense.begin(), a.dense.end(), b.dense.begin(), b.dense.end()));
  EXPECT_EQ(a.label, single.label);
  EXPECT_EQ(a.client_begin, single.client_begin);
  for (std::size_t row = 0; row < a.num_rows; ++row)
    for (std::size_t j = 0; j < a.num_features; ++j) ASSERT_EQ(single.dense_row(row)[j], static_cast<float>(a.dense_row(row)[j]));
}

TEST_P(EveryGenerator, ComesWithAPartitionThatCoversItsRows) {
  const auto data = generate<double>(GetParam());
  ASSERT_GE(data.client_begin.size(), 2u);
  EXPECT_EQ(data.client_begin.front(), 0u);
  EXPECT_EQ(data.client_begin.back(), data.num_rows);
  EXPECT_TRUE(std::is_sorted(data.client_begin.begin(), data.client_begin.end(), std::less_equal<>()));  // no client empty
  EXPECT_EQ(data.name, GetParam());
}

INSTANTIATE_TEST_SUITE_P(All, EveryGenerator, ::testing::ValuesIn(Registry::instance().names("data")),
                         [](const auto& test) { return test.param; });

// Means and deviations over clients of what synthetic(alpha, beta) draws.
struct ClientMeans {
  double deviation = 0;          // of the clients' mean input
  std::vector<double> variance;  // [D] within clients
};
ClientMeans client_means(const Dataset<double>& data) {
  const std::size_t n = data.client_begin.size() - 1, D = data.num_features;
  ClientMeans result;
  result.variance.assign(D, 0.0);
  double sum_sq = 0;
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<double> mean(D, 0.0), square(D, 0.0);
    const auto rows = static_cast<double>(data.client_begin[i + 1] - data.client_begin[i]);
    for (std::size_t row = data.client_begin[i]; row < data.client_begin[i + 1]; ++row) {
      for (std::size_t j = 0; j < D; ++j) {
        mean[j] += data.dense_row(row)[j] / rows;
        square[j] += data.dense_row(row)[j] * data.dense_row(row)[j] / rows;
      }
    }
    double centre = 0;
    for (std::size_t j = 0; j < D; ++j) {
      centre += mean[j] / static_cast<double>(D);
      result.variance[j] += (square[j] - mean[j] * mean[j]) / static_cast<double>(n) * rows / (rows - 1);
    }
    sum_sq += centre * centre / static_cast<double>(n);
  }
  result.deviation = std::sqrt(sum_sq);
  return result;
}

// The mean input of a client is B_i + N(0, 1/D): its variance over clients is beta (or beta^2) + 1/D, rows adding little.
TEST(Synthetic, ReadsBetaAsItIsTold) {
  for (const auto& [reading, variance] : {std::pair{"variance", 4.0}, std::pair{"standard_deviation", 16.0}}) {
    const auto data = generate<double>(
        "synthetic",
        {{"alpha", number(0)}, {"beta", number(4)}, {"reading", text(reading)}, {"clients", whole(200)}, {"features", whole(5)}});
    const double expected = std::sqrt(variance + 1.0 / 5);
    EXPECT_NEAR(client_means(data).deviation, expected, 0.17 * expected) << reading;  // 3.5 standard errors of 200 clients
  }
}

TEST(Synthetic, HasTheStatedCovarianceAndSizes) {
  const auto data = generate<double>("synthetic", {{"clients", whole(100)}, {"features", whole(20)}});
  const ClientMeans means = client_means(data);
  for (std::size_t j : {0u, 1u, 9u, 19u}) {
    const double expected = std::pow(static_cast<double>(j + 1), -1.2);
    EXPECT_NEAR(means.variance[j], expected, 0.1 * expected) << j;
  }
  std::vector<double> log_rows;
  for (std::size_t i = 0; i + 1 < data.client_begin.size(); ++i) {
    const std::size_t rows = data.client_begin[i + 1] - data.client_begin[i];
    EXPECT_GE(rows, 50u);
    log_rows.push_back(std::log(static_cast<double>(rows - 50) + 0.5));
  }
  std::nth_element(log_rows.begin(), log_rows.begin() + 50, log_rows.end());
  EXPECT_NEAR(log_rows[50], 4.0, 0.8);  // the median of lognormal(4, 2); 3 standard errors
}

// With one model and one input distribution the clients' class frequencies agree up to chance.
TEST(Synthetic, IsAlikeEverywhereWhenIid) {
  const auto spread = [](const Dataset<double>& data) {
    double total = 0;
    const std::size_t n = data.client_begin.size() - 1;
    for (std::size_t c = 0; c < data.num_classes; ++c) {
      const auto all =
          static_cast<double>(std::count(data.label.begin(), data.label.end(), static_cast<int>(c))) / static_cast<double>(data.num_rows);
      for (std::size_t i = 0; i < n; ++i) {
        const auto first = data.label.begin() + static_cast<std::ptrdiff_t>(data.client_begin[i]);
        const auto last = data.label.begin() + static_cast<std::ptrdiff_t>(data.client_begin[i + 1]);
        total += std::abs(static_cast<double>(std::count(first, last, static_cast<int>(c))) / static_cast<double>(last - first) - all);
      }
    }
    return total / static_cast<double>(n);
  };
  EXPECT_LT(spread(generate<double>("synthetic", {{"iid", Value{true}}})), 0.3);
  EXPECT_GT(spread(generate<double>("synthetic")), 0.8);
}

TEST(Synthetic, AClientDoesNotDependOnHowManyThereAre) {
  const auto few = generate<double>("synthetic", {{"clients", whole(2)}}), more = generate<double>("synthetic", {{"clients", whole(5)}});
  EXPECT_TRUE(std::equal(few.dense.begin(), few.dense.end(), more.dense.begin()));
  EXPECT_TRUE(std::equal(few.label.begin(), few.label.end(), more.label.begin()));
  const auto other = generate<double>("synthetic", {{"clients", whole(2)}}, 2);
  EXPECT_NE(few.dense[0], other.dense[0]);
}

// A problem read back from its rows, as plain loops.
struct StoredProblem {
  explicit StoredProblem(const Dataset<double>& source) : data(source) {
    for (d = 1; d * d + d + 1 < data.num_features;) ++d;
  }
  const double* row(std::size_t i) const { return data.dense_row(i); }
  std::vector<double> gradient(std::size_t i, const std::vector<double>& x) const {
    std::vector<double> g(d);
    for (std::size_t j = 0; j < d; ++j) {
      g[j] = -row(i)[d * d + j];
      for (std::size_t k = 0; k < d; ++k) g[j] += row(i)[j * d + k] * x[k];
    }
    return g;
  }
  double value(std::size_t i, const std::vector<double>& x) const {
    double sum = row(i)[d * d + d];
    for (std::size_t j = 0; j < d; ++j) {
      sum -= row(i)[d * d + j] * x[j];
      for (std::size_t k = 0; k < d; ++k) sum += 0.5 * x[j] * row(i)[j * d + k] * x[k];
    }
    return sum;
  }
  std::vector<double> mean_gradient(std::size_t begin, std::size_t end, const std::vector<double>& x) const {
    std::vector<double> g(d, 0.0);
    for (std::size_t i = begin; i < end; ++i) {
      const auto g_i = gradient(i, x);
      for (std::size_t j = 0; j < d; ++j) g[j] += g_i[j] / static_cast<double>(end - begin);
    }
    return g;
  }
  // Gradient descent with steps 1/L until it stands.
  std::vector<double> optimum(double L) const {
    std::vector<double> x(d, 0.0);
    for (int t = 0; t < 3000; ++t) {
      const auto g = mean_gradient(0, data.num_rows, x);
      for (std::size_t j = 0; j < d; ++j) x[j] -= g[j] / L;
    }
    return x;
  }
  const Dataset<double>& data;
  std::size_t d = 0;
};

double distance_sq(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t j = 0; j < a.size(); ++j) sum += (a[j] - b[j]) * (a[j] - b[j]);
  return sum;
}

TEST(Quadratics, HaveTheAskedHeterogeneityNoiseAndOptimum) {
  for (const char* hessians : {"shared", "per_client"}) {
    const auto data = generate<double>("quadratics", {{"clients", whole(5)},
                                                      {"dimension", whole(6)},
                                                      {"rows_per_client", whole(4)},
                                                      {"mu", number(0.5)},
                                                      {"L", number(2)},
                                                      {"zeta_sq", number(3)},
                                                      {"noise", number(0.7)},
                                                      {"optimum_norm", number(2)},
                                                      {"hessians", text(hessians)}});
    const StoredProblem problem(data);
    ASSERT_EQ(problem.d, 6u);
    const auto x = problem.optimum(2);
    EXPECT_NEAR(distance_sq(x, std::vector<double>(6, 0.0)), 4, 1e-10);
    double zeta_sq = 0, noise = 0;
    for (std::size_t i = 0; i < 5; ++i) {
      const auto client = problem.mean_gradient(4 * i, 4 * i + 4, x);
      zeta_sq += distance_sq(client, problem.mean_gradient(0, 20, x)) / 5;
      for (std::size_t r = 4 * i; r < 4 * i + 4; ++r) {
        noise += distance_sq(problem.gradient(r, x), client) / 20;
        EXPECT_NEAR(problem.value(r, x), 0, 1e-10);
      }
    }
    EXPECT_NEAR(zeta_sq, 3, 1e-10) << hessians;
    EXPECT_NEAR(noise, 0.7, 1e-12) << hessians;
  }
}

// trace A = sum lambda, trace A^2 = sum lambda^2 and the extremes by power iteration.
TEST(Quadratics, HaveTheAskedEigenvalues) {
  const auto data = generate<double>(
      "quadratics",
      {{"clients", whole(2)}, {"dimension", whole(5)}, {"mu", number(0.01)}, {"L", number(100)}, {"hessians", text("per_client")}});
  const StoredProblem problem(data);
  const double* A = problem.row(1);
  double trace = 0, frobenius = 0, expected = 0, expected_sq = 0;
  for (std::size_t i = 0; i < 5; ++i) {
    trace += A[i * 5 + i];
    const double lambda = std::pow(10.0, -2 + static_cast<double>(i));
    expected += lambda;
    expected_sq += lambda * lambda;
    for (std::size_t j = 0; j < 5; ++j) {
      frobenius += A[i * 5 + j] * A[i * 5 + j];
      EXPECT_EQ(A[i * 5 + j], A[j * 5 + i]);
    }
  }
  EXPECT_NEAR(trace, expected, 1e-9);
  EXPECT_NEAR(frobenius, expected_sq, 1e-7);
  EXPECT_NE(A[0], problem.row(0)[0]);
}

TEST(Quadratics, RefuseWhatCannotBe) {
  const auto problems_of = [](const Settings& settings) {
    Problems problems;
    options_of("quadratics", settings).validate(problems);
    return problems.size();
  };
  EXPECT_EQ(problems_of({}), 0u);
  EXPECT_EQ(problems_of({{"mu", number(2)}, {"L", number(1)}}), 1u);
  EXPECT_EQ(problems_of({{"clients", whole(1)}}), 1u);
  EXPECT_EQ(problems_of({{"noise", number(1)}}), 1u);
  EXPECT_THROW((void)generate<double>("quadratics", {{"clients", whole(1000000)}, {"dimension", whole(10000)}}), ConfigError);
}

// Top-1 without feedback on the published counterexample: every coordinate grows by 1 + 11 eta / 6 in each step.
TEST(Beznosikov, DivergesUnderTop1AsPublished) {
  const auto data = generate<double>("beznosikov");
  const StoredProblem problem(data);
  std::vector<double> x(3, 1.0);
  const double eta = 0.1;
  for (int k = 0; k < 10; ++k) {
    std::vector<double> step(3, 0.0);
    for (std::size_t i = 0; i < 3; ++i) {
      const auto g = problem.gradient(i, x);
      const auto top = static_cast<std::size_t>(
          std::max_element(g.begin(), g.end(), [](double a, double b) { return std::abs(a) < std::abs(b); }) - g.begin());
      step[top] += eta * g[top] / 3;
    }
    for (std::size_t j = 0; j < 3; ++j) x[j] -= step[j];
  }
  for (const double v : x) EXPECT_NEAR(v, 5.38357767326, 1e-10);
  EXPECT_EQ(problem.value(0, {1, 1, 1}), 1.75);
}

TEST(Ef21Example, HasItsFunctions) {
  const auto data = generate<double>("ef21_example");
  const StoredProblem problem(data);
  EXPECT_EQ(problem.d, 2u);
  EXPECT_EQ(problem.value(0, {4, 0}), 0);
  EXPECT_EQ(problem.value(1, {0, 3}), 0);
  EXPECT_EQ(problem.value(0, {0, 0}), 8);
  EXPECT_EQ(problem.gradient(1, {0, 0}), (std::vector<double>{0, -3}));
}

}  // namespace
}  // namespace fl
