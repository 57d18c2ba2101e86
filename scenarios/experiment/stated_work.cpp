#include "scenarios/experiment/stated_work.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <span>

#include "compressors/codec/codec_cost.hpp"
#include "fl_core/config/key_error.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

namespace {

// y <- y - gamma g.
constexpr EntryCost kPlainStep{3, 2};
// A message's entry is added to a sum in double.
constexpr EntryCost kSummation{3, 2};
// The server's optimizers state no cost: their step counts as one that reads estimate and model, and writes the model.
constexpr EntryCost kServerStep{3, 2};

// The value of a cost where it is stated, with what [costs] writes in its place. Adds a problem if there is neither.
struct CostReader {
  Problems problems;

  double one(const char* key, const std::optional<double>& written, const std::optional<double>& stated, const std::string& part) {
    if (written) return *written;
    if (stated) return *stated;
    problems.push_back({std::string("costs.") + key, part + " does not state its cost, which the clock of [devices] needs: write " + key +
                                                         " in [costs], or drop [devices]"});
    return 0;
  }
  EntryCost entry(const std::string& name, const std::optional<double>& passes, const std::optional<double>& operations,
                  const std::optional<EntryCost>& stated, const std::string& part) {
    const auto of = [&stated](double EntryCost::*member) { return stated ? std::optional<double>((*stated).*member) : std::nullopt; };
    return {one((name + "_passes").c_str(), passes, of(&EntryCost::passes), part),
            one((name + "_operations").c_str(), operations, of(&EntryCost::operations), part)};
  }
};

// The cost of a gradient: rows * row + minibatches * minibatch + stored numbers * stored.
struct GradientCost {
  Work row, minibatch, stored;
};

GradientCost sum_of(const ModelCost& cost) {
  GradientCost sum;
  for (const StretchCost& stretch : cost.stretches)
    for (const PassCost* pass : {&stretch.forward, &stretch.backward}) {
      sum.row += pass->row;
      sum.minibatch += pass->minibatch;
      sum.stored += pass->stored;
    }
  return sum;
}

GradientCost gradient_cost(const Scenario& scenario, const std::optional<ModelCost>& stated, CostReader& reader) {
  GradientCost cost = stated ? sum_of(*stated) : GradientCost{};
  const std::string part = "model kind \"" + scenario.model.part.kind + "\"";
  const auto written = [&](const char* key, const std::optional<double>& value, double Work::*member) {
    if (value) cost.minibatch.*member = cost.stored.*member = 0;
    cost.row.*member = reader.one(key, value, stated ? std::optional<double>(cost.row.*member) : std::nullopt, part);
  };
  written("model_flops", scenario.costs.model_flops, &Work::operations);
  written("model_bytes", scenario.costs.model_bytes, &Work::bytes);
  return cost;
}

// The gradients and vectors of a client's work.
struct LocalShape {
  LocalCost cost;
  Work step = {}, round = {};       // on vectors, for each step and once a round
  Work regulariser = {};            // of each gradient
  const LocalWork* work = nullptr;  // null: no steps
  std::size_t batch = 0;            // rows of a minibatch; 0 = all
  std::uint64_t seed = 1;           // of stragglers
};

template <class T>
LocalShape local_shape(const Scenario& scenario, const RunMethod<T>& method, const Regulariser& regulariser, std::size_t P,
                       CostReader& reader) {
  const StepSettings settings = method.local->step_settings();
  const std::optional<LocalCost> stated = method.local->traits().cost;
  LocalShape shape{.cost = stated.value_or(LocalCost{}),
                   .work = settings.work,
                   .batch = static_cast<std::size_t>(settings.sampling.batch),
                   .seed = scenario.seeds.sampling};
  std::optional<EntryCost> step;
  std::string part = "local kind \"" + scenario.local.kind + "\"";
  if (stated) step = shape.cost.step;
  const LocalOptimizer<T>* rule = method.local->optimizer();
  const bool takes_steps = settings.work != nullptr;
  if (takes_steps && step && rule != nullptr && !rule->plain_momentum()) {
    const std::optional<EntryCost> of_rule = rule->cost();
    step = of_rule ? std::optional(*step + *of_rule) : std::nullopt;
    if (!of_rule) part = "local optimizer \"" + scenario.local_optimizer.kind + "\"";
  } else if (takes_steps && step) {
    *step += kPlainStep;
  }
  const auto total = [&](double Work::*member) { return step ? std::optional<double>(step->of(P, sizeof(T)).*member) : std::nullopt; };
  shape.step = {reader.one("local_flops", scenario.costs.local_flops, total(&Work::operations), part),
                reader.one("local_bytes", scenario.costs.local_bytes, total(&Work::bytes), part)};
  shape.round = shape.cost.round.of(P, sizeof(T));
  if (regulariser.l2 != 0 || regulariser.nonconvex != 0)
    shape.regulariser = EntryCost{3, regulariser.nonconvex != 0 ? 9.0 : 2.0}.of(P, sizeof(T));
  return shape;
}

// The number of rows of each client, and of the numbers that its sparse rows store.
struct ClientRowCounts {
  std::vector<double> rows, stored;  // [n]; stored is empty for dense data
};

template <class T>
ClientRowCounts row_counts_of(const FederatedProblem<T>& problem) {
  ClientRowCounts counts;
  const Dataset<T>& data = problem.train();
  for (std::size_t i = 0; i < problem.shards().size(); ++i) {
    counts.rows.push_back(static_cast<double>(problem.num_rows_of(i)));
    if (!data.is_sparse) continue;
    double stored = 0;
    const auto* begin = data.sparse.row_begin.data();
    for (const std::uint32_t row : problem.shards()[i]) stored += static_cast<double>(begin[row + 1] - begin[row]);
    counts.stored.push_back(stored);
  }
  return counts;
}

// The client's and the server's work for a message of one phase, the code apart.
struct PhaseCost {
  Work message;
  double entries = 0;  // of all channels
};

template <class T>
std::vector<PhaseCost> phase_costs(const Scenario& scenario, const RunMethod<T>& method, std::size_t P, CostReader& reader) {
  const CostOptions& written = scenario.costs;
  std::vector<PhaseCost> phases(static_cast<std::size_t>(method.exchange.num_phases()));
  for (const ExchangeChannel<T>& channel : method.exchange.channels) {
    const std::string part = "compressor \"" + scenario.compressor_up(channel.name).part.kind + "\"";
    const EntryCost cost = reader.entry("compressor", written.compressor_passes, written.compressor_operations,
                                        channel.compressor->contract(channel.scope).cost, part);
    const double share = 1.0 / (channel.num_phases() * static_cast<double>(channel.every));  // of a round with every channel
    for (int phase = 0; phase < channel.num_phases(); ++phase) {
      PhaseCost& of_phase = phases[static_cast<std::size_t>(phase)];
      of_phase.message += share * cost.of(channel.scope.P, sizeof(T));
      of_phase.entries += static_cast<double>(channel.length(phase)) / static_cast<double>(channel.every);
    }
  }
  std::optional<EntryCost> feedback;
  if (method.plan.cost) feedback = method.plan.cost->of_messages() + method.plan.cost->of_arrival();
  const EntryCost of_feedback = reader.entry("feedback", written.feedback_passes, written.feedback_operations, feedback,
                                             "feedback \"" + scenario.feedback_up.kind + "\"");
  const PostprocessorPlan& postprocessor = method.postprocessor.plan;
  const EntryCost of_postprocessor = reader.entry("postprocessor", written.postprocessor_passes, written.postprocessor_operations,
                                                  postprocessor.changes_vectors ? postprocessor.client_cost : EntryCost{},
                                                  "postprocessor \"" + scenario.postprocessor.kind + "\"");
  phases.front().message += of_feedback.of(P, sizeof(T));
  phases.front().message += static_cast<double>(method.local->vectors().size()) * of_postprocessor.of(P, sizeof(T));
  return phases;
}

class StatedWork final : public ClientWork {
 public:
  struct Parts {
    GradientCost gradient;
    LocalShape local;
    ClientRowCounts clients;
    std::vector<PhaseCost> phases;
    std::function<bool(std::uint32_t)> toss;  // the coin of a round
    Work written_model;                       // by a client that reads the model
    Work receive, step;                       // of the server
    std::size_t bytes_per_number = 4;
  };
  explicit StatedWork(Parts parts) : parts_(std::move(parts)) {}

  [[nodiscard]] Work local(std::uint32_t client, std::uint32_t round) const override {
    const LocalShape& local = parts_.local;
    const double rows = parts_.clients.rows[client];
    if (local.cost.full_at_coin && parts_.toss(round)) return gradients(client, rows, 1);
    double steps = 1, drawn = batch(rows);  // rows of all steps
    if (local.work != nullptr) {
      const auto amount = static_cast<double>(local.work->amount(local.seed, client, round));
      const bool in_epochs = local.work->epochs > 0;
      steps = in_epochs ? amount * std::ceil(rows / std::max(batch(rows), 1.0)) : amount;
      drawn = in_epochs ? amount * rows : amount * batch(rows);
    }
    const LocalCost& cost = local.cost;
    return cost.gradients * gradients(client, drawn, steps) + cost.full_gradients * gradients(client, rows, 1) + steps * local.step +
           local.round;
  }
  [[nodiscard]] Work message(int phase, double bits) const override {
    return parts_.phases[static_cast<std::size_t>(phase)].message + bits * codec::kWorkPerBit;
  }
  [[nodiscard]] Work reading(double bits) const override { return parts_.written_model + bits * codec::kWorkPerBit; }
  // An entry that is sent takes a bit or more, so that sparse messages have no more entries than bits.
  [[nodiscard]] Work aggregation(int phase, std::size_t messages, double bits) const override {
    const PhaseCost& of_phase = parts_.phases[static_cast<std::size_t>(phase)];
    const double entries = std::min(static_cast<double>(messages) * of_phase.entries, bits);
    const Work sums = entries * kSummation.of(1, parts_.bytes_per_number) + bits * codec::kWorkPerBit;
    return static_cast<std::size_t>(phase) + 1 == parts_.phases.size() ? sums + parts_.receive : sums;
  }
  [[nodiscard]] Work step() const override { return parts_.step; }

 private:
  // Returns the rows of a minibatch of a client with this many rows.
  [[nodiscard]] double batch(double rows) const { return parts_.local.batch == 0 ? rows : static_cast<double>(parts_.local.batch); }
  // Returns the work of gradients on `minibatches` with `rows` rows in all.
  [[nodiscard]] Work gradients(std::uint32_t client, double rows, double minibatches) const {
    const ClientRowCounts& counts = parts_.clients;
    const double per_row = counts.stored.empty() || counts.rows[client] == 0 ? 0 : counts.stored[client] / counts.rows[client];
    return rows * parts_.gradient.row + minibatches * parts_.gradient.minibatch + rows * per_row * parts_.gradient.stored +
           minibatches * parts_.local.regulariser;
  }
  Parts parts_;
};

}  // namespace

template <class T>
std::unique_ptr<ClientWork> make_client_work(const Scenario& scenario, const FederatedProblem<T>& problem, const RunMethod<T>& method) {
  CostReader reader;
  const std::size_t P = problem.P();
  StatedWork::Parts parts;
  parts.gradient = gradient_cost(scenario, problem.model().cost(), reader);
  parts.local = local_shape(scenario, method, problem.model().regulariser(), P, reader);
  parts.phases = phase_costs(scenario, method, P, reader);
  if (!reader.problems.empty()) throw ConfigError(std::move(reader.problems));
  parts.clients = row_counts_of(problem);
  parts.toss = [&feedback = *method.feedback, run = run_settings(scenario, method, problem)](std::uint32_t round) {
    return feedback.toss(run, round);
  };
  parts.written_model = EntryCost{1, 0}.of(P, sizeof(T));
  if (method.plan.cost && !method.plan.estimate_is_sum) parts.receive = method.plan.cost->of_server().of(P, sizeof(T));
  parts.step = kServerStep.of(P, sizeof(T));
  if (method.postprocessor.plan.changes_estimate)
    parts.step += method.postprocessor.plan.server_cost.value_or(EntryCost{}).of(P, sizeof(T));
  parts.bytes_per_number = sizeof(T);
  return std::make_unique<StatedWork>(std::move(parts));
}

template <class T>
std::vector<TierSeconds> tier_seconds(const Scenario& scenario, const FederatedProblem<T>& problem, const RunMethod<T>& method,
                                      const ClientBits& bits) {
  if (scenario.devices.kind == "none") return {};
  const auto devices = make_named<Devices>("devices", scenario.devices, Precision::float64);
  const ClientRowCounts counts = row_counts_of(problem);
  const std::vector<std::uint32_t> rows(counts.rows.begin(), counts.rows.end());
  about_key("devices.kind", [&] {
    devices->open({.num_clients = rows.size(), .seed = scenario.seeds.data, .rows = rows, .find_file = [&problem](const std::string& path) {
                     return problem.find_input("devices", path);
                   }});
  });
  const std::unique_ptr<ClientWork> work = make_client_work(scenario, problem, method);
  Work message;
  const int phases = method.exchange.num_phases();
  for (int phase = 0; phase < phases; ++phase) message += work->message(phase, bits.up / phases);
  std::vector<TierSeconds> tiers;
  for (const std::string& name : devices->tiers()) tiers.push_back({.name = name});
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    const DeviceRates rates = devices->rates(i);
    TierSeconds& tier = tiers[devices->tier(i)];
    tier.clients += 1;
    tier.local_s += rates.seconds(work->local(i, 1));
    tier.message_s += rates.seconds(message);
    tier.reading_s += rates.seconds(work->reading(bits.down));
  }
  for (TierSeconds& tier : tiers)
    for (double* seconds : {&tier.local_s, &tier.message_s, &tier.reading_s})
      *seconds /= static_cast<double>(std::max<std::size_t>(tier.clients, 1));
  return tiers;
}

template std::unique_ptr<ClientWork> make_client_work<float>(const Scenario&, const FederatedProblem<float>&, const RunMethod<float>&);
template std::unique_ptr<ClientWork> make_client_work<double>(const Scenario&, const FederatedProblem<double>&, const RunMethod<double>&);
template std::vector<TierSeconds> tier_seconds<float>(const Scenario&, const FederatedProblem<float>&, const RunMethod<float>&,
                                                      const ClientBits&);
template std::vector<TierSeconds> tier_seconds<double>(const Scenario&, const FederatedProblem<double>&, const RunMethod<double>&,
                                                       const ClientBits&);

}  // namespace fl
