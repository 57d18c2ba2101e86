// Tests perm_k: one permutation that clients share, each of whom sends its own part of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "compressors/codec/codec.hpp"
#include "fl_core/message/payload_ops.hpp"
#include "tests/compressors/operator_case.hpp"
#include "tests/support/run_scenario.hpp"
#include "tests/support/scenario_text.hpp"

namespace fl {
namespace {

using namespace fl::test;
using testing::ElementsAre;
using testing::HasSubstr;

Scope whole(std::size_t d, std::size_t clients) { return {ScopeKind::model, {{0, d, d, 1}}, {}, d, {}, clients}; }

std::unique_ptr<Compressor<double>> perm_k(std::int64_t clients = 0) {
  return make_compressor<double>("perm_k", {{"clients", Value{clients}}});
}

// A vector without two equal entries, another one for each client.
std::vector<double> vector_of(std::uint32_t client, std::size_t d) {
  std::vector<double> x;
  for (std::size_t j = 0; j < d; ++j) x.push_back(1 + static_cast<double>((7 * j + 3 * client * (j + 1)) % 11));
  return x;
}

std::vector<double> mean_of_messages(Compressor<double>& op, const Scope& scope, std::uint32_t n, std::uint32_t round,
                                     const std::function<std::vector<double>(std::uint32_t)>& input) {
  std::vector<double> mean(scope.P);
  for (std::uint32_t client = 0; client < n; ++client) {
    const std::vector<double> one = compress(op, scope, input(client), 1, round, client).dense;
    for (std::size_t j = 0; j < mean.size(); ++j) mean[j] += one[j] / n;
  }
  return mean;
}

// Sizes that divide each other, and all others: more entries than clients, fewer, and one.
struct Size {
  std::size_t d;
  std::uint32_t n;
};
constexpr Size kSizes[] = {{12, 4}, {7, 7}, {10, 4}, {11, 3}, {1000, 7}, {3, 6}, {3, 7}, {1, 5}, {2, 9}};

TEST(PermK, TheMeanOfEqualVectorsIsTheVector) {
  for (const auto& [d, n] : kSizes) {
    const auto op = perm_k();
    const std::vector<double> x = vector_of(0, d);
    for (std::uint32_t round = 1; round < 4; ++round) {
      const std::vector<double> mean = mean_of_messages(*op, whole(d, n), n, round, [&x](std::uint32_t) { return x; });
      for (std::size_t j = 0; j < d; ++j) EXPECT_NEAR(mean[j], x[j], 1e-12 * x[j]) << d << " entries of " << n << " clients";
    }
  }
}

TEST(PermK, EveryClientSendsAsManyEntriesAndPartsAreDisjointWhereTheyCanBe) {
  for (const auto& [d, n] : kSizes) {
    const auto op = perm_k();
    std::vector<std::size_t> copies(d);
    for (std::uint32_t client = 0; client < n; ++client) {
      const auto sent = compress(*op, whole(d, n), vector_of(client, d), 1, 5, client);
      EXPECT_EQ(sent.message.num_sent, (d + n - 1) / n);
      EXPECT_TRUE(std::ranges::is_sorted(sent.message.index, std::less_equal<>{})) << "ascending, and none twice";
      for (const std::uint32_t j : sent.message.index) ++copies[j];
    }
    const auto [least, most] = std::ranges::minmax(copies);
    EXPECT_GE(least, 1u);
    EXPECT_LE(most - least, 1u) << d << " entries of " << n << " clients";
    EXPECT_EQ(most == 1, d % n == 0) << d << " entries of " << n << " clients";
  }
}

// The error of one message and that of the mean, over many rounds, against the formulas in the head of compressors/perm_k.cpp.
TEST(PermK, ErrorsAreThoseOfTheFormulas) {
  constexpr std::uint32_t kRounds = 6000;
  for (const auto& [d, n] : {Size{12, 4}, {10, 4}, {3, 6}, {3, 7}}) {
    const auto op = perm_k();
    const Scope scope = whole(d, n);
    const std::size_t q = (d + n - 1) / n, least = n * q / d, more = n * q % d;
    const double part = static_cast<double>(more) / static_cast<double>(d);
    const auto over_copies = [&](auto f) { return part * f(static_cast<double>(least + 1)) + (1 - part) * f(static_cast<double>(least)); };
    double of_mean = 0, square = 0;
    std::vector<double> mean(d), first(d);
    for (std::size_t j = 0; j < d; ++j) {
      double sum = 0, squares = 0;
      for (std::uint32_t client = 0; client < n; ++client) {
        const double x = vector_of(client, d)[j];
        sum += x / n, squares += x * x / n;
      }
      mean[j] = sum;
      of_mean += over_copies([n = n](double c) { return (n - c) / (c * (n - 1)); }) * (squares - sum * sum);
      square += vector_of(0, d)[j] * vector_of(0, d)[j];
    }
    double seen_of_mean = 0, seen_of_one = 0;
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      seen_of_mean += squared_distance(mean_of_messages(*op, scope, n, round, [d = d](std::uint32_t i) { return vector_of(i, d); }), mean);
      const std::vector<double> one = compress(*op, scope, vector_of(0, d), 1, round, 0).dense;
      seen_of_one += squared_distance(one, vector_of(0, d));
      for (std::size_t j = 0; j < d; ++j) first[j] += one[j] / kRounds;
    }
    const double omega = over_copies([n = n](double c) { return n / c; }) - 1;
    EXPECT_NEAR(op->contract(scope).omega.value(), omega, 1e-12);
    EXPECT_NEAR(seen_of_one / kRounds / (omega * square), 1, 0.04) << d << " entries of " << n << " clients";
    EXPECT_NEAR(seen_of_mean / kRounds / of_mean, 1, 0.04) << d << " entries of " << n << " clients";
    for (std::size_t j = 0; j < d; ++j) EXPECT_NEAR(first[j] / vector_of(0, d)[j], 1, 0.12) << "unbiased";
  }
}

TEST(PermK, OnlyValuesTravelAndTheReceiverDrawsThePositions) {
  const Scope scope = whole(1000, 10);
  const auto op = perm_k();
  for (std::uint32_t client = 0; client < 10; ++client) {
    const auto sent = compress(*op, scope, vector_of(client, 1000), 1, 3, client);
    Conversation<double> receiver(*op, scope, 42);
    receiver.open(3);
    const MessageLevels known = receiver.known_levels();
    const codec::Channel<double> channel{&sent.message.on_wire(), &scope, {}, known};
    std::vector<std::byte> bytes;
    codec::encode<double>(std::span(&channel, 1), bytes);
    EXPECT_EQ(8 * bytes.size(), 64u * 100 + 8) << "a hundred values and the header";
    EXPECT_EQ(codec::encoded_bits<double>(std::span(&channel, 1)), 8 * bytes.size());
    Payload<double> decoded;
    Payload<double>* const targets[] = {&decoded};
    const Scope* const scopes[] = {&scope};
    const std::size_t lengths[] = {scope.P};
    ASSERT_TRUE(codec::decode<double>(bytes, scopes, lengths, targets, std::span(&known, 1)).ok());
    Workspace workspace;
    receiver.reconstruct(Exec{.workspace = &workspace}, std::span(&client, 1), targets);
    std::vector<double> dense(scope.P);
    write_dense(decoded, scope, dense.data());
    EXPECT_EQ(dense, sent.dense);
  }
}

TEST(PermK, SegmentsAreDealtOutOneByOne) {
  const Scope scope{ScopeKind::tensor, {{0, 40, 40, 1}, {50, 53, 3, 1}, {53, 950, 897, 1}}, {{40, 50, 10, 1}}, 950, {}, 6};
  const auto op = perm_k();
  std::vector<double> x = vector_of(1, 950);
  for (const std::uint32_t client : {0u, 5u}) {
    const auto sent = compress(*op, scope, x, 1, 2, client);
    EXPECT_THAT(std::vector<std::uint32_t>(sent.message.counts.begin(), sent.message.counts.end()), ElementsAre(7u, 1u, 150u));
  }
  const std::vector<double> mean = mean_of_messages(*op, scope, 6, 2, [&x](std::uint32_t) { return x; });
  for (std::size_t j = 0; j < x.size(); ++j) EXPECT_NEAR(mean[j], x[j], 1e-12 * x[j]);
}

TEST(PermK, GroupsHavePermutationsOfTheirOwn) {
  const Scope scope = whole(200, 10);
  const auto op = perm_k(5);
  const std::vector<double> x = vector_of(0, 200);
  const auto set_of = [&](std::uint32_t client) {
    const auto sent = compress(*op, scope, x, 1, 1, client);
    return std::set<std::uint32_t>(sent.message.index.begin(), sent.message.index.end());
  };
  EXPECT_EQ(set_of(0).size(), 40u);
  EXPECT_NE(set_of(0), set_of(5));
  for (const std::uint32_t first : {0u, 5u}) {
    std::vector<double> mean(200);
    for (std::uint32_t client = first; client < first + 5; ++client) {
      const std::vector<double> one = compress(*op, scope, x, 1, 1, client).dense;
      for (std::size_t j = 0; j < 200; ++j) mean[j] += one[j] / 5;
    }
    for (std::size_t j = 0; j < 200; ++j) EXPECT_NEAR(mean[j], x[j], 1e-12 * x[j]);
  }
}

TEST(PermK, RefusesNumbersOfClientsThatDoNotFit) {
  EXPECT_THAT(refusal([] { perm_k()->check(whole(10, 0)); }), HasSubstr("has to be given"));
  EXPECT_THAT(refusal([] { perm_k()->check(whole(10, 1)); }), HasSubstr("at least 2"));
  EXPECT_THAT(refusal([] { perm_k(4)->check(whole(10, 10)); }), HasSubstr("groups of 4"));
  EXPECT_EQ(refusal([] { perm_k(5)->check(whole(10, 10)); }), "");
  EXPECT_EQ(refusal([] { perm_k(4)->check(whole(10, 0)); }), "");
}

// Clients that are equal: every mean is exact, and a run takes the steps of gradient descent.
TEST(PermK, EqualClientsTakeTheStepsOfGradientDescent) {
  const auto outcome = [](const std::string& up, const std::string& feedback, const std::string& local) {
    test::ScenarioText s = quadratics("clients = 5\nzeta_sq = 0");
    s.data = "kind = 'quadratics'\nclients = 5\nzeta_sq = 0\ndimension = 22";
    s.up = up, s.feedback = feedback, s.local = "kind = '" + local + "'\nlearning_rate = 0.5", s.rounds = 30, s.evaluate = "every = 30";
    OneRun<double> run(s.str());
    return run->run({}).record;
  };
  const RunRecord exact = outcome("kind = 'identity'", "kind = 'none'", "gradient");
  ASSERT_LT(exact.f_gap, 0.5 * outcome("kind = 'random_k'\nk = 5\nscaled = true", "kind = 'none'", "gradient").f_gap);
  for (const auto& [feedback, local] : {std::pair{"kind = 'none'", "gradient"}, {"kind = 'marina'", "gradient_difference"}}) {
    const RunRecord record = outcome("kind = 'perm_k'", feedback, local);
    EXPECT_NEAR(record.f_gap / exact.f_gap, 1, 1e-9) << feedback;
    EXPECT_LT(record.bits_up, exact.bits_up) << feedback;
  }
}

// A run on different clients: blocks and threads change nothing.
TEST(PermK, RunsDoNotDependOnBlocksAndThreads) {
  test::ScenarioText s = logistic("name = 'mushrooms'\nrows = 400", 10);
  s.up = "kind = 'perm_k'\nclients = 5";
  s.feedback = "kind = 'diana'\nalpha = 0.2";
  s.local = "kind = 'gradient'\nlearning_rate = 0.05";
  s.rounds = 15;
  const auto checksum = [&](const MachineOptions& machine) {
    OneRun<double> run(s.str(), machine);
    return run->run({}).record.checksum;
  };
  const auto once = checksum({});
  EXPECT_EQ(checksum({.threads = 3, .block = 1}), once);
  EXPECT_EQ(checksum({.threads = 2, .block = 4}), once);
}

}  // namespace
}  // namespace fl
