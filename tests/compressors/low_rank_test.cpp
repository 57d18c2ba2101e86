// Tests low-rank operators on matrices with known singular values: M = Q1 diag(s) Q2^T with rotations Q1, Q2.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compressors/codec/codec.hpp"
#include "tests/compressors/operator_case.hpp"

namespace fl {
namespace {

using namespace fl::test;
using testing::HasSubstr;
using Vector = std::vector<double>;

Value text(const char* s) { return Value{std::string(s)}; }
Value integer(std::int64_t i) { return Value{i}; }
Value real(double x) { return Value{x}; }

constexpr std::size_t kRows = 3, kCols = 3;

Scope matrix_scope() {
  LayerTable table;
  table.layers.push_back({"matrix", 0, kRows, kCols});
  table.layers.push_back({"bias", kRows * kCols, 2, 1});
  return make_scope(table, ScopeKind::tensor, 0, {});
}

// sum_i s_i u_i v_i^T with u, v the columns of rotations about two axes, and a bias of 1, 2 behind it.
struct Known {
  double u[3][3], v[3][3];
  Known() {
    const double c = std::cos(0.7), s = std::sin(0.7), d = std::cos(1.1), t = std::sin(1.1);
    const double U[3][3] = {{c, -s, 0}, {s, c, 0}, {0, 0, 1}}, V[3][3] = {{d, 0, -t}, {0, 1, 0}, {t, 0, d}};
    std::copy(&U[0][0], &U[0][0] + 9, &u[0][0]);
    std::copy(&V[0][0], &V[0][0] + 9, &v[0][0]);
  }
  [[nodiscard]] Vector matrix(double s0, double s1, double s2) const {
    const double s[] = {s0, s1, s2};
    Vector x(kRows * kCols + 2, 0.0);
    for (std::size_t i = 0; i < kRows; ++i)
      for (std::size_t j = 0; j < kCols; ++j)
        for (std::size_t r = 0; r < 3; ++r) x[i * kCols + j] += s[r] * u[i][r] * v[j][r];
    x[9] = 1;
    x[10] = 2;
    return x;
  }
};

// C(x) for the matrix; what is excluded is not the operator's.
Vector matrix_part(const Vector& dense) { return {dense.begin(), dense.begin() + kRows * kCols}; }

void expect_near(const Vector& a, const Vector& b, const std::string& what) {
  for (std::size_t j = 0; j < kRows * kCols; ++j) EXPECT_NEAR(a[j], b[j], 1e-12) << what << ", entry " << j;
}

std::unique_ptr<Compressor<double>> op_of(const char* name, const std::vector<std::pair<std::string, Value>>& fields) {
  return make_compressor<double>(name, fields);
}

TEST(RankRSvd, KeepsTheLargestSingularValues) {
  const Known known;
  auto op = op_of("rank_r_svd", {{"rank", integer(2)}});
  const Scope scope = op->adapt(matrix_scope());
  const auto sent = compress(*op, scope, known.matrix(5, 2, 1));
  expect_near(sent.dense, known.matrix(5, 2, 0), "C(x)");
  expect_near(sent.state, known.matrix(0, 0, 1), "error");
  EXPECT_NEAR(*op->contract(scope).delta, 2.0 / 3, 1e-15);
  EXPECT_EQ(sent.message.num_sent, 2 * (kRows + kCols));
  EXPECT_EQ(op->published_bits(sent.message, scope), 32.0 * (12 + 2));
  // Equal singular values: the bound is reached.
  const auto tight = compress(*op, scope, known.matrix(3, 3, 3));
  EXPECT_NEAR(squared_norm(matrix_part(tight.state)), 9, 1e-12);
}

// Three rounds of error feedback: the triplets are known in every round, because they stay the same.
TEST(RankRSvd, ErrorFeedbackSendsWhatHasGrownLargest) {
  const Known known;
  auto op = op_of("rank_r_svd", {{"rank", integer(1)}});
  const Scope scope = op->adapt(matrix_scope());
  double e[3] = {0, 0, 0};
  Vector memory = known.matrix(0, 0, 0);
  for (int round = 0; round < 3; ++round) {
    Vector p = known.matrix(4, 3, 1.5);
    for (std::size_t j = 0; j < 9; ++j) p[j] += memory[j];
    double s[3] = {e[0] + 4, e[1] + 3, e[2] + 1.5};
    const std::size_t largest = static_cast<std::size_t>(std::max_element(s, s + 3) - s);
    const auto sent = compress(*op, scope, p);
    expect_near(sent.dense, known.matrix(largest == 0 ? s[0] : 0, largest == 1 ? s[1] : 0, largest == 2 ? s[2] : 0), "C(x)");
    for (std::size_t i = 0; i < 3; ++i) e[i] = i == largest ? 0 : s[i];
    memory = sent.state;
    expect_near(memory, known.matrix(e[0], e[1], e[2]), "memory");
  }
}

TEST(AbsoluteLowRank, KeepsWhatExceedsTheThreshold) {
  const Known known;
  auto op = op_of("absolute_low_rank", {{"threshold", real(1.5)}});
  const Scope scope = op->adapt(matrix_scope());
  expect_near(compress(*op, scope, known.matrix(5, 2, 1)).dense, known.matrix(5, 2, 0), "two above");
  expect_near(compress(*op, scope, known.matrix(1.4, 1, 0.1)).dense, known.matrix(0, 0, 0), "none above");
  expect_near(compress(*op, scope, known.matrix(9, 8, 7)).dense, known.matrix(9, 8, 7), "all above");
  EXPECT_NEAR(*op->contract(scope).kappa, std::sqrt(3) * 1.5, 1e-15);
  // The error is the threshold's, not the matrix's: a thousand times the matrix leaves no more behind.
  EXPECT_LE(squared_norm(matrix_part(compress(*op, scope, known.matrix(5000, 1.4, 1.5)).state)), 3 * 1.5 * 1.5);
  // It minimises |Y - M|^2 + lambda^2 rank(Y) over the truncations, which by Eckart and Young are all that matter.
  const Vector x = known.matrix(5, 2, 1);
  const auto sent = compress(*op, scope, x);
  const double own = squared_norm(matrix_part(sent.state)) + 1.5 * 1.5 * static_cast<double>(sent.message.counts[0]);
  for (std::int64_t rank = 1; rank <= 3; ++rank) {
    auto other = op_of("rank_r_svd", {{"rank", integer(rank)}});
    EXPECT_LE(own, squared_norm(matrix_part(compress(*other, scope, x).state)) + 1.5 * 1.5 * static_cast<double>(rank) + 1e-12) << rank;
  }
  // The rule "lambda" multiplies by the step size.
  auto lambda = op_of("absolute_low_rank", {{"threshold", real(15)}, {"rule", text("lambda")}});
  expect_near(compress(*lambda, scope, x, 0.1).dense, known.matrix(5, 2, 0), "lambda");
}

// Singular values 6, 1, 1 with a budget of 2: 6 * 2 > 8, so the first is certain; the others share what is left, p = 1/2 each, sent as 2.
TEST(Atomo, SpendsItsBudgetOnTriplets) {
  const Known known;
  auto op = op_of("atomo", {{"atoms", text("singular")}, {"rank", integer(2)}});
  const Scope scope = op->adapt(matrix_scope());
  // Equal singular values have no triplets of their own: these differ a little, and so do the probabilities 1.1/2.1 and 1/2.1.
  const Vector x = known.matrix(6, 1.1, 1);
  int kept = 0, rounds = 300;
  for (int round = 0; round < rounds; ++round) {
    const auto sent = compress(*op, scope, x, 1, static_cast<std::uint32_t>(round));
    const std::size_t rank = sent.message.counts[0];
    kept += static_cast<int>(rank);
    double energy = squared_norm(matrix_part(sent.dense));
    EXPECT_NEAR(energy, 36 + 2.1 * 2.1 * static_cast<double>(rank - 1), 1e-9);
  }
  EXPECT_NEAR(kept, 2 * rounds, 45);
  EXPECT_NEAR(*op->contract(scope).omega, 0.5, 1e-15);
}

// |x|_1 = 10, k = 2, no entry is certain: the rule is that of p = 2 |x| / 10; with (8, 1, 1) the first is, and the rest have 1/2.
TEST(Atomo, ForEntriesIsTheFixedPointOfWangni) {
  auto atomo = op_of("atomo", {{"k", integer(2)}});
  auto wangni = make_compressor<double>("wangni", {{"k", integer(2)}});
  for (const Vector& x : {Vector{4, -3, 2, 1}, Vector{8, 1, -1}, Vector{5, 5, 5, 5, 1e-3}}) {
    LayerTable table;
    table.layers.push_back({"only", 0, x.size(), 1});
    const Scope scope = make_scope(table, ScopeKind::model, 0, {});
    for (std::uint32_t round = 0; round < 20; ++round) {
      const Vector a = compress(*atomo, scope, x, 1, round).dense, b = compress(*wangni, scope, x, 1, round).dense;
      for (std::size_t j = 0; j < x.size(); ++j) EXPECT_NEAR(a[j], b[j], 1e-9) << j;
    }
  }
}

// A matrix of rank one is found in one sweep from any start, up to the ridge; and the factor is remembered.
TEST(GradZip, FindsAMatrixOfRankOne) {
  const Known known;
  auto op = op_of("gradzip", {{"rank", integer(1)}, {"ridge", real(1e-9)}});
  const Scope scope = op->adapt(matrix_scope());
  ASSERT_EQ(op->client_state_size(scope), kCols);
  const auto sent = compress(*op, scope, known.matrix(4, 0, 0));
  for (std::size_t j = 0; j < 9; ++j) EXPECT_NEAR(sent.dense[j], known.matrix(4, 0, 0)[j], 1e-6);
  EXPECT_NE(sent.memory, Vector(kCols, 0.0));
}

// Rank 1 by hand: L = M q / (q'q (1 + ridge)), R = M' L / (L'L (1 + ridge)), three rounds on a matrix that changes.
TEST(GradZip, FollowsItsEquationsForThreeRounds) {
  const Known known;
  constexpr double kRidge = 0.1;
  auto op = op_of("gradzip", {{"rank", integer(1)}, {"ridge", real(kRidge)}});
  const Scope scope = op->adapt(matrix_scope());
  Vector q = {1, -0.5, 0.25}, memory = q;
  for (int round = 0; round < 3; ++round) {
    const Vector x = known.matrix(4, 1 + round, 0.5);
    const double largest =
        std::fabs(*std::max_element(x.begin(), x.begin() + 9, [](double a, double b) { return std::fabs(a) < std::fabs(b); }));
    Vector L(3, 0.0), R(3, 0.0);
    const double qq = q[0] * q[0] + q[1] * q[1] + q[2] * q[2];
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t j = 0; j < 3; ++j) L[i] += x[i * 3 + j] / largest * q[j] / (qq * (1 + kRidge));
    const double ll = L[0] * L[0] + L[1] * L[1] + L[2] * L[2];
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t j = 0; j < 3; ++j) R[j] += x[i * 3 + j] / largest * L[i] / (ll * (1 + kRidge));
    const auto sent = compress(*op, scope, x, 1, static_cast<std::uint32_t>(round), 0, memory);
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t j = 0; j < 3; ++j) EXPECT_NEAR(sent.dense[i * 3 + j], largest * L[i] * R[j], 1e-12);
    memory = sent.memory;
    q = R;
    for (std::size_t j = 0; j < 3; ++j) EXPECT_NEAR(memory[j], q[j], 1e-12);
  }
}

TEST(LowRank, WithoutMatricesIsRefused) {
  LayerTable table;
  table.layers.push_back({"vector", 0, 9, 1});
  for (const char* name : {"rank_r_svd", "absolute_low_rank", "gradzip"}) {
    auto op = make_compressor<double>(name);
    EXPECT_THAT(refusal([&] { op->check(op->adapt(make_scope(table, ScopeKind::tensor, 0, {}))); }), HasSubstr("scope = \"tensor\""))
        << name;
  }
}

}  // namespace
}  // namespace fl
