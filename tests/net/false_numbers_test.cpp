// Tests what a server does with false numbers that a peer states beside its messages: norms, sums of losses and squared distances that are
// infinite, not a number, too large, negative, or that contradict the peer's messages. Its messages are right and count.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "net/server/reported_norms.hpp"
#include "tests/net/exact_run.hpp"
#include "tests/net/presence_run.hpp"
#include "tests/support/every_method.hpp"

namespace fl {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

std::uint64_t times_counted(const net::WireCounts& counts, const std::string& part) {
  std::uint64_t times = 0;
  for (const auto& [reason, count] : counts.refused) times += reason.find(part) != std::string::npos ? count : 0;
  return times;
}

std::string text_with_norms(std::size_t method, const std::string& precision) {
  std::string text = test::text_of(test::methods().at(method), precision);
  const std::string every = "every = 3";
  return text.replace(text.find(every), every.size(), every + "\nmeasure_every = 1");
}

// The norms of client 6 are false in every round; `change` gets its six norms.
template <class Change>
test::PresenceRun run_with_false_norms(const std::string& text, Change change) {
  const auto forge = [change](net::wire::Header& header) {
    if (!header.has_norms() || header.norms().client() != 6) return false;
    change(*header.mutable_norms());
    return true;
  };
  return test::run_with_presence(text, {}, {{"0-5"}, {.clients = "6", .forge = forge}});
}

void expect_that_norms_are_left_out(const test::PresenceRun& run, const RunResult& simulated, const std::string& reason) {
  ASSERT_EQ(run.error, "");
  EXPECT_EQ(run.result.record.checksum, simulated.record.checksum) << "the messages count";
  ASSERT_EQ(run.result.rows.size(), simulated.rows.size());
  const std::size_t rounds = simulated.rows.size() - 1;
  EXPECT_EQ(times_counted(run.counts, reason), rounds);
  for (std::size_t r = 1; r <= rounds; ++r) {
    const RoundRow &row = run.result.rows[r], &honest = simulated.rows[r];
    EXPECT_EQ(row.refused, 0U);
    // Means over six clients instead of seven.
    for (const auto& [is, was] : {std::pair{row.grad_norm_sq, honest.grad_norm_sq},
                                  {row.error_norm_sq, honest.error_norm_sq},
                                  {row.compensated_norm_sq, honest.compensated_norm_sq},
                                  {row.compression_error_sq, honest.compression_error_sq}}) {
      EXPECT_EQ(std::isfinite(is), std::isfinite(was)) << r;
      EXPECT_FALSE(is > 7.0 / 6 * was * (1 + 1e-12)) << r << ": " << is << " and " << was;
    }
    EXPECT_LE(row.measured_kappa, honest.measured_kappa) << r;
    EXPECT_GE(row.measured_delta, honest.measured_delta) << r;
  }
}

class FalseNorms : public testing::TestWithParam<std::string> {};

TEST_P(FalseNorms, OfEveryKindAreLeftOut) {
  const std::string text = text_with_norms(1, GetParam());
  const RunResult simulated = test::run_simulated(text);
  ASSERT_TRUE(std::isfinite(simulated.rows.at(2).error_norm_sq)) << "the method has a memory";
  ASSERT_EQ(simulated.rows.size(), 15U);
  // Rounds 1 .. 12: each number in each of the four places; 13 and 14: an operator's error.
  const auto change = [](net::wire::Norms& norms) {
    const std::uint32_t i = norms.round() - 1;
    const double numbers[] = {kInfinity, 1e308, kNan};
    norms.set_values(i < 12 ? static_cast<int>(i % 4) : 5, i < 12 ? numbers[i / 4] : numbers[i % 2]);
  };
  expect_that_norms_are_left_out(run_with_false_norms(text, change), simulated, "not finite, or too large");
}

// |C(p)| <= |p| + |C(p) - p|: the server knows the first one.
TEST_P(FalseNorms, ThatContradictTheMessageAreLeftOut) {
  const std::string text = text_with_norms(1, GetParam());
  const RunResult simulated = test::run_simulated(text);
  const auto change = [](net::wire::Norms& norms) {  // zeros, of the operator alone in even rounds
    for (int i = norms.round() % 2 == 0 ? 4 : 0; i < 6; ++i) norms.set_values(i, 0);
  };
  expect_that_norms_are_left_out(run_with_false_norms(text, change), simulated, "contradict its message");
}

// A negative norm is a mistake of the peer, and no number that a model leads to: its message is refused.
TEST_P(FalseNorms, ThatAreNegativeRefuseTheMessage) {
  const auto change = [](net::wire::Norms& norms) { norms.set_values(2, -1e-300); };
  const test::PresenceRun run = run_with_false_norms(text_with_norms(1, GetParam()), change);
  ASSERT_EQ(run.error, "");
  for (std::size_t r = 1; r < run.result.rows.size(); ++r) EXPECT_EQ(run.result.rows[r].refused, 1U) << r;
  EXPECT_EQ(times_counted(run.counts, "its norms are negative"), run.result.rows.size() - 1);
}

INSTANTIATE_TEST_SUITE_P(Precisions, FalseNorms, testing::Values("float32", "float64"));

// Every method's own norms are believed, in every round.
TEST(FalseNorms, HonestOnesAreBelieved) {
  for (const test::Method& method : test::methods()) {
    SCOPED_TRACE(method.label);
    std::string text = test::text_of(method, "float32");
    const std::string every = "every = 3";
    ASSERT_NE(text.find(every), std::string::npos);
    text.replace(text.find(every), every.size(), every + "\nmeasure_every = 1");
    const test::NetworkRun run = test::run_over_network(text, {"0-6"});
    ASSERT_EQ(run.error, "");
    EXPECT_EQ(times_counted(run.counts, "its norms"), 0U);
  }
}

// ---- sums over a client's rows

test::PresenceRun run_with_false_sums(const std::string& text, const test::Forgery& forge) {
  const std::string file = (std::filesystem::temp_directory_path() / ("fedbits_false_" + std::to_string(::getpid()))).string();
  const ServerData known = test::server_data_through_file(text, "", file);
  std::filesystem::remove(file);
  return test::run_with_presence(text, {}, {{"0-5"}, {.clients = "6", .forge = forge}}, {}, {}, &known);
}

// The sums that client 6 states are these numbers, one order after another.
test::Forgery sums_of(const std::vector<double>& numbers) {
  return [numbers](net::wire::Header& header) {
    if (!header.has_partial_sums() || header.partial_sums().client() != 6) return false;
    header.mutable_partial_sums()->set_sum(numbers[header.partial_sums().order() % numbers.size()]);
    return true;
  };
}

TEST(FalseSums, ThatOverflowTheRowAreLeftOut) {
  const std::string text = test::text_of(test::methods().at(1), "float64");
  const RunResult simulated = test::run_simulated(text);
  const test::PresenceRun run = run_with_false_sums(text, sums_of({1e308, -1e308, kInfinity, kNan}));
  ASSERT_EQ(run.error, "");
  EXPECT_EQ(run.result.record.status, simulated.record.status) << run.result.record.message;
  EXPECT_EQ(run.result.record.checksum, simulated.record.checksum);
  ASSERT_EQ(run.result.rows.size(), simulated.rows.size());
  EXPECT_GT(times_counted(run.counts, "its sums are not finite, or too large"), 4U);
  for (const RoundRow& row : run.result.rows) {
    EXPECT_FALSE(std::abs(row.train_loss) > 1e6) << row.round << ": " << row.train_loss;
    EXPECT_FALSE(row.zeta_sq > 1e6) << row.round << ": " << row.zeta_sq;
  }
}

// A squared distance of 0 from the mean says that the gradient is the mean, which the server knows better.
TEST(FalseSums, DistancesThatContradictTheGradientAreRefused) {
  const std::string text = test::text_of(test::methods().at(1), "float64");
  const test::PresenceRun run = run_with_false_sums(text, sums_of({0.0, 1e30, 1e-30}));
  ASSERT_EQ(run.error, "");
  EXPECT_GT(times_counted(run.counts, "its squared distance contradicts its gradient"), 3U);
}

TEST(ReportedNorms, TheLargestNumbersHaveAFiniteSum) {
  EXPECT_TRUE(std::isfinite(net::most_reported<double>(1) * 4294967295.0));
  EXPECT_LT(net::most_reported<float>(1000), 1e90);
  EXPECT_TRUE(net::is_possible_sum<float>(5, 3, 2, 10));
  EXPECT_TRUE(net::is_possible_sum<float>(5.00001, 3, 2, 10)) << "rounding of float32";
  EXPECT_FALSE(net::is_possible_sum<double>(5.00001, 3, 2, 10));
  EXPECT_TRUE(net::is_possible_sum<double>(kNan, 3, 2, 10)) << "not known";
}

}  // namespace
}  // namespace fl
