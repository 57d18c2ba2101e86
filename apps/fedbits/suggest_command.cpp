// `fedbits suggest`: which threshold of the hard threshold stands for which k of Top-k, and back.
//
// What the numbers mean: scenarios/analysis/equivalent_threshold.hpp.
#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>
#include <optional>

#include "apps/fedbits/commands.hpp"
#include "apps/fedbits/numbers.hpp"
#include "apps/fedbits/plugin_option.hpp"
#include "apps/fedbits/run_support.hpp"
#include "fl_core/error.hpp"
#include "scenarios/analysis/equivalent_threshold.hpp"
#include "scenarios/plugins.hpp"
#include "scenarios/start_facts.hpp"

namespace fl {
namespace {

struct SuggestArguments {
  std::string file, data;
  std::vector<std::string> settings, plugins;
  std::optional<double> k, ratio, lambda, epsilon, d, gamma, zeta;
  NoiseAndSpread noise;
};

// d, gamma and zeta of the first cell; what was given on the command line stays.
void read_scenario(SuggestArguments& arguments) {
  const StartFacts facts = facts_at_start(read_cells(arguments.file, arguments.settings).front(), DataCatalog(arguments.data));
  if (!arguments.d) arguments.d = facts.d;
  if (!arguments.gamma) arguments.gamma = facts.gamma;
  if (!arguments.zeta) arguments.zeta = std::sqrt(facts.zeta_sq);
}

void check(const SuggestArguments& a) {
  Problems problems;
  const auto positive = [&](const char* name, const std::optional<double>& value) {
    if (value && !(*value > 0 && std::isfinite(*value))) problems.push_back({name, "must be a positive number, is " + exact_text(*value)});
  };
  positive("--k", a.k), positive("--ratio", a.ratio), positive("--lambda", a.lambda), positive("--epsilon", a.epsilon);
  positive("--d", a.d), positive("--gamma", a.gamma);
  if (!a.d && (a.ratio || a.epsilon)) problems.push_back({"--d", "the number of parameters is needed: give --d, or a scenario file"});
  if (!a.gamma && a.epsilon) problems.push_back({"--gamma", "the step size is needed: give --gamma, or a scenario file"});
  if (a.d && a.k && *a.k > *a.d) problems.push_back({"--k", "must be at most d = " + exact_text(*a.d) + ", is " + exact_text(*a.k)});
  if (a.ratio && *a.ratio > 1) problems.push_back({"--ratio", "must be at most 1, is " + exact_text(*a.ratio)});
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

class Answer {
 public:
  explicit Answer(const SuggestArguments& arguments) : a_(arguments), noise_(arguments.noise) { noise_.zeta = a_.zeta.value_or(0); }

  void print() const {
    print_facts();
    if (a_.lambda) print_k(*a_.lambda);
    if (const std::optional<double> k = asked_k()) print_lambda(*k);
    if (a_.epsilon) print_epsilon(*a_.epsilon);
  }

 private:
  [[nodiscard]] std::optional<double> asked_k() const {
    if (a_.k) return a_.k;
    if (a_.ratio) return std::max(1.0, std::floor(*a_.ratio * *a_.d));
    return std::nullopt;
  }
  void print_facts() const {
    if (a_.d) std::cout << "d = " << exact_text(*a_.d) << " parameters\n";
    if (a_.gamma) std::cout << "gamma = " << exact_text(*a_.gamma) << '\n';
    if (a_.d)
      std::cout << "sigma = " << exact_text(noise_.sigma) << ", M = " << exact_text(noise_.M) << ", zeta = " << short_text(noise_.zeta)
                << (a_.file.empty() ? "" : " (zeta measured at the start)") << '\n';
  }
  void print_lambda(double k) const {
    std::cout << "\nas good as Top-k with k = " << exact_text(k) << ":\n";
    line("1/(2 sqrt(k)), the paper's rule", rule_lambda(k));
    if (a_.d) line("equal bounds of theorems 6 and 7", equal_bounds_lambda(k, *a_.d, noise_));
    std::cout << "in a scenario:  { kind = \"hard_threshold\", rule = \"lambda\", threshold = \"1/(2*sqrt(k))\", k = " << exact_text(k)
              << " }\n";
  }
  void print_k(double lambda) const {
    std::cout << "\nlambda = " << exact_text(lambda) << " is as good as Top-k with\n";
    count("1/(4 lambda^2), the paper's rule", rule_k(lambda));
    if (a_.d) count("equal bounds of theorems 6 and 7", equal_bounds_k(lambda, *a_.d, noise_));
    if (a_.d && a_.gamma)
      std::cout << "its steps have a squared error of at most " << short_text(epsilon_of(lambda, *a_.d, *a_.gamma)) << '\n';
  }
  void print_epsilon(double epsilon) const {
    const double lambda = epsilon_lambda(epsilon, *a_.d, *a_.gamma);
    std::cout << "\nsteps with a squared error of at most epsilon = " << exact_text(epsilon) << ":\n";
    line("sqrt(epsilon/d)/gamma", lambda);
    std::cout << "as good as Top-k with k = " << short_text(rule_k(lambda)) << " by the paper's rule\n"
              << "in a scenario:  { kind = \"hard_threshold\", rule = \"lambda\", threshold = \"sqrt(epsilon/d)/gamma\", epsilon = "
              << exact_text(epsilon) << " }\n";
  }
  void line(const std::string& rule, double lambda) const {
    std::cout << "  lambda = " << short_text(lambda) << "   " << rule;
    if (a_.gamma) std::cout << "; on steps " << short_text(lambda * *a_.gamma);
    std::cout << '\n';
  }
  void count(const std::string& rule, double k) const {
    std::cout << "  k = " << short_text(k) << "   " << rule;
    if (a_.d) std::cout << (k > *a_.d ? "; more than there are parameters" : "; " + short_text(100 * k / *a_.d) + "% of the parameters");
    std::cout << '\n';
  }

  const SuggestArguments& a_;
  NoiseAndSpread noise_;
};

int suggest(SuggestArguments arguments) {
  if (!arguments.k && !arguments.ratio && !arguments.lambda && !arguments.epsilon)
    throw ConfigError("suggest: say what is known: --k, --ratio, --lambda or --epsilon");
  const std::vector<Plugin> plugins = load_plugins(arguments.plugins);
  if (!arguments.file.empty()) read_scenario(arguments);
  check(arguments);
  Answer(arguments).print();
  return 0;
}

}  // namespace

void add_suggest_command(CLI::App& app, const Guard& guard) {
  auto a = std::make_shared<SuggestArguments>();
  CLI::App* command = app.add_subcommand("suggest", "turn k of Top-k into lambda of the hard threshold, and back");
  command->add_option("FILE", a->file, "scenario file (TOML): d, gamma and zeta are those of its first cell");
  command->add_option("--set", a->settings, "change a key: --set partition.alpha=0.1 (repeatable)")->allow_extra_args(false);
  command->add_option("--data", a->data, "folder with data sets (else FEDBITS_DATA, ./data, the embedded set)");
  add_plugin_option(*command, a->plugins);
  CLI::Option* k = command->add_option("--k", a->k, "entries that Top-k keeps");
  command->add_option("--ratio", a->ratio, "fraction that Top-k keeps")->excludes(k);
  command->add_option("--lambda", a->lambda, "threshold on gradients");
  command->add_option("--epsilon", a->epsilon, "squared error allowed in a step");
  command->add_option("--d", a->d, "number of parameters");
  command->add_option("--gamma", a->gamma, "step size");
  command->add_option("--sigma", a->noise.sigma, "noise of the gradients")->capture_default_str()->check(CLI::NonNegativeNumber);
  command->add_option("--noise-growth", a->noise.M, "M: noise in proportion to the gradient")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->add_option("--zeta", a->zeta, "heterogeneity, |grad f_i - grad f| (default: 0, or that of the scenario)")
      ->check(CLI::NonNegativeNumber);
  command->footer("Example: fedbits suggest study.toml --ratio 0.01");
  command->callback([a, guard] { guard([&] { return suggest(*a); }); });
}

}  // namespace fl
