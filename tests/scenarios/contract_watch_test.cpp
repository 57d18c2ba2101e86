// Tests the comparison of a run's messages with the contract that the operator states: violations are reported with round and numbers, and
// operators that keep the contract are never reported.
#include "scenarios/experiment/contract_watch.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <random>
#include <sstream>

#include "tests/support/run_text.hpp"

namespace fl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

ContractWatch watch(const Contract& contract) {
  const double kappa = contract.kappa.value_or(0);
  return ContractWatch({.contract = contract,
                        .kappa_at = [kappa](const StepSizes& steps) { return kappa * steps.in_input; },
                        .rounding = 1e-5,
                        .least_norm = 1e-20});
}

// Returns the errors of messages with |p| = 1.
std::vector<OperatorError> unit_messages(std::initializer_list<double> errors_sq) {
  std::vector<OperatorError> messages;
  for (const double error_sq : errors_sq) messages.push_back({.input = 1, .error = error_sq});
  return messages;
}

Contract contraction(double delta, Contract::Holds holds) {
  Contract contract;
  contract.delta = delta;
  contract.delta_holds = holds;
  return contract;
}
Contract unbiased(double omega) {
  Contract contract;
  contract.omega = omega;
  return contract;
}

TEST(ContractWatch, OneMessageBeyondRoundingBreaksAPointwiseClaim) {
  ContractWatch watched = watch(contraction(0.75, Contract::Holds::pointwise));
  watched.see(1, {}, unit_messages({0.1, 0.25}));
  watched.see(2, {}, unit_messages({0.25 * (1 + 1e-6)}));
  watched.see(3, {}, {});
  EXPECT_THAT(watched.broken(), IsEmpty());
  watched.see(4, {}, unit_messages({0.1, 0.375, 0.26}));
  watched.see(5, {}, unit_messages({1.0}));
  ASSERT_THAT(watched.broken(), SizeIs(1));
  EXPECT_EQ(to_string(watched.broken()[0]), "delta 0.625 in round 4, stated 0.75");
}

TEST(ContractWatch, KappaIsThatOfTheRoundsStepSize) {
  Contract contract;
  contract.kappa = 4;
  contract.domain.follows_step = true;
  ContractWatch watched = watch(contract);
  watched.see(1, {.in_input = 0.5}, unit_messages({3.9}));
  EXPECT_THAT(watched.broken(), IsEmpty());
  watched.see(2, {.in_input = 0.25}, unit_messages({0.9, 2.25}));
  ASSERT_THAT(watched.broken(), SizeIs(1));
  EXPECT_EQ(to_string(watched.broken()[0]), "kappa 1.5 in round 2, stated 1");
}

TEST(ContractWatch, AnOmegaOfZeroHoldsForEveryMessage) {
  ContractWatch watched = watch(unbiased(0));
  watched.see(1, {}, unit_messages({0, 1e-11}));
  EXPECT_THAT(watched.broken(), IsEmpty());
  watched.see(2, {}, unit_messages({0, 1e-6}));
  EXPECT_EQ(to_string(watched.broken().at(0)), "omega 1e-06 in round 2, stated 0");
}

// NaN: of a dense message, or of a phase that stands for no vector. Relative errors of numbers that are hardly normal say nothing.
TEST(ContractWatch, MessagesThatTheOperatorDidNotMakeAreLeftOut) {
  ContractWatch watched = watch(contraction(0.75, Contract::Holds::pointwise));
  const double nan = std::nan("");
  watched.see(1, {},
              std::vector<OperatorError>{{}, {.input = 1, .error = nan}, {.input = 1e-42, .error = 1e-42}, {.input = 0, .error = 0}});
  EXPECT_THAT(watched.broken(), IsEmpty());
}

TEST(ContractWatch, ADomainInWordsIsToldWithTheFinding) {
  Contract contract = contraction(0.5, Contract::Holds::pointwise);
  contract.domain.entries.most = 512;
  ContractWatch watched = watch(contract);
  watched.see(1, {}, unit_messages({0.75}));
  EXPECT_EQ(to_string(watched.broken().at(0)),
            "delta 0.25 in round 1, stated 0.5 for inputs of a domain (the operator's contract names it)");
}

// x = 2 / probability where a rare event of that probability happens, times `mean` / 2: as heavy a tail as a bounded ratio has.
double rare(std::mt19937_64& random, double mean, double probability) {
  return std::uniform_real_distribution<double>(0, 1)(random) < probability ? mean / probability : 0;
}

// Ville: of 10^6 sound operators at most one is ever accused, whatever its draws. Here 3,000 that sit exactly on their bound, 400 rounds.
TEST(ContractWatch, OperatorsOnTheirBoundAreNotAccused) {
  std::mt19937_64 random(7);
  std::size_t accused = 0;
  for (int path = 0; path < 3000; ++path) {
    ContractWatch watched = watch(unbiased(9));
    const double probability = path % 3 == 0 ? 1.0 / 40 : path % 3 == 1 ? 0.5 : 0.9;
    for (std::uint64_t round = 1; round <= 400; ++round) {
      const double x = 9 * rare(random, 1, probability);
      watched.see(round, {}, unit_messages({x, x}));  // clients that draw alike
    }
    accused += watched.broken().size();
  }
  EXPECT_EQ(accused, 0u);
}

TEST(ContractWatch, AMeanAboveItsBoundIsFoundByEvidence) {
  std::mt19937_64 random(11);
  ContractWatch watched = watch(unbiased(9));
  std::uint64_t round = 0;
  while (watched.broken().empty() && round < 2000) watched.see(++round, {}, unit_messages({18 * rare(random, 1, 0.5)}));
  ASSERT_THAT(watched.broken(), SizeIs(1));
  const BrokenContract broken = watched.broken()[0];
  EXPECT_EQ(broken.round, round);
  EXPECT_GT(round, 10u);
  EXPECT_LT(round, 500u);
  EXPECT_GT(broken.measured, 12);
  EXPECT_EQ(broken.stated, 9);
}

// A single draw above the mean's bound is no evidence; an operator that changes later is found, with the rounds in which it did.
TEST(ContractWatch, WhatKeptItsMeanAtFirstIsFoundWithTheRoundsSince) {
  ContractWatch watched = watch(contraction(0.75, Contract::Holds::in_expectation));
  watched.see(1, {}, unit_messages({1.0}));
  EXPECT_THAT(watched.broken(), IsEmpty());
  std::uint64_t round = 1;
  for (; round < 100; ++round) watched.see(round + 1, {}, unit_messages({0.01, 0.02}));
  EXPECT_THAT(watched.broken(), IsEmpty());
  while (watched.broken().empty() && round < 200) watched.see(++round, {}, unit_messages({1.0}));
  ASSERT_THAT(watched.broken(), SizeIs(1));
  const BrokenContract broken = watched.broken()[0];
  EXPECT_EQ(broken.since, 101u);
  EXPECT_LT(broken.round, 125u);
  EXPECT_EQ(to_string(broken), "delta 0 as the mean of rounds 101 to " + std::to_string(round) + ", stated 0.75");
}

TEST(ContractWatch, GoesOnFromACheckpointAsIfItHadNotStopped) {
  std::mt19937_64 random(3);
  ContractWatch whole = watch(unbiased(9)), begun = watch(unbiased(9)), resumed = watch(unbiased(9));
  for (std::uint64_t round = 1; whole.broken().empty(); ++round) {
    ASSERT_LT(round, 2000u);
    const std::vector<OperatorError> messages = unit_messages({18 * rare(random, 1, 0.5)});
    whole.see(round, {}, messages);
    (round <= 10 ? begun : resumed).see(round, {}, messages);
    if (round != 10) continue;
    Archive out;
    begun.persist(out);
    Archive in(out.bytes());
    resumed.persist(in);
    in.finish();
  }
  ASSERT_THAT(resumed.broken(), SizeIs(1));
  EXPECT_EQ(to_string(resumed.broken()[0]), to_string(whole.broken()[0]));
  Archive out;
  whole.persist(out);
  Archive in(out.bytes());
  ContractWatch again = watch(unbiased(9));
  again.persist(in);
  EXPECT_EQ(to_string(again.broken().at(0)), to_string(whole.broken()[0]));
}

TEST(ContractWatch, WhatIsRecordedIsReadBack) {
  RunRecord record;
  record_broken({.claim = Claim::omega, .round = 44, .since = 31, .measured = 19.75, .stated = 9, .has_domain = true}, record.constants);
  record_broken({.claim = Claim::kappa, .round = 2, .measured = 1.5, .stated = 1}, record.constants);
  std::vector<std::string> texts;
  for (const BrokenContract& broken : broken_contracts(record)) texts.push_back(to_string(broken));
  EXPECT_THAT(
      texts, ElementsAre("kappa 1.5 in round 2, stated 1",
                         "omega 19.75 as the mean of rounds 31 to 44, stated 9 for inputs of a domain (the operator's contract names it)"));
  EXPECT_THAT(broken_contracts(RunRecord{}), IsEmpty());
}

// ---- the gallery ---------------------------------------------------------------------------------------------------------------

// The library's gallery on the data set that is inside the program, with thresholds instead of their tuning, measured in every round.
std::string gallery_on_mushrooms(const char* precision) {
  std::ifstream file(std::string(FL_SOURCE_DIR) + "/scenarios/library/compressor-gallery.toml");
  std::string text;
  for (std::string line; std::getline(file, line);) {
    if (line.find("\"fashion-mnist\"") != std::string::npos || line.starts_with("[sweep.tune]")) continue;
    for (const auto& [from, to] :
         std::vector<std::pair<std::string, std::string>>{{"libsvm/a9a", "mushrooms"},
                                                          {"match_bits_of = \"top-k\"", "threshold = 0.02"},
                                                          {"match_bits_of = \"top-k, qsgd\"", "threshold = 0.02"},
                                                          {"rounds = 200", std::string("rounds = 120\nprecision = '") + precision + "'"},
                                                          {"every = 4", "every = 60\nmeasure_every = 1"},
                                                          {"seeds = 5", ""},
                                                          {"seeds = 1", ""}})
      if (const std::size_t at = line.find(from); at != std::string::npos) line.replace(at, from.size(), to);
    text += line + "\n";
  }
  return text;
}

class ContractsOfTheGallery : public testing::TestWithParam<const char*> {};

TEST_P(ContractsOfTheGallery, NoMethodIsAccused) {
  const std::vector<RunResult> results = test::run_text(gallery_on_mushrooms(GetParam()), {.threads = 4});
  EXPECT_GE(results.size(), 95u);
  std::size_t watched = 0;
  for (const RunResult& result : results) {
    EXPECT_EQ(result.record.status, RunStatus::done) << result.record.message;
    watched += std::isnan(result.rows.back().measured_omega) ? 0 : 1;
    const RunRecord* record = &result.record;
    EXPECT_EQ(broken_text({&record, 1}), "") << result.record.axes.back().label << " with " << result.record.scenario;
  }
  EXPECT_GE(watched, 80u) << "runs whose messages were measured";
}

INSTANTIATE_TEST_SUITE_P(Precisions, ContractsOfTheGallery, testing::Values("float32", "float64"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace fl
