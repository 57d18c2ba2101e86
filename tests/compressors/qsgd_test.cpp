// Tests the constants of QSGD on inputs with known closed forms, d = 64, and the edge cases of the level arithmetic.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/compressors/quantizer_support.hpp"

namespace fl::test {
namespace {

const Value kMax{std::string("max")};

std::vector<double> constant(std::size_t d, double value) { return std::vector<double>(d, value); }

// s |x_j| / |x| = 1.5 for 36 coordinates and 2.5 for 28: every one half-way, |x| = 16 = s.
std::vector<double> half_way() {
  std::vector<double> x(64, 1.5);
  std::fill_n(x.begin(), 28, -2.5);
  return x;
}

TEST(Qsgd, VarianceAtSOneIsRootDMinusOne) {
  const auto op = make_operator<double>("qsgd", {{"levels", Value{std::int64_t{1}}}});
  EXPECT_NEAR(relative_error(*op, constant(64, 0.3), 4000), 7.0, 0.3);
  EXPECT_DOUBLE_EQ(*op->contract(whole_vector(64)).omega, 8.0);
}
TEST(Qsgd, VarianceAtSFour) {
  const auto op = make_operator<double>("qsgd", {{"levels", Value{std::int64_t{4}}}});
  EXPECT_NEAR(relative_error(*op, constant(64, -2.0), 400), 1.0, 1e-9);  // a = 1/2 everywhere: the error is the same in every draw
  EXPECT_DOUBLE_EQ(*op->contract(whole_vector(64)).omega, 2.0);
}
TEST(Qsgd, VarianceAtSSixteen) {
  const auto op = make_operator<double>("qsgd", {{"levels", Value{std::int64_t{16}}}});
  EXPECT_NEAR(relative_error(*op, half_way(), 400), 0.0625, 1e-9);
  EXPECT_DOUBLE_EQ(*op->contract(whole_vector(64)).omega, 0.25);
}
TEST(Qsgd, MaxNormWithOneLevelIsTernGrad) {
  const auto op = make_operator<double>("qsgd", {{"levels", Value{std::int64_t{1}}}, {"norm", kMax}});
  std::vector<double> x(64, 1.0 / 9);
  x[17] = 1;
  EXPECT_NEAR(relative_error(*op, x, 8000), 3.5, 0.15);
  EXPECT_GE(*op->contract(whole_vector(64)).omega, 3.5);
}
TEST(Qsgd, ScaledIsAContractionInExpectation) {
  const auto op = make_operator<double>("qsgd", {{"levels", Value{std::int64_t{1}}}, {"scaled", Value{true}}});
  const Contract contract = op->contract(whole_vector(64));
  EXPECT_FALSE(contract.omega.has_value());
  EXPECT_DOUBLE_EQ(*contract.delta, 1.0 / 9);
  // (omega_x + omega^2) / (1 + omega)^2 with omega_x = 7 and omega = 8
  EXPECT_NEAR(relative_error(*op, constant(64, 1.0), 4000), 71.0 / 81, 0.01);
}

TEST(Qsgd, LevelsOfEightBits) {
  const auto op = make_operator<float>("qsgd");
  const Sent<float> sent(*op, std::vector<float>(512, 1.0f), whole_vector(512));
  EXPECT_EQ(sent.message.level_format.bits, 8);
  EXPECT_EQ(sent.message.level_width, LevelWidth::w8);
  EXPECT_DOUBLE_EQ(op->published_bits(sent.message, whole_vector(512)), 512 * 8 + 32);
}
TEST(Qsgd, TheLargestElementAloneIsSentExactly) {
  const auto op = make_operator<float>("qsgd", {{"norm", kMax}});
  for (std::uint32_t round = 0; round < 200; ++round) {
    const std::vector<float> x{0.0f, -3.7f * static_cast<float>(round + 1), 0.0f};
    const Sent<float> sent(*op, x, whole_vector(3), 1, round);
    EXPECT_EQ(sent.message.level(1), -127);
    EXPECT_EQ(sent.c[0], 0.0f);
  }
}
TEST(Qsgd, ZeroAndUnrepresentableSegmentsAreSentAsZeros) {
  const auto op = make_operator<float>("qsgd");
  for (const float value : {0.0f, std::numeric_limits<float>::denorm_min(), 1e-37f}) {
    const Sent<float> sent(*op, std::vector<float>(8, value), whole_vector(8));
    EXPECT_EQ(sent.message.scale[0], 0.0f);
    for (const float c : sent.c) EXPECT_EQ(c, 0.0f);
  }
}
TEST(Qsgd, DrawsDependOnClientAndRound) {
  const auto op = make_operator<float>("qsgd", {{"levels", Value{std::int64_t{1}}}});
  const std::vector<float> x(64, 1.0f);
  const Sent<float> first(*op, x, whole_vector(64), 1, 1), same(*op, x, whole_vector(64), 1, 1), client(*op, x, whole_vector(64), 2, 1),
      round(*op, x, whole_vector(64), 1, 2);
  EXPECT_EQ(first.c, same.c);
  EXPECT_NE(first.c, client.c);
  EXPECT_NE(first.c, round.c);
}

}  // namespace
}  // namespace fl::test
