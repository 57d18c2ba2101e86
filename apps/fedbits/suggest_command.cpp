// `fedbits suggest`: converts between the threshold of the hard threshold and the k of Top-k.
//
// scenarios/analysis/equivalent_threshold.hpp and scenarios/sweep/measured_threshold.hpp explain the numbers.
#include <CLI/CLI.hpp>
#include <iostream>
#include <optional>

#include "apps/fedbits/commands.hpp"
#include "apps/fedbits/plugin_option.hpp"
#include "apps/fedbits/run_support.hpp"
#include "scenarios/analysis/equivalent_threshold.hpp"
#include "scenarios/plugins/plugins.hpp"
#include "study/output/numbers.hpp"
#include "study/planning/suggestion.hpp"

namespace fl {
namespace {

class Answer {
 public:
  explicit Answer(const Suggestion& suggestion)
      : a_(suggestion.asked), unit_(suggestion.unit), measured_(suggestion.measured), noise_(suggestion.noise()) {}

  void print() const {
    print_facts();
    if (a_.lambda) print_k(*a_.lambda);
    if (const std::optional<double> k = a_.entries()) print_lambda(*k);
    if (a_.epsilon) print_epsilon(*a_.epsilon);
  }

 private:
  void print_facts() const {
    if (a_.d) std::cout << "d = " << exact_text(*a_.d) << " parameters\n";
    if (a_.gamma) std::cout << "gamma = " << exact_text(*a_.gamma) << '\n';
    if (a_.d)
      std::cout << "sigma = " << exact_text(noise_.sigma) << ", M = " << exact_text(noise_.M) << ", zeta = " << short_text(noise_.zeta)
                << (a_.file.empty() ? "" : " (zeta measured at the start)") << ": noise and heterogeneity as in the theorems\n";
  }
  void print_lambda(double k) const {
    std::cout << "\nas good as Top-k with k = " << exact_text(k) << ":\n";
    line("1/(2 sqrt(k)), the rule of Sahu et al. (NeurIPS 2021)", rule_lambda(k));
    assumption("equal worst cases, if clients are alike, their noise is sigma = 1/4, and k is far below d");
    if (a_.d) line("equal bounds of their theorems 6 and 7", equal_bounds_lambda(k, *a_.d, noise_));
    if (a_.d) assumption("equal worst cases with the sigma, M and zeta above; grows with zeta, and then sends far less than Top-k");
    if (measured_) {
      std::cout << "  " << (unit_ == Unit::step ? "lambda" : "threshold") << " = " << short_text(measured_->threshold) << "   measured on "
                << inputs() << ": sends as many bits as Top-k\n";
      assumption(std::to_string(measured_->rounds) + " rounds, " + short_text(measured_->bits_up) + " bits up with Top-k, " +
                 signed_percent(measured_->matched.deviation) + " with this threshold" +
                 (measured_->matched.is_matched() ? "" : ", the nearest that was found"));
    }
    print_advice();
    if (unit_ == Unit::update && !measured_)
      std::cout
          << "this scenario compresses updates (unit = \"update\"), sums of a client's local steps; none of these numbers is a threshold "
             "for them, and --measure finds one\n";
    else
      print_example(measured_ ? exact_text(measured_->threshold) : "\"1/(2*sqrt(k))\", k = " + exact_text(k));
  }
  // Prints how a scenario asks for a threshold.
  void print_example(const std::string& threshold) const {
    const bool is_step = !unit_ || unit_ == Unit::step;
    std::cout << "in a scenario:  { kind = \"hard_threshold\"" << (is_step ? ", rule = \"lambda\", unit = \"step\"" : "")
              << ", threshold = " << threshold << " }   # "
              << (is_step ? "in units of the gradient, times the step size; other methods need the same unit" : "for " + inputs()) << '\n';
  }
  // Returns the name of what the scenario's clients compress.
  [[nodiscard]] std::string inputs() const {
    switch (unit_.value_or(Unit::step)) {
      case Unit::gradient: return "gradients (unit = \"gradient\")";
      case Unit::update: return "updates (unit = \"update\")";
      case Unit::step: break;
    }
    return "steps (unit = \"step\"), in units of the gradient";
  }
  // Prints which threshold to use. The three thresholds answer different questions and differ by orders of magnitude.
  void print_advice() const {
    std::cout << "which one to use:\n"
                 "  to compare both compressors at equal bits: the measured one"
              << (measured_ ? ", or" : " (--measure with a scenario file), or")
              << " match_bits_of in a sweep, which measures whole runs\n"
                 "  to repeat the experiments of the paper: its rule\n"
                 "  to see what the theorems say about your clients: equal bounds; they are worst cases, not a prediction of bits\n";
  }
  void print_k(double lambda) const {
    std::cout << "\nlambda = " << exact_text(lambda) << " is as good as Top-k with\n";
    count("1/(4 lambda^2), the rule of Sahu et al. (NeurIPS 2021)", rule_k(lambda));
    if (a_.d) count("equal bounds of their theorems 6 and 7", equal_bounds_k(lambda, *a_.d, noise_));
    if (a_.d && a_.gamma)
      std::cout << "its steps have a squared error of at most " << short_text(epsilon_of(lambda, *a_.d, *a_.gamma)) << '\n';
  }
  void print_epsilon(double epsilon) const {
    const double lambda = epsilon_lambda(epsilon, *a_.d, *a_.gamma);
    std::cout << "\nsteps with a squared error of at most epsilon = " << exact_text(epsilon) << ":\n";
    line("sqrt(epsilon/d)/gamma", lambda);
    std::cout << "as good as Top-k with k = " << short_text(rule_k(lambda)) << " by the rule of Sahu et al. (NeurIPS 2021)\n"
              << "in a scenario:  { kind = \"hard_threshold\", rule = \"lambda\", unit = \"step\", threshold = \"sqrt(epsilon/d)/gamma\", "
                 "epsilon = "
              << exact_text(epsilon) << " }\n";
  }
  void line(const std::string& rule, double lambda) const {
    std::cout << "  lambda = " << short_text(lambda) << "   " << rule;
    if (a_.gamma && unit_ != Unit::update && unit_ != Unit::gradient) std::cout << "; on steps " << short_text(lambda * *a_.gamma);
    std::cout << '\n';
  }
  static void assumption(const std::string& text) { std::cout << "      " << text << '\n'; }
  static std::string signed_percent(double share) { return (share < 0 ? "" : "+") + short_text(100 * share) + "%"; }
  void count(const std::string& rule, double k) const {
    std::cout << "  k = " << short_text(k) << "   " << rule;
    if (a_.d) std::cout << (k > *a_.d ? "; more than there are parameters" : "; " + short_text(100 * k / *a_.d) + "% of the parameters");
    std::cout << '\n';
  }

  const SuggestArguments& a_;
  const std::optional<Unit> unit_;
  const std::optional<MeasuredThreshold>& measured_;
  NoiseAndSpread noise_;
};

int print_suggestion(const SuggestArguments& arguments) {
  const std::vector<Plugin> plugins = load_plugins(arguments.plugins);
  Answer(suggest(arguments, [] { return caught_signal() == 0; })).print();
  return 0;
}

}  // namespace

void add_suggest_command(CLI::App& app, const Guard& guard) {
  auto a = std::make_shared<SuggestArguments>();
  CLI::App* command = app.add_subcommand("suggest", "turn k of Top-k into lambda of the hard threshold, and back");
  command->add_option("FILE", a->file, "scenario file (TOML): d, gamma and zeta are those of its first cell");
  command->add_option("--set", a->settings, "change a key: --set partition.alpha=0.1 (repeatable)")->allow_extra_args(false);
  command->add_option("--data", a->data, "folder with data sets (default: FEDBITS_DATA, ./data, the embedded set)");
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
  command
      ->add_option("--measure", a->rounds, "find the threshold that sends as many bits as Top-k in this many first rounds of the scenario")
      ->type_name("ROUNDS")
      ->check(CLI::PositiveNumber);
  command->footer("Examples:\n  fedbits suggest study.toml --ratio 0.01 --measure 50\n  fedbits suggest --k 100 --d 11173962");
  command->callback([a, guard] { guard([&] { return print_suggestion(*a); }); });
}

}  // namespace fl
