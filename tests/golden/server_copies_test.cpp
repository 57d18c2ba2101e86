// Every feedback that is registered: after a thousand rounds with sampled clients, each message through the wire format, what the server
// holds of the clients' state is what they hold.
#include <gtest/gtest.h>

#include <map>

#include "fl_core/config/registry.hpp"
#include "tests/support/traced.hpp"

namespace fl {
namespace {

using test::kClients;
using test::OneRun;
using test::ScenarioText;
using test::Vector;

// A feedback with partners that it works with, and what it keeps twice: `ours` of the server (or of all) is the weighted mean of the
// clients' `theirs`; with no `ours` that mean is zero.
struct Partners {
  std::string keys = "", local = "kind = 'gradient'\nbatch = 2", up = "kind = 'top_k'\nk = 4";
  std::string theirs = "shift", ours = "shift_mean";
  bool is_sampled = true;
  std::string more = "";
};

const std::string kNone, kSteps = "\nbatch = 2\nsteps = 3", kNatural = "kind = 'natural'",
                         kStepTop = "kind = 'top_k'\nk = 4\nunit = 'step'";

// By feedback; a new one needs an entry. No `theirs`: nothing that is kept twice.
const std::map<std::string, Partners>& partners() {
  static const std::map<std::string, Partners> table = {
      {"cafe", {.theirs = kNone, .ours = kNone}},
      {"clip21", {.keys = "tau = 0.1"}},
      {"cser", {.up = kStepTop, .theirs = kNone, .ours = kNone}},
      {"dasha", {.keys = "a = 0.5", .local = "kind = 'mvr'\nbatch = 2", .up = kNatural, .is_sampled = false}},
      {"diana", {.up = kNatural}},
      {"ec_diana", {.up = kStepTop + "\n[compressor.up.shift]\nkind = 'natural'\nunit = 'step'", .ours = "shift_sum"}},
      {"ec_gd_star", {.local = "kind = 'gradient'\nsubtract = 'optimum'", .up = kStepTop, .theirs = kNone, .ours = kNone}},
      {"ec_lsvrg", {.local = "kind = 'lsvrg'\nbatch = 1", .up = kStepTop, .theirs = kNone, .ours = kNone}},
      {"econtrol", {}},
      {"ef14", {.theirs = kNone, .ours = kNone}},
      {"ef21", {.keys = "momentum = 0.5"}},
      {"ef21_normalised", {}},
      {"ef21_p", {.keys = "alpha = 0.5", .up = kNatural, .more = "[compressor.down]\nkind = 'top_k'\nk = 6\n"}},
      {"ef21_plus", {}},
      {"ef21_sgdm", {}},
      {"ef_bv", {.keys = "lambda = 0.7\nnu = 0.8"}},
      {"fedcomgate", {.local = "kind = 'fedcomgate'" + kSteps, .up = kNatural, .theirs = "tracker", .ours = kNone}},
      {"feddyn", {.local = "kind = 'feddyn'\nalpha = 1" + kSteps, .theirs = "moved", .ours = "moved_sum"}},
      {"fedpaq", {.local = "kind = 'sgd'" + kSteps, .up = kNatural, .theirs = kNone, .ours = kNone}},
      {"lag", {.keys = "xi = 0.5", .theirs = "last_sent", .ours = "gradient_sum"}},
      {"marina", {.local = "kind = 'gradient_difference'", .up = kNatural, .theirs = kNone, .ours = kNone, .is_sampled = false}},
      {"mime_lite", {.local = "kind = 'mime_lite'" + kSteps, .theirs = kNone, .ours = kNone}},
      {"momentum_correction", {.theirs = kNone, .ours = kNone}},
      {"none", {.theirs = kNone, .ours = kNone}},
      {"power_ef", {.theirs = kNone, .ours = kNone}},
      {"sa_pef", {.local = "kind = 'sgd'" + kSteps, .theirs = kNone, .ours = kNone}},
      {"scaffold", {.local = "kind = 'scaffold'" + kSteps, .theirs = "control", .ours = "control_sum"}},
      {"scafcom", {.local = "kind = 'scallion'" + kSteps, .theirs = "control", .ours = "control_sum"}},
      {"scallion", {.local = "kind = 'scallion'" + kSteps, .up = kNatural, .theirs = "control", .ours = "control_sum"}},
      {"signum", {.theirs = kNone, .ours = kNone}},
      {"three_pc", {.keys = "variant = 'adacgd'\nzeta = 4.0"}},
  };
  return table;
}

ScenarioText scenario_of(const std::string& feedback) {
  const Partners& p = partners().at(feedback);
  ScenarioText s = test::problem("kind = '" + feedback + "'\n" + p.keys);
  s.rounds = 1000;
  s.local = p.local + "\nlearning_rate = 0.02";
  s.up = p.up;
  s.more = p.more;
  s.model += "\nweights = 'uniform'";
  if (p.is_sampled) s.participation = "kind = 'uniform'\nclients = 2";
  return s;
}

class ServerCopy : public testing::TestWithParam<std::string> {};

TEST_P(ServerCopy, IsWhatTheClientsHoldAfterAThousandRounds) {
  ASSERT_TRUE(partners().contains(GetParam())) << "a new feedback: say what it keeps twice";
  const Partners& p = partners().at(GetParam());
  OneRun<double> run(scenario_of(GetParam()).str(), {.materialise = true});
  const Vector start = run.model();
  run.play(1, 1000);
  ASSERT_GT(test::distance_sq(run.model(), start), 1e-4);
  for (const double entry : run.model()) ASSERT_LT(std::fabs(entry), 100) << "diverged";
  if (p.theirs.empty()) {
    bool is_kept_by_clients = false, is_kept_by_server = false;
    for (const SlotSpec& slot : run->feedback().plan().slots) {
      is_kept_by_clients = is_kept_by_clients || slot.owner == SlotOwner::client;
      is_kept_by_server = is_kept_by_server || slot.owner != SlotOwner::client;
    }
    EXPECT_FALSE(is_kept_by_clients && is_kept_by_server) << "which of it is kept twice?";
    return;
  }
  const Vector mean = test::mean_state(run, p.theirs);
  const Vector ours = p.ours.empty() ? Vector(test::kDimension, 0.0) : test::copy(run->state().slot(p.ours));
  double largest = 0;
  for (std::uint32_t i = 0; i < kClients; ++i) largest = std::max(largest, test::norm_sq(test::state_of(run, p.theirs, i)));
  ASSERT_GT(largest, 1e-4) << "nothing was kept";
  EXPECT_LE(test::distance_sq(ours, mean), 1e-24 * largest);
}

INSTANTIATE_TEST_SUITE_P(Registered, ServerCopy, testing::ValuesIn(Registry::instance().names("feedback")),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace fl
