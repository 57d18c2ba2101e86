#include "scenarios/experiment/record.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>

#include "fl_core/config/stopping.hpp"
#include "fl_core/state/checksum.hpp"
#include "scenarios/experiment/bounds.hpp"
#include "scenarios/experiment/start.hpp"
#include "scenarios/partitioners/skew.hpp"
#include "scenarios/results/trace.hpp"

namespace fl {

namespace {

// Adds the smallest, median and largest bits of a client, and the share of all bits that the busiest tenth of clients sends or receives.
void add_shares(RunRecord& record, const std::string& direction, std::vector<std::uint64_t> bits) {
  if (bits.empty()) return;
  std::ranges::sort(bits);
  const std::size_t N = bits.size(), tenth = (N + 9) / 10;
  const double median = (static_cast<double>(bits[(N - 1) / 2]) + static_cast<double>(bits[N / 2])) / 2;
  const auto sum = [&](std::size_t first) {
    return static_cast<double>(std::accumulate(bits.begin() + static_cast<std::ptrdiff_t>(first), bits.end(), std::uint64_t{0}));
  };
  record.constants.push_back({"client_bits_" + direction + "_min", static_cast<double>(bits.front())});
  record.constants.push_back({"client_bits_" + direction + "_median", median});
  record.constants.push_back({"client_bits_" + direction + "_max", static_cast<double>(bits.back())});
  if (sum(0) > 0) record.constants.push_back({"client_bits_" + direction + "_share_of_busiest_tenth", sum(N - tenth) / sum(0)});
}

// Adds the bits by channel and cause, and by client. Causes without bits are left out.
template <class T>
void add_bits(RunRecord& record, const Ledger& ledger, const Exchange<T>& exchange) {
  const auto add = [&record](const std::string& name, std::uint64_t bits) {
    if (bits > 0) record.constants.push_back({name, static_cast<double>(bits)});
  };
  for (std::size_t c = 0; c < std::min(exchange.channels.size(), kMostCountedChannels); ++c)
    add("bits_up_channel_" + exchange.channels[c].name, ledger.total_channel_bits()[c]);
  for (std::size_t i = 0; i < kNumUpCauses; ++i) {
    const auto cause = static_cast<UpCause>(i);
    add(std::string("bits_up_") + to_string(cause), ledger.total_up_bits(cause));
  }
  for (std::size_t i = 0; i < kNumDownCauses; ++i) {
    const auto cause = static_cast<DownCause>(i);
    add(std::string("bits_down_") + to_string(cause), ledger.total_down_bits(cause));
  }
  add_shares(record, "up", ledger.client_up_bits());
  add_shares(record, "down", ledger.client_down_bits());
}

template <class T>
void describe_run(const PlayedRun<T>& run, RunStatus status, RunResult& result) {
  RunRecord& record = result.record;
  const RoundRow& last = result.rows.back();
  record.run = to_hex(run.cell.hash);
  record.name = run.cell.scenario.name;
  record.seed = run.cell.scenario.seeds.data;
  record.status = status;
  record.rounds = last.round;
  record.bits_up = run.ledger.total_up().bits;
  record.bits_down = run.ledger.total_down_bits();
  record.train_loss = last.train_loss;
  record.f_gap = last.f_gap;
  record.test_accuracy = last.test_accuracy;
  record.zeta_sq = result.rows.front().zeta_sq;
  record.total_error = 0;
  for (std::size_t r = 1; r < result.rows.size(); ++r) record.total_error += result.rows[r].error_norm_sq;
  record.checksum = to_hex(hash64_of(std::as_bytes(std::span<const T>(run.model))));
  record.split_hash = to_hex(run.problem.split_hash());
  record.scenario = run.cell.resolved_toml;
  record.version = FL_VERSION;
  record.threads = static_cast<std::uint64_t>(run.threads);
  record.parameters = run.problem.P();
  record.f_star = run.f_star;
  record.columns = run.measure_set.columns();
  for (const auto& [key, label] : run.cell.axis_labels) record.axes.push_back({key, label});
}

// Adds facts that the problem found while it was assembled, and the amount of data that it dropped.
template <class T>
void add_data(const PlayedRun<T>& run, RunRecord& record) {
  for (const auto& [name, value] : run.problem.resolved()) record.constants.push_back({name, value});
  const Dataset<T>& data = run.problem.train();
  std::size_t num_rows = 0, least = std::numeric_limits<std::size_t>::max(), most = 0;  // a server may have no rows itself
  for (std::size_t i = 0; i < run.problem.shards().size(); ++i) {
    const std::size_t rows = run.problem.num_rows_of(i);
    num_rows += rows;
    least = std::min(least, rows);
    most = std::max(most, rows);
  }
  record.constants.push_back({"num_rows", static_cast<double>(num_rows)});
  if (num_rows > 0) {
    record.constants.push_back({"client_rows_least", static_cast<double>(least)});
    record.constants.push_back({"client_rows_most", static_cast<double>(most)});
  }
  if (run.problem.test() != nullptr) record.constants.push_back({"num_test_rows", static_cast<double>(run.problem.test_rows().size())});
  record.constants.push_back({"num_features", static_cast<double>(data.num_features)});
  if (data.num_classes > 0) {
    record.constants.push_back({"num_classes", static_cast<double>(data.num_classes)});
    const SplitSkew skew = run.problem.skew();
    record.constants.push_back({"split_emd", skew.mean_emd});
    record.constants.push_back({"split_entropy", skew.mean_entropy});
  }
  if (run.cell.scenario.evaluate.clients_every > 0)
    record.constants.push_back({"client_accuracy_on_test_rows", run.problem.own_rows_are_test_rows() ? 1.0 : 0.0});
}

template <class T>
void add_dropped(const PlayedRun<T>& run, RunRecord& record) {
  if (const std::size_t dropped = run.problem.num_dropped_roles(); dropped > 0)
    record.constants.push_back({"dropped_roles", static_cast<double>(dropped)});
  if (const std::size_t dropped = run.problem.num_dropped_rows(); dropped > 0)
    record.constants.push_back({"dropped_rows", static_cast<double>(dropped)});
  if (const std::size_t dropped = run.problem.num_dropped_test_rows(); dropped > 0)
    record.constants.push_back({"dropped_test_rows", static_cast<double>(dropped)});
}

// Adds the number of rounds without clients and of updates that were not finite.
void add_gaps(const std::vector<RoundRow>& rows, RunRecord& record) {
  const auto skipped = std::count_if(rows.begin() + 1, rows.end(), [](const RoundRow& row) { return row.clients == 0; });
  if (skipped > 0) record.constants.push_back({"skipped_rounds", static_cast<double>(skipped)});
  std::uint64_t refused = 0;
  for (const RoundRow& row : rows) refused += row.refused;
  if (refused > 0) record.constants.push_back({"refused_updates", static_cast<double>(refused)});
}

// Adds how far f* can be from the minimum, or that f has no known minimum.
template <class T>
void add_error_of_minimum(const PlayedRun<T>& run, RunRecord& record) {
  const Scenario& scenario = run.cell.scenario;
  if (!wants_gap(scenario, run.problem)) return;
  const Minimum& minimum = run.problem.optimum(scenario.evaluate.optimum);  // known since the start
  if (!minimum.is_known) record.constants.push_back({"f_star_unknown", 1});
  if (minimum.is_known && std::isfinite(minimum.error)) record.constants.push_back({"f_star_error", minimum.error});
}

template <class T>
void add_contracts(const PlayedRun<T>& run, RunRecord& record) {
  const Contract contract = run.method.exchange.channels.front().compressor->contract(run.method.exchange.channels.front().scope);
  if (contract.kappa) record.constants.push_back({"promised_kappa", *contract.kappa});
  if (contract.delta) record.constants.push_back({"promised_delta", *contract.delta});
  if (contract.omega) record.constants.push_back({"promised_omega", *contract.omega});
  for (const BrokenContract& broken : run.watch ? run.watch->broken() : std::vector<BrokenContract>{})
    record_broken(broken, record.constants);
}

// Adds the constants of the theorems whose assumptions the run satisfies.
template <class T>
void add_theory(const PlayedRun<T>& run, RunResult& result) {
  const TheoryParts<T> parts = run.theory_parts();
  const bool has_gradients = measures_every_gradient(result.rows);
  if (!std::isfinite(run.f_star) || !(has_gradients || run.average) || run.problem.model().second_order() == nullptr || !has_theory(parts))
    return;
  const std::optional<GradientNoise> noise = gradient_noise(run.problem, run.method.local->step_settings().sampling);
  if (!noise) return;
  const double curvature = run.problem.model().regulariser().largest_curvature();
  const double largest = std::ranges::max(run.problem.weights());
  double weight = largest;
  for (const ExchangeChannel<T>& channel : run.method.exchange.channels)
    weight = std::max(weight, weight_of_errors(channel.compressor->contract(channel.scope), largest));
  const TheoryNumbers numbers{.L = run.problem.names_for(Expression("L"), "theory").at("L") + curvature,
                              .L_max = std::ranges::max(run.problem.client_smoothness()) + curvature,
                              .largest_weight = weight,
                              .noise = *noise};
  std::vector<ResolvedConstant>& constants = result.record.constants;
  const std::size_t before = constants.size();
  const auto record = [&constants](const std::vector<ResolvedConstant>& more) {
    constants.insert(constants.end(), more.begin(), more.end());
  };
  if (has_gradients) record(theory_constants(parts, numbers));
  if (run.average && run.problem.model().is_convex())
    record(convex_theory_constants(parts, numbers, run.client_convexity, run.start_distance_sq));
  if (constants.size() > before) record(noise_constants(parts, numbers));
}

}  // namespace

std::string why_diverged_at_the_end(const Scenario& scenario, const std::vector<RoundRow>& rows) {
  const double factor = scenario.evaluate.divergence_factor.value_or(kDivergenceFactor);
  const double first = rows.front().train_loss, last = rows.back().train_loss;
  if (!(first > 0) || !(last > factor * first)) return {};
  char text[160];
  std::snprintf(text, sizeof text, "train_loss ended at %.4g, more than %g times its %.4g at the start (evaluate.divergence_factor)", last,
                factor, first);
  return text;
}

// A run that has ended is described to its end, although it is asked to stop. One that was interrupted has no constants of theorems yet.
template <class T>
void fill_record(const PlayedRun<T>& run, RunStatus status, RunResult& result) {
  const StopScope to_its_end{StopToken()};
  RunRecord& record = result.record;
  describe_run(run, status, result);
  add_data(run, record);
  add_gaps(result.rows, record);
  add_dropped(run, record);
  add_bits(record, run.ledger, run.method.exchange);
  if (!std::isnan(result.rows.back().simulated_s)) record.constants.push_back({"simulated_s", result.rows.back().simulated_s});
  if (run.cell.scenario.evaluate.divergence_factor)
    record.constants.push_back({"divergence_factor", *run.cell.scenario.evaluate.divergence_factor});
  record.constants.push_back({"gamma", run.step_size});
  if (run.step_rate < 1) record.constants.push_back({"tight_rate", run.step_rate});
  record.constants.push_back({"f_star", run.f_star});
  add_error_of_minimum(run, record);
  if (std::isfinite(run.f_star)) record.constants.push_back({"zeta_sq_at_optimum", run.measures.zeta_sq_at_optimum()});
  add_contracts(run, record);
  if (status != RunStatus::interrupted) add_theory(run, result);
  record.constants.insert(record.constants.end(), run.cell.found.begin(), run.cell.found.end());
}

template void fill_record(const PlayedRun<float>&, RunStatus, RunResult&);
template void fill_record(const PlayedRun<double>&, RunStatus, RunResult&);

}  // namespace fl
