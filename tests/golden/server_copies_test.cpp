// Tests every registered feedback: after a thousand rounds with sampled clients, and with each message passed through the wire format, the
// server's copies of the clients' state equal that state.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "fl_core/config/registry.hpp"
#include "tests/support/every_method.hpp"
#include "tests/support/traced.hpp"

namespace fl {
namespace {

using test::kClients;
using test::OneRun;
using test::ScenarioText;
using test::Vector;

// Options under which more happens than under the defaults; a feedback without a line has its own, and partners that its needs name.
struct Partners {
  std::string keys = "", local = "kind = 'gradient'\nbatch = 2", up = "kind = 'top_k'\nk = 4", more = "";
};

const std::string kSteps = "\nbatch = 2\nsteps = 3", kNatural = "kind = 'natural'", kStepTop = "kind = 'top_k'\nk = 4\nunit = 'step'";

const std::map<std::string, Partners>& partners() {
  static const std::map<std::string, Partners> table = {
      {"clip21", {.keys = "tau = 0.1"}},
      {"dasha", {.keys = "a = 0.5", .local = "kind = 'mvr'\nbatch = 2", .up = kNatural}},
      {"ec_diana", {.up = kStepTop + "\n[compressor.up.shift]\nkind = 'natural'\nunit = 'step'"}},
      {"ef21", {.keys = "momentum = 0.5"}},
      {"ef21_p", {.keys = "alpha = 0.5", .up = kNatural, .more = "[compressor.down]\nkind = 'top_k'\nk = 6\n"}},
      {"ef_bv", {.keys = "lambda = 0.7\nnu = 0.8"}},
      {"feddyn", {.local = "kind = 'feddyn'\nalpha = 1" + kSteps}},
      {"lag", {.keys = "xi = 0.5"}},
      {"three_pc", {.keys = "variant = 'adacgd'\nzeta = 4.0"}},
  };
  return table;
}

ScenarioText scenario_of(const std::string& feedback) {
  const test::Fitting study = test::fitting_study(feedback);
  ScenarioText s = test::problem("");
  s.rounds = 1000;
  if (const auto found = partners().find(feedback); found != partners().end()) {
    s.feedback = "kind = '" + feedback + "'\n" + found->second.keys;
    s.local = found->second.local + "\nlearning_rate = 0.02";
    s.up = found->second.up;
    s.more = found->second.more;
  } else {
    const test::Method method = test::method_of(study, feedback);
    s.feedback = method.feedback;
    s.local = method.local;
    s.up = method.up;
    s.more = method.more;
  }
  s.model += "\nweights = 'uniform'";
  if (!study.every_client) s.participation = "kind = 'uniform'\nclients = 2";
  return s;
}

class ServerCopy : public testing::TestWithParam<std::string> {};

TEST_P(ServerCopy, IsWhatTheClientsHoldAfterAThousandRounds) {
  OneRun<double> run(scenario_of(GetParam()).str(), {.materialise = true});
  const Vector start = run.model();
  run.play(1, 1000);
  ASSERT_GT(test::distance_sq(run.model(), start), 1e-4);
  for (const double entry : run.model()) ASSERT_LT(std::fabs(entry), 100) << "diverged";
  const FeedbackPlan plan = run->feedback().plan();
  const auto is_clients = [](const SlotSpec& slot) { return slot.owner == SlotOwner::client; };
  const bool is_kept_by_clients = std::ranges::any_of(plan.slots, is_clients);
  const bool is_kept_by_server = !std::ranges::all_of(plan.slots, is_clients);
  EXPECT_FALSE(is_kept_by_clients && is_kept_by_server && plan.means.empty()) << "its plan does not say which of it is kept twice";
  for (const SlotMean& kept : plan.means) {
    const Vector mean = test::mean_state(run, kept.slot);
    const Vector ours = kept.held_in.empty() ? Vector(test::kDimension, 0.0) : test::copy(run->state().slot(kept.held_in));
    double largest = 0;
    for (std::uint32_t i = 0; i < kClients; ++i) largest = std::max(largest, test::norm_sq(test::state_of(run, kept.slot, i)));
    ASSERT_GT(largest, 1e-4) << "nothing was kept in " << kept.slot;
    EXPECT_LE(test::distance_sq(ours, mean), 1e-24 * largest) << kept.slot;
  }
}

INSTANTIATE_TEST_SUITE_P(Registered, ServerCopy, testing::ValuesIn(Registry::instance().names("feedback")),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace fl
