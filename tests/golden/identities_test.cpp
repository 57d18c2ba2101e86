// Tests methods that coincide for certain parameters: bit for bit if the arithmetic is the same, otherwise up to rounding. Also tests that
// methods differ if a reader might expect an identity that does not hold.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/plain_loop.hpp"
#include "tests/support/scenario_text.hpp"
#include "tests/support/test_data.hpp"

namespace fl {
namespace {

using test::OneRun;
using test::ScenarioText;

constexpr std::uint32_t kRounds = 40;

// The tables in which two runs of one problem differ.
struct Method {
  std::string local, up, feedback, server = "kind = 'sgd'";
};

ScenarioText with(ScenarioText problem, const Method& method) {
  problem.local = method.local;
  problem.up = method.up;
  problem.feedback = method.feedback;
  problem.server = method.server;
  return problem;
}

const std::string kGradient = "kind = 'gradient'\nlearning_rate = '1/(4*(L+l2))'";
const std::string kMinibatch = kGradient + "\nbatch = 3";
const std::string kOneLocalStep = "kind = 'sgd'\nlearning_rate = '1/(4*(L+l2))'";
const std::string kLocalSteps = kOneLocalStep + "\nsteps = 4\nbatch = 3";
const std::string kStar = kGradient + "\nsubtract = 'optimum'";
const std::string kLsvrg = "kind = 'lsvrg'\nlearning_rate = '1/(4*(L+l2))'\np = 0.3";
const std::string kTop = "kind = 'top_k'\nk = 4", kIdentity = "kind = 'identity'";
const Method kGradientDescent{kGradient, kIdentity, "kind = 'none'"};

struct Pair {
  std::string name;
  Method left, right;
  bool is_for_float_only = false;
};
void PrintTo(const Pair& pair, std::ostream* out) { *out << pair.name; }
std::string name_of(const testing::TestParamInfo<Pair>& info) { return info.param.name; }

// ---- bit for bit ----

class BitForBit : public testing::TestWithParam<Pair> {
 protected:
  template <class T>
  static void expect_same(ScenarioText problem) {
    problem.precision = sizeof(T) == sizeof(float) ? "float32" : "float64";
    OneRun<T> left(with(problem, GetParam().left).str()), right(with(problem, GetParam().right).str());
    for (std::uint32_t r = 1; r <= kRounds; ++r) {
      left.play(r, r);
      right.play(r, r);
      const std::vector<T> a = left.model(), b = right.model();
      ASSERT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(T)), 0) << "models differ in round " << r;
    }
    EXPECT_EQ(left->round().ledger().total_up().bits, right->round().ledger().total_up().bits);
    EXPECT_EQ(left->round().ledger().total_down_bits(), right->round().ledger().total_down_bits());
  }
  static void expect_same_in_both_precisions(const ScenarioText& problem) {
    expect_same<float>(problem);
    if (!GetParam().is_for_float_only) expect_same<double>(problem);
  }
};

TEST_P(BitForBit, OnUnevenQuadratics) { expect_same_in_both_precisions(test::uneven_quadratics()); }
TEST_P(BitForBit, OnMushrooms) { expect_same_in_both_precisions(test::mushrooms()); }
TEST_P(BitForBit, OnA9a) {
  FL_NEED_DATA(a9a, "libsvm/a9a");
  expect_same_in_both_precisions(test::logistic("name = 'libsvm/a9a'\nrows = 1201"));
}

const Method kEf21{kGradient, kTop, "kind = 'ef21'"}, kEf21Sgd{kMinibatch, kTop, "kind = 'ef21'"};
const Method kFedAvg{kLocalSteps, kTop, "kind = 'ef14'"};

// A momentum of 1e-300 takes the path of momentum and changes no bit; so does a FedProx weight of it, and an eta of EF21-SGDM that
// float32 rounds to 1.
INSTANTIATE_TEST_SUITE_P(
    Methods, BitForBit,
    testing::Values(
        Pair{"EControlEta0IsEf21", {kGradient, kTop, "kind = 'econtrol'\neta = 0"}, kEf21},
        Pair{"EControlEta0IsEf21Sgd", {kMinibatch, kTop, "kind = 'econtrol'\neta = 0"}, kEf21Sgd},
        Pair{"EfBvAt11IsEf21", {kGradient, kTop, "kind = 'ef_bv'\nlambda = 1\nnu = 1"}, kEf21},
        Pair{"Ef21SgdmEta1IsEf21Sgd", {kMinibatch, kTop, "kind = 'ef21'\nmomentum = 0.99999999999"}, kEf21Sgd, true},
        Pair{"Ef21SgdmIsEf21WithMomentum",
             {kMinibatch, kTop, "kind = 'ef21_sgdm'\nmomentum = 0.3"},
             {kMinibatch, kTop, "kind = 'ef21'\nmomentum = 0.3"}},
        Pair{"ThreePcEf21IsEf21", {kGradient, kTop, "kind = 'three_pc'\nvariant = 'ef21'"}, kEf21},
        Pair{"ClagZeta0IsEf21Sgd", {kMinibatch, kTop, "kind = 'clag'\nzeta = 0"}, kEf21Sgd},
        Pair{"Clip21WithoutClippingIsEf21", {kGradient, kTop, "kind = 'clip21'\ntau = 1e30"}, kEf21},
        Pair{"SaPefAlpha0IsEf14", {kLocalSteps, kTop, "kind = 'sa_pef'\nalpha = 0"}, kFedAvg},
        Pair{"PowerEfOfOneStepIsEf14", {kLocalSteps, kTop, "kind = 'power_ef'\nsteps = 1"}, kFedAvg},
        Pair{"FedPaqIsNone", {kLocalSteps, "kind = 'natural'", "kind = 'fedpaq'"}, {kLocalSteps, "kind = 'natural'", "kind = 'none'"}},
        Pair{"DgcIsMomentumCorrection", {kMinibatch, kTop, "kind = 'dgc'"}, {kMinibatch, kTop, "kind = 'momentum_correction'"}},
        Pair{"EcLsvrgIsEf14OfItsGradient",
             {kLsvrg, kTop + "\nunit = 'step'", "kind = 'ec_lsvrg'"},
             {kLsvrg, kTop + "\nunit = 'step'", "kind = 'ef14'"}},
        Pair{"EcGdStarIsEf14OfItsGradient",
             {kStar, kTop + "\nunit = 'step'", "kind = 'ec_gd_star'"},
             {kStar, kTop + "\nunit = 'step'", "kind = 'ef14'"}},
        Pair{"Ef14OfIdentityIsNone", {kMinibatch, kIdentity, "kind = 'ef14'"}, {kMinibatch, kIdentity, "kind = 'none'"}},
        Pair{"Ef14OfIdentityIsNoneInSteps",
             {kMinibatch, kIdentity + "\nunit = 'step'", "kind = 'ef14'"},
             {kMinibatch, kIdentity + "\nunit = 'step'", "kind = 'none'"}},
        Pair{"FedProxMu0IsFedAvg", {kLocalSteps + "\nproximal_mu = 0", kTop, "kind = 'ef14'"}, kFedAvg},
        Pair{"FedProxMuVanishing", {kLocalSteps + "\nproximal_mu = 1e-300", kTop, "kind = 'ef14'"}, kFedAvg},
        Pair{"FedAvgMBeta0IsFedAvg", {kLocalSteps, kTop, "kind = 'ef14'", "kind = 'sgd'\nmomentum = 0"}, kFedAvg},
        Pair{"FedAvgMBetaVanishing", {kLocalSteps, kTop, "kind = 'ef14'", "kind = 'sgd'\nmomentum = 1e-300"}, kFedAvg}),
    name_of);

// ---- to rounding, in double ----

// Largest relative distance of the models of two methods over kRounds rounds.
double largest_distance(const ScenarioText& problem, const Method& left_method, const Method& right_method) {
  OneRun<double> left(with(problem, left_method).str()), right(with(problem, right_method).str());
  double largest = 0;
  for (std::uint32_t r = 1; r <= kRounds; ++r) {
    left.play(r, r);
    right.play(r, r);
    largest = std::max(largest, test::relative_distance(left.model(), right.model()));
  }
  return largest;
}

class ToRounding : public testing::TestWithParam<Pair> {
 protected:
  static void expect_close(const ScenarioText& problem) { EXPECT_LE(largest_distance(problem, GetParam().left, GetParam().right), 1e-12); }
};

TEST_P(ToRounding, OnUnevenQuadratics) { expect_close(test::uneven_quadratics()); }
TEST_P(ToRounding, OnMushrooms) { expect_close(test::mushrooms()); }
TEST_P(ToRounding, OnA9a) {
  FL_NEED_DATA(a9a, "libsvm/a9a");
  expect_close(test::logistic("name = 'libsvm/a9a'\nrows = 1201"));
}

// natural: omega = 1/8 in any dimension, so that lambda = 1/(1+omega) = 8/9 fits every problem here.
const std::string kNatural = "kind = 'natural'";
const std::string kDifference = "kind = 'gradient_difference'\nlearning_rate = '1/(4*(L+l2))'";
const std::string kScaffold = "kind = 'scaffold'\nlearning_rate = '1/(4*(L+l2))'\nsteps = 1";

const std::string kRate = "\nlearning_rate = '1/(4*(L+l2))'";
const std::string kMvr = "kind = 'mvr'" + kRate;
const std::string kScaffoldSteps = "kind = 'scaffold'" + kRate + "\nsteps = 4\nbatch = 3";
const std::string kScallion = "kind = 'scallion'" + kRate + "\nsteps = 4\nbatch = 3",
                  kScallionOneStep = "kind = 'scallion'" + kRate + "\nbatch = 3";
const std::string kGate = "kind = 'fedcomgate'" + kRate;

INSTANTIATE_TEST_SUITE_P(
    Methods, ToRounding,
    testing::Values(Pair{"EfBvNu1IsDiana",
                         {kGradient, kNatural, "kind = 'ef_bv'\nnu = 1\nlambda = 0.88888888888888884"},
                         {kGradient, kNatural, "kind = 'diana'\nalpha = 0.88888888888888884"}},
                    Pair{"Ef21OfIdentityIsGd", {kGradient, kIdentity, "kind = 'ef21'"}, kGradientDescent},
                    Pair{"DianaOfIdentityIsGd", {kGradient, kIdentity, "kind = 'diana'\nalpha = 0.5"}, kGradientDescent},
                    Pair{"CserOfIdentityIsGd", {kGradient, kIdentity + "\nunit = 'step'", "kind = 'cser'"}, kGradientDescent},
                    Pair{"EControlOfIdentityIsGd", {kGradient, kIdentity, "kind = 'econtrol'\neta = 0.3"}, kGradientDescent},
                    Pair{"EControlThatStartsDenseOfIdentityIsGd",
                         {kGradient, kIdentity, "kind = 'econtrol'\neta = 0.3\ninit = 'dense'"},
                         kGradientDescent},
                    Pair{"EControlThatStartsFromItsMessageOfIdentityIsGd",
                         {kGradient, kIdentity, "kind = 'econtrol'\neta = 0.3\ninit = 'message'"},
                         kGradientDescent},
                    Pair{"MarinaOfIdentityIsGd", {kDifference, kIdentity, "kind = 'marina'\np = 0.1"}, kGradientDescent},
                    Pair{"Ef21PlusOfIdentityIsGd", {kGradient, kIdentity, "kind = 'ef21_plus'"}, kGradientDescent},
                    Pair{"CafeOfIdentityIsGd", {kGradient, kIdentity, "kind = 'cafe'"}, kGradientDescent},
                    Pair{"SaPefOfIdentityIsGd", {kGradient, kIdentity + "\nunit = 'step'", "kind = 'sa_pef'"}, kGradientDescent},
                    Pair{"DashaOfIdentityIsGd", {kGradient, kIdentity, "kind = 'dasha'\na = 0.3"}, kGradientDescent},
                    Pair{"DashaMvrOfFullGradientsIsGd", {kMvr, kIdentity, "kind = 'dasha'\na = 0.3"}, kGradientDescent},
                    Pair{"ThreePcV2OfIdentityIsGd", {kGradient, kIdentity, "kind = 'three_pc'\nvariant = 'v2'"}, kGradientDescent},
                    Pair{"ThreePcV4OfIdentityIsGd", {kGradient, kIdentity, "kind = 'three_pc'\nvariant = 'v4'"}, kGradientDescent},
                    Pair{"ThreePcV5OfIdentityIsGd", {kGradient, kIdentity, "kind = 'three_pc'\nvariant = 'v5'"}, kGradientDescent},
                    Pair{"LsvrgOfAllRowsIsGd", {kLsvrg, kIdentity, "kind = 'none'"}, kGradientDescent},
                    Pair{"ScallionOfIdentityIsScaffold",
                         {kScallion, kIdentity, "kind = 'scallion'\nalpha = 1"},
                         {kScaffoldSteps, kIdentity, "kind = 'scaffold'"}},
                    Pair{"UnbiasedScallionOfOneStepIsSgdForAnyAlpha",
                         {kScallionOneStep, kIdentity, "kind = 'scallion'\nalpha = 0.1\nestimate = 'unbiased'"},
                         {kMinibatch, kIdentity, "kind = 'none'"}},
                    Pair{"ScafcomOfIdentityIsScaffold",
                         {kScallion, kIdentity, "kind = 'scafcom'\nmomentum = 1"},
                         {kScaffoldSteps, kIdentity, "kind = 'scaffold'"}},
                    Pair{"ScafcomOfOneStepIsEf21Sgdm",
                         {kScallionOneStep, kIdentity, "kind = 'scafcom'\nmomentum = 0.3"},
                         {kMinibatch, kIdentity, "kind = 'ef21_sgdm'\nmomentum = 0.3"}},
                    Pair{"FedComGateOfOneStepIsGd", {kGate, kIdentity, "kind = 'fedcomgate'"}, kGradientDescent},
                    Pair{"LagXi0IsGd", {kGradient, kIdentity, "kind = 'lag'\nxi = 0"}, kGradientDescent},
                    Pair{"OneFullLocalStepIsGd", {kOneLocalStep, kIdentity, "kind = 'none'"}, kGradientDescent},
                    Pair{"ScaffoldOneFullStepIsGd", {kScaffold, kIdentity, "kind = 'scaffold'"}, kGradientDescent}),
    name_of);

// ---- no identities ----

class NoIdentity : public testing::TestWithParam<Pair> {};

TEST_P(NoIdentity, OnUnevenQuadraticsAndMushrooms) {
  EXPECT_GE(largest_distance(test::uneven_quadratics(), GetParam().left, GetParam().right), 1e-3);
  EXPECT_GE(largest_distance(test::mushrooms(), GetParam().left, GetParam().right), 1e-3);
}

INSTANTIATE_TEST_SUITE_P(
    Methods, NoIdentity,
    testing::Values(Pair{"Ef21SgdmOfIdentityIsNotGd", {kGradient, kIdentity, "kind = 'ef21'\nmomentum = 0.5"}, kGradientDescent},
                    Pair{"Ef21NormalisedOfIdentityIsNotGd", {kGradient, kIdentity, "kind = 'ef21_normalised'"}, kGradientDescent},
                    Pair{"Clip21OfIdentityIsNotGd", {kGradient, kIdentity, "kind = 'clip21'\ntau = 0.01"}, kGradientDescent},
                    Pair{"Ef21PlusIsNotEf21OnMinibatches", {kMinibatch, kTop, "kind = 'ef21_plus'"}, kEf21Sgd},
                    Pair{"SaPefIsNotEf14", {kLocalSteps, kTop, "kind = 'sa_pef'\nalpha = 0.5"}, {kLocalSteps, kTop, "kind = 'ef14'"}},
                    Pair{"CafeIsNotDcgd", {kGradient, kTop, "kind = 'cafe'"}, {kGradient, kTop, "kind = 'none'"}},
                    Pair{"FedComGateIsNotFedPaq",
                         {kGate + "\nsteps = 4", kIdentity, "kind = 'fedcomgate'"},
                         {kOneLocalStep + "\nsteps = 4", kIdentity, "kind = 'fedpaq'"}},
                    Pair{"TwoLocalStepsAreNotGd", {kOneLocalStep + "\nsteps = 2", kIdentity, "kind = 'none'"}, kGradientDescent},
                    Pair{"FedProxIsNotFedAvg",
                         {kOneLocalStep + "\nsteps = 4\nproximal_mu = 1", kIdentity, "kind = 'none'"},
                         {kOneLocalStep + "\nsteps = 4", kIdentity, "kind = 'none'"}},
                    Pair{"EControlIsNotEf21", {kGradient, kTop, "kind = 'econtrol'\neta = 0.3"}, kEf21},
                    Pair{"DianaIsNotEf21OfTheSameOperator",
                         {kGradient, kNatural, "kind = 'diana'\nalpha = 0.2"},
                         {kGradient, kNatural, "kind = 'ef_bv'\nlambda = 1\nnu = 0.5"}},
                    Pair{"EControlsStartsDiffer",
                         {kGradient, kTop, "kind = 'econtrol'\neta = 0.3\ninit = 'dense'"},
                         {kGradient, kTop, "kind = 'econtrol'\neta = 0.3"}},
                    Pair{"EControlKeepsItsFirstErrorUnlessToldOtherwise",
                         {kGradient, kTop, "kind = 'econtrol'\neta = 0.3\ninit = 'message'"},
                         {kGradient, kTop, "kind = 'econtrol'\neta = 0.3"}},
                    Pair{"ScallionAveragesOverRounds",
                         {kScallionOneStep, kIdentity, "kind = 'scallion'\nalpha = 0.1"},
                         {kScallionOneStep, kIdentity, "kind = 'scallion'\nalpha = 1"}},
                    Pair{"ScallionAveragesOverMoreRoundsForASmallerAlpha",
                         {kScallionOneStep, kIdentity, "kind = 'scallion'\nalpha = 0.02"},
                         {kScallionOneStep, kIdentity, "kind = 'scallion'\nalpha = 0.1"}},
                    Pair{"LagThatIsSilentIsNotGd", {kGradient, kIdentity, "kind = 'lag'\nxi = 5"}, kGradientDescent},
                    Pair{"FedAvgMIsNotFedAvg",
                         {kOneLocalStep, kIdentity, "kind = 'none'", "kind = 'sgd'\nmomentum = 0.5"},
                         {kOneLocalStep, kIdentity, "kind = 'none'"}}),
    name_of);

}  // namespace
}  // namespace fl
