#include "scenarios/experiment.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "clients/device_room.hpp"
#include "fl_core/checksum.hpp"
#include "fl_core/device_memory.hpp"
#include "fl_core/key_error.hpp"
#include "fl_core/own_statistics.hpp"
#include "fl_core/pieces.hpp"
#include "fl_core/registry.hpp"
#include "fl_core/rule_field.hpp"
#include "scenarios/analysis/bounds.hpp"
#include "scenarios/analysis/trace.hpp"
#include "scenarios/host_needs.hpp"
#include "scenarios/partitioners/skew.hpp"
#include "scenarios/step_size.hpp"
#include "scenarios/theory.hpp"

namespace fl {

namespace {

// "a" or "b"
std::string any_of(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "\"" : " or \"") + name + "\"";
  return text;
}

}  // namespace

template <class T>
Experiment<T>::Experiment(const Cell& cell, FederatedProblem<T>& problem, ThreadPool& pool, const MachineOptions& machine)
    : cell_(cell),
      scenario_(cell.scenario),
      problem_(problem),
      pool_(pool),
      machine_(machine),
      schedule_(scenario_, problem.model().starts_at_random()),
      measure_set_(scenario_, schedule_),
      evaluator_(problem, pool, machine.trains_on_cpu ? Device::cpu : machine.device),
      model_(problem.P(), machine.device == Device::cpu ? Device::cpu : Device::pinned) {
  make_parts();
  check_parts();
  host_needs_ = host_needs(scenario_, *method_.local, *method_.feedback, method_.exchange, machine_.materialise);
  if (machine_.keeps_managed) host_needs_.emplace_back("MachineOptions::keeps_managed: a test asks for it");
  memory_ = choose_memory();
  resolve_step_size();
  declare_state();
  start_model();
  measures_ =
      std::make_unique<RunMeasures<T>>(MeasuredRun<T>{scenario_, problem_, pool_, evaluator_, *round_, *runner_, *host_, *method_.feedback,
                                                      *method_.local, model_.span(), average_, f_star_, step_size_, method_.unit},
                                       measure_set_);
  if (const ExchangeChannel<T>* channel = measured_channel(method_.exchange))
    watch_.emplace(watch_of(*channel->compressor, channel->scope));
}

template <class T>
Experiment<T>::~Experiment() = default;

template <class T>
void Experiment<T>::make_parts() {
  method_ = make_method<T>(scenario_, problem_.layers(), machine_.device);
  about_key("server.kind",
            [&] { optimizer_ = make_named<ServerOptimizer<T>>("server_optimizer", scenario_.server.part, kPrecisionOf<T>); });
  about_key("participation.kind", [&] {
    participation_ = make_named<Participation>("participation", scenario_.participation.part, Precision::float64);
    participation_->open(problem_.shards().size(),
                         [this](const std::string& path) { return problem_.find_input("participation.path", path); });
  });
  run_ = run_settings(scenario_, method_, problem_);
}

template <class T>
bool Experiment<T>::wants_gap() const {
  return scenario_.evaluate.optimum.is_used && problem_.has_optimum(scenario_.evaluate.optimum);
}

// Adds problems: a measure or a stop condition that nothing can ever measure.
template <class T>
void Experiment<T>::check_measures(Problems& problems) const {
  const EvaluateOptions& evaluate = scenario_.evaluate;
  const StopOptions& stop = scenario_.stop;
  const auto need = [&problems](bool holds, const char* key, const std::string& what) {
    if (!holds) problems.push_back({key, what});
  };
  const std::string gap = "needs f*: a convex model and evaluate.optimum = true, or the path of a file that holds x*";
  measure_set_.check(measured_problem(problem_, wants_gap()), problems);
  need(!stop.f_gap || wants_gap(), "stop.f_gap", gap);
  need(!stop.f_gap || evaluate.train_loss, "stop.f_gap", "needs evaluate.train_loss = true, without which f - f* is not measured");
  need(!stop.accuracy || problem_.test() != nullptr, "stop.accuracy",
       "needs a test set, which data set \"" + problem_.train().name + "\" has not; set data.test or data.test_fraction");
  need(!stop.accuracy || problem_.train().num_classes > 0, "stop.accuracy",
       "needs classes, which data set \"" + problem_.train().name + "\" does not have");
}

template <class T>
void Experiment<T>::check_parts() {
  Problems problems;
  check_measures(problems);
  const std::vector<Unit> units = method_.local->units();
  if (std::find(units.begin(), units.end(), method_.unit) == units.end())
    problems.push_back({"compressor.up.unit", "local kind '" + scenario_.local.kind + "' sends \"" + std::string(to_string(units.front())) +
                                                  "\", not \"" + to_string(method_.unit) + "\""});
  const std::vector<std::string> needed = method_.local->needs_feedback();
  if (!needed.empty() && std::find(needed.begin(), needed.end(), scenario_.feedback_up.kind) == needed.end())
    problems.push_back({"feedback.up.kind", "local kind '" + scenario_.local.kind + "' needs feedback " + any_of(needed) + ", is \"" +
                                                scenario_.feedback_up.kind + "\""});
  const ExchangeChannel<T> down = about_key(
      "compressor.down.kind", [&] { return make_channel<T>(scenario_, problem_.layers(), "down", scenario_.down, 0, Device::cpu); });
  Surroundings around{.local_update = scenario_.local.kind,
                      .unit = method_.unit,
                      .full_participation = scenario_.participation.part.kind == "full",
                      .channels = method_.local->vectors(),
                      .contracts = {},
                      .operators = {},
                      .num_phases = method_.exchange.num_phases(),
                      .computes_anywhere = method_.local->computes_anywhere(),
                      .subtracts_optimum = method_.local->needs_optimum(),
                      .downlink = scenario_.down.part.kind,
                      .downlink_contract = down.compressor->contract(down.scope),
                      .server = scenario_.server.part.kind,
                      .has_plain_server = optimizer_->plain_rate().has_value()};
  const FeedbackNeeds needs = method_.feedback->needs();
  for (const auto& channel : method_.exchange.channels) {
    around.contracts.push_back(channel.compressor->contract(channel.scope));
    around.operators.push_back(scenario_.compressor_up(channel.name).part.kind);
    const std::string& no_memory = around.contracts.back().no_memory;
    if (!no_memory.empty() && needs.keeps_error)
      problems.push_back(
          {"feedback.up.kind", "'" + around.operators.back() + "' under feedback '" + scenario_.feedback_up.kind + "': " + no_memory});
  }
  check_needs(needs, method_.plan, around, problems);
  if (scenario_.participation.absent != AbsentState::keep && method_.plan.error_slot.empty())
    problems.push_back({"participation.absent", "feedback '" + scenario_.feedback_up.kind +
                                                    "' has no error memory that could change while a client is absent; use \"keep\""});
  if (scenario_.server.average == Average::normalised && !method_.local->can_normalise())
    problems.push_back({"server.average", "\"normalised\" needs local steps: local kind \"sgd\", is \"" + scenario_.local.kind + "\""});
  if (scenario_.server.statistics && statistics_of(problem_.layers()).empty())
    problems.push_back({"server.statistics", "the model has no running statistics, which batch_norm layers have; drop the key"});
  if (down.num_phases() > 1)
    problems.push_back({"compressor.down.kind", "'" + scenario_.down.part.kind + "' speaks in phases; the downlink has one"});
  if (!down.client_slot.empty())
    problems.push_back(
        {"compressor.down.kind", "'" + scenario_.down.part.kind + "' remembers the clients it compresses for; the server is none"});
  for (const auto& [channel, _] : scenario_.up) {
    const bool known = channel.empty() || std::any_of(method_.exchange.channels.begin(), method_.exchange.channels.end(),
                                                      [&name = channel](const auto& c) { return c.name == name; });
    if (!known) problems.push_back({"compressor.up." + channel, unknown_channel(channel)});
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

template <class T>
std::string Experiment<T>::unknown_channel(const std::string& name) const {
  std::vector<std::string> names;
  std::string all;
  for (const auto& channel : method_.exchange.channels) {
    names.push_back(channel.name);
    all += (all.empty() ? "" : ", ") + channel.name;
  }
  const std::string near = nearest_name(name, names);
  return "no channel of this name is sent by local kind '" + scenario_.local.kind + "' with feedback '" + scenario_.feedback_up.kind + "'" +
         (near.empty() ? "" : "; did you mean \"" + near + "\"?") + " (its channels: " + all + ")";
}

template <class T>
void Experiment<T>::resolve_step_size() {
  const Expression& rule = method_.local->learning_rate();
  std::map<std::string, double> names = problem_.names_for(rule, "local.learning_rate");
  if (std::ranges::count(names_of(rule), "theory") > 0)
    names["theory"] = theory_step_size(*method_.feedback, scenario_.feedback_up.kind, theory_facts(theory_parts(), problem_));
  step_size_ = about_key("local.learning_rate", [&] { return rule.resolve(names); });
  if (!(step_size_ > 0)) throw key_error("local.learning_rate", "must be > 0, is " + std::to_string(step_size_) + " (" + rule.text() + ")");
}

// A GPU's own memory, unless the host has to reach what lies there.
template <class T>
Device Experiment<T>::choose_memory() const {
  if (machine_.device == Device::cpu) return Device::cpu;
  if (host_needs_.empty()) return Device::cuda;
  if (shares_managed_memory()) return Device::managed;
  std::string needs;
  for (const std::string& need : host_needs_) needs += (needs.empty() ? "" : "; ") + need;
  throw DeviceError(
      "--device cuda: this GPU cannot share managed memory with a host that runs at the same time (concurrentManagedAccess "
      "is 0), and this study needs that. " +
      needs + ". Use --device cpu, or parts that stay on the GPU: `fedbits list feedbacks --device cuda` says which do");
}

template <class T>
void Experiment<T>::declare_state() {
  const std::size_t N = problem_.shards().size(), P = problem_.P(), M = participation_->cohort_size(N);
  clients_ = std::make_unique<ClientState<T>>(N, M, P, machine_.paging, participation_->likely_cohort_size(N), memory_);
  // Beside a GPU's own memory shared slots are pinned: kernels read them, and the host writes them every round.
  shared_ = std::make_unique<SharedState<T>>(P, memory_ == Device::cuda ? Device::pinned : memory_);
  state_ = std::make_unique<ServerState<T>>(N, P);
  declare_slots<T>(method_, run_, {.clients = clients_.get(), .shared = shared_.get(), .server = state_.get()});
  const AbsenceRule absence = absence_rule(scenario_, method_, run_);
  if (absence.replaces()) state_->declare({.name = kAbsentMean, .owner = SlotOwner::server});
  const bool runs_memory_sum = !absence.slot.empty() && MemorySum<T>::pays_to_run(N, participation_->likely_cohort_size(N),
                                                                                  static_cast<std::uint64_t>(scenario_.evaluate.every));
  SamplingOptions sampling = method_.local->sampling();
  sampling.sample_file = problem_.find_input("local.sample_file", sampling.sample_file);
  about_key("local.kind", [&] {
    oracle_ = std::make_unique<GradientOracle<T>>(problem_.model(), problem_.shards(), sampling, scenario_.seeds.sampling,
                                                  static_cast<std::uint32_t>(scenario_.rounds));
    check_minibatches(*method_.local, *oracle_, measures_gradients());
  });
  downlink_ = std::make_unique<Downlink<T>>(make_channel<T>(scenario_, problem_.layers(), "down", scenario_.down, 0xD0, Device::cpu),
                                            scenario_.down.sends(), N, P, run_.local_statistics);
  static_assert(static_cast<int>(PublishedMetrics::ec_sgd) == static_cast<int>(EvaluateOptions::PublishedMetrics::ec_sgd));
  runner_ = std::make_unique<BlockRunner<T>>(
      *method_.local, *method_.feedback, method_.exchange, *oracle_, pool_, *clients_, *shared_, M,
      BlockRunnerOptions{.block = machine_.block,
                         .materialise = machine_.materialise,
                         .published_metrics = static_cast<PublishedMetrics>(static_cast<int>(scenario_.evaluate.published_metrics)),
                         .device = machine_.device,
                         .memory = memory_,
                         .trains_on_cpu = machine_.trains_on_cpu,
                         .products = scenario_.matrix_products,
                         .local_statistics = run_.local_statistics,
                         .times = machine_.times});
  clients_->bound_memory(room_for_state());
  host_ = std::make_unique<ClientHost<T>>(run_, absence, runs_memory_sum, *clients_, *shared_, *runner_, pool_);
  round_ = std::make_unique<Round<T>>(RoundParts<T>{*participation_, *method_.feedback, method_.plan, method_.exchange, *host_, host_.get(),
                                                    *optimizer_, *downlink_, run_, *shared_, *state_, pool_},
                                      RoundSettings{.step_size = step_size_,
                                                    .schedule = method_.local->schedule(),
                                                    .rounds = static_cast<std::uint32_t>(scenario_.rounds),
                                                    .absence = absence,
                                                    .times = machine_.times,
                                                    .sums = machine_.device == Device::cpu ? Device::cpu : Device::pinned},
                                      model_.span());
}

template <class T>
std::uint64_t Experiment<T>::round_bytes_on_device() const {
  return runner_->most_bytes_on_device(problem_.P()) + evaluator_.most_bytes_on_device(measures_gradients());
}

// What rounds leave of a GPU. Data are there already.
template <class T>
std::uint64_t Experiment<T>::room_for_state() const {
  if (machine_.device == Device::cpu) return kNoBound;
  const std::uint64_t free = free_bytes_of(memory_), share = machine_.device_bytes == 0 ? free : machine_.device_bytes;
  const std::uint64_t room = std::min(free, share);
  return room - std::min(room, round_bytes_on_device());
}

template <class T>
DeviceNeed Experiment<T>::device_need() const {
  const Dataset<T>*train = &problem_.train(), *test = problem_.test();
  DeviceNeed need;
  need.data = train;
  need.data_bytes = device_data_bytes(*train);
  if (test != nullptr && test != train) need.data_bytes += device_data_bytes(*test);
  need.round_bytes = round_bytes_on_device() + shared_->size_bytes();
  need.state_bytes = clients_->whole_bytes();
  need.least_state_bytes = clients_->least_bytes();
  // Counts of messages, and the server's sums of them by both kinds of weights.
  need.pinned_bytes = runner_->most_pinned_bytes() + method_.exchange.channels.size() * 2 * problem_.P() * sizeof(double);
  need.needs_managed = host_needs_;
  if (host_needs_.empty()) need.pinned_bytes += shared_->size_bytes();  // kernels are given copies, which count among those of rounds
  return need;
}

template <class T>
void Experiment<T>::start_model() {
  // Another scenario than the one that runs is looked at for its errors alone: its optimum may be anything, and take any time.
  const bool skips_optimum = machine_.looks_for_errors && scenario_.evaluate.optimum.path.empty();
  if (skips_optimum && scenario_.start.kind != StartOptions::Kind::file) return;
  const bool wants_gap = this->wants_gap() && !skips_optimum;
  const bool needs_optimum = !skips_optimum && (method_.local->needs_optimum() || scenario_.start.kind == StartOptions::Kind::optimum);
  const std::vector<double>* x_star = nullptr;
  if (wants_gap || needs_optimum) {
    const std::string key = scenario_.start.kind == StartOptions::Kind::optimum ? "start.kind"
                            : method_.local->needs_optimum()                    ? "local.kind"
                                                                                : "evaluate.optimum";
    const auto& optimum = about_key(key, [&]() -> const Minimum& { return problem_.optimum(scenario_.evaluate.optimum); });
    x_star = &optimum.x;
    f_star_ = optimum.value;
  }
  switch (scenario_.start.kind) {
    case StartOptions::Kind::automatic:
      if (problem_.model().starts_at_random()) problem_.model().initial(scenario_.seeds.init, model_.data());
      break;
    case StartOptions::Kind::zero: break;
    case StartOptions::Kind::random: problem_.model().initial(scenario_.seeds.init, model_.data()); break;
    case StartOptions::Kind::optimum:
      std::transform(x_star->begin(), x_star->end(), model_.begin(), [](double x) { return static_cast<T>(x); });
      break;
    case StartOptions::Kind::file: {
      const std::vector<double> x =
          read_parameters(problem_.find_input("start.path", scenario_.start.path), problem_.layers(), "start.path");
      std::transform(x.begin(), x.end(), model_.begin(), [](double v) { return static_cast<T>(v); });
      break;
    }
  }
  for (T& x : model_) x += static_cast<T>(scenario_.start.shift);
  if (run_.local_statistics) start_own_statistics();
  if (skips_optimum) return;
  if (scenario_.evaluate.average) start_average(*x_star);
  if (method_.local->needs_optimum()) {
    const std::vector<T> at(x_star->begin(), x_star->end());
    method_.local->prepare(pool_.exec(0), *oracle_, *clients_, at.data());
  }
}

// The statistics of the first model are what every client has until a round of its own has counted, and their mean.
template <class T>
void Experiment<T>::start_own_statistics() {
  const std::span<T> initial = shared_->slot(kInitialStatistics);
  gather_statistics<T>(run_.statistics, model_.data(), initial.data());
  std::ranges::copy(initial, state_->slot(kMeanStatistics).begin());
}

template <class T>
void Experiment<T>::start_average(const std::vector<double>& x_star) {
  client_convexity_ = problem_.least_convexity();
  average_.emplace(problem_.P(), 1 - step_size_ * client_convexity_ / 2);
  start_distance_sq_ = 0;
  for (std::size_t j = 0; j < x_star.size(); ++j) start_distance_sq_ += std::pow(static_cast<double>(model_[j]) - x_star[j], 2);
}

template <class T>
void Experiment<T>::persist(Archive& archive, std::vector<RoundRow>& rows) {
  LayerTable layers = problem_.layers();
  bool is_double = std::is_same_v<T, double>;
  persist_layers(archive, layers, is_double);
  round_->persist(archive);
  if (average_) average_->persist(archive);
  if (watch_) watch_->persist(archive);
  measure_set_.persist(archive);
  archive.section("rounds");
  fl::persist(archive, rows, measure_set_.columns().size());
}

// What a checkpoint holds is that of `round`: a row per round, and nothing of later ones.
template <class T>
void Experiment<T>::require_rounds_until(std::uint64_t round, const std::vector<RoundRow>& rows) const {
  if (round > static_cast<std::uint64_t>(scenario_.rounds))
    throw ArchiveError("it is of round " + std::to_string(round) + ", the run has " + std::to_string(scenario_.rounds));
  if (rows.size() != round + 1)
    throw ArchiveError("in 'rounds': it has " + std::to_string(rows.size()) + " rows until round " + std::to_string(round));
  for (std::size_t r = 0; r < rows.size(); ++r)
    if (rows[r].round != r) throw ArchiveError("in 'rounds': row " + std::to_string(r) + " is of round " + std::to_string(rows[r].round));
  round_->require_nothing_after(static_cast<std::uint32_t>(round));
  for (std::uint32_t client = 0; client < clients_->num_clients(); ++client)
    if (clients_->acknowledged(client) > round)
      throw ArchiveError("in 'state': client " + std::to_string(client) + " took part in round " +
                         std::to_string(clients_->acknowledged(client)) + ", the run has played " + std::to_string(round));
}

template <class T>
RunResult Experiment<T>::run(const RoundCallback& callback, const CheckpointPlan& plan) {
  RunResult result;
  CheckpointHeader at{.run = to_hex(cell_.hash)};
  const bool resumed = plan.resume && !plan.file.empty() && load_checkpoint(plan, at, [&](Archive& archive) {
                         persist(archive, result.rows);
                         require_rounds_until(at.round, result.rows);
                       });
  constexpr std::int64_t kMostReserved = 1 << 20;
  result.rows.reserve(static_cast<std::size_t>(std::min(scenario_.rounds, kMostReserved)) + 1);
  using Clock = std::chrono::steady_clock;
  const auto seconds_since = [](Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); };
  const double before = at.seconds;
  const auto started = Clock::now();
  auto saved = started;
  const auto save = [&] {
    save_checkpoint(plan, {at.run, result.rows.back().round, before + seconds_since(started), clients_->page_file()},
                    [&](Archive& archive) { persist(archive, result.rows); });
    clients_->commit_checkpoint();
    saved = Clock::now();
  };

  std::optional<SampleRecorder> samples;
  if (!machine_.samples.empty()) samples.emplace(sample_file_of(machine_.samples, at.run), problem_.shards());
  oracle_->record_into(samples ? &*samples : nullptr);
  RunStatus status = RunStatus::done;
  bool goes_on = true;
  const auto tell = [&] { goes_on = !callback || callback(result.rows.back()); };
  if (!resumed) {
    result.rows.push_back(row_of_start());
    tell();
    if (!goes_on) status = RunStatus::interrupted;
  }
  for (auto r = static_cast<std::uint32_t>(at.round) + 1; r <= scenario_.rounds && goes_on; ++r) {
    result.rows.push_back(play(r, measure_set_.due(r)));
    if (samples) samples->end_round();
    RoundRow& row = result.rows.back();
    result.record.message = why_diverged(row);
    if (!result.record.message.empty()) status = RunStatus::diverged;
    const bool stops = status != RunStatus::diverged && schedule_.is_due(r, scenario_.evaluate.every) && should_stop(row);
    if (stops && r < scenario_.rounds) measures_->measure(row, measure_set_.due_at_end());
    tell();
    if (status == RunStatus::diverged || stops) break;
    if (!goes_on) {
      status = RunStatus::interrupted;
      break;
    }
    const bool by_rounds = plan.every_rounds > 0 && r % plan.every_rounds == 0;
    const bool by_time = plan.every_seconds > 0 && seconds_since(saved) >= plan.every_seconds;
    if (!plan.file.empty() && r < scenario_.rounds && (by_rounds || by_time)) save();
  }
  if (status == RunStatus::interrupted && !plan.file.empty()) save();
  if (status == RunStatus::done) result.record.message = why_diverged_at_the_end(result.rows);
  if (!result.record.message.empty()) status = RunStatus::diverged;
  oracle_->record_into(nullptr);
  if (samples && is_finished(status)) samples->finish();
  finish(result, status);
  if (!machine_.models.folder.empty() && is_finished(status))
    write_model(snapshot_of<T>(result.record.run, result.record.rounds, problem_.layers(), model_.span()), machine_.models.format,
                machine_.models.file_of(result.record.run));
  result.record.seconds = before + seconds_since(started);
  return result;
}

template <class T>
RoundRow Experiment<T>::row_of_start() {
  RoundRow row;
  row.clients = 0;
  row.bits_up_published = row.bits_up_entropy = 0;
  measures_->measure(row, measure_set_.due(0));
  return row;
}

// One round, and what is due to be measured of it.
template <class T>
RoundRow Experiment<T>::play(std::uint32_t r, const DueMeasures& due) {
  RoundTimes* times = machine_.times;
  if (times != nullptr) ++times->rounds;
  const Lap whole(lap_of(times, &RoundTimes::total_s));
  RoundRow row;
  row.round = r;
  if (average_) average_->add<T>(model_.span());
  measure_set_.before_round(r, model_.span());
  runner_->keep_updates(measure_set_.needs(due, &MeasureCost::updates));
  round_->play(r, measure_set_.needs(due, &MeasureCost::messages));
  const Lap lap(lap_of(times, &RoundTimes::evaluate_s));
  if (measure_set_.is_due("messages", due)) watch_contract(r);
  measures_->measure(row, due);
  return row;
}

// Holds the round's messages that arrived to the operator's contract.
template <class T>
void Experiment<T>::watch_contract(std::uint32_t round) {
  if (!watch_) return;
  const std::span<const std::uint8_t> delivered = round_->delivered();
  std::vector<OperatorError> arrived;
  for (std::size_t i = 0; i < delivered.size(); ++i)
    if (delivered[i] != 0) arrived.push_back(runner_->operator_errors()[i]);
  const double gamma = step_size_ * method_.local->schedule().factor(round, static_cast<std::uint32_t>(scenario_.rounds));
  watch_->see(round, method_.unit == Unit::step ? gamma : 1.0, arrived);
}

// Returns why the run cannot go on after this round, or "".
template <class T>
std::string Experiment<T>::why_diverged(const RoundRow& row) const {
  const std::string where = " in round " + std::to_string(row.round);
  const bool evaluated = scenario_.evaluate.train_loss && schedule_.is_due(static_cast<std::uint32_t>(row.round), scenario_.evaluate.every);
  if (row.clients > 0 && row.refused == row.clients) return "no client of the cohort sent a finite update" + where;
  if (!is_finite(pool_, round_->estimate())) return "the server's estimate is not finite" + where;
  if (evaluated && !std::isfinite(row.train_loss)) return "train_loss is not finite" + where;
  return {};
}

// Returns why a run that played all of its rounds diverged nevertheless, or "". A loss of 0 or less at the start has no multiples.
template <class T>
std::string Experiment<T>::why_diverged_at_the_end(const std::vector<RoundRow>& rows) const {
  const double factor = scenario_.evaluate.divergence_factor.value_or(kDivergenceFactor);
  const double first = rows.front().train_loss, last = rows.back().train_loss;
  if (!(first > 0) || !(last > factor * first)) return {};
  char text[160];
  std::snprintf(text, sizeof text, "train_loss ended at %.4g, more than %g times its %.4g at the start (evaluate.divergence_factor)", last,
                factor, first);
  return text;
}

template <class T>
bool Experiment<T>::should_stop(const RoundRow& row) const {
  const StopOptions& stop = scenario_.stop;
  const Ledger& ledger = round_->ledger();
  return (stop.accuracy && row.test_accuracy >= *stop.accuracy) || (stop.f_gap && row.f_gap <= *stop.f_gap) ||
         (stop.grad_norm_sq && row.global_grad_norm_sq <= *stop.grad_norm_sq) ||
         (stop.bits_up && static_cast<double>(ledger.total_up().bits) >= *stop.bits_up) ||
         (stop.bits && static_cast<double>(ledger.total_up().bits + ledger.total_down_bits()) >= *stop.bits);
}

namespace {

// The smallest, the median and the largest client's bits, and how much of all bits the busiest tenth has.
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

// Who pays for what: bits by channel and cause, and by client. Causes without bits are left out.
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

}  // namespace

template <class T>
void Experiment<T>::finish(RunResult& result, RunStatus status) {
  RunRecord& record = result.record;
  const RoundRow& last = result.rows.back();
  record.run = to_hex(cell_.hash);
  record.name = scenario_.name;
  record.seed = scenario_.seeds.data;
  record.status = status;
  record.rounds = last.round;
  record.bits_up = round_->ledger().total_up().bits;
  record.bits_down = round_->ledger().total_down_bits();
  record.train_loss = last.train_loss;
  record.f_gap = last.f_gap;
  record.test_accuracy = last.test_accuracy;
  record.zeta_sq = result.rows.front().zeta_sq;
  record.total_error = 0;
  for (std::size_t r = 1; r < result.rows.size(); ++r) record.total_error += result.rows[r].error_norm_sq;
  record.checksum = to_hex(hash64_of(std::as_bytes(std::span<const T>(model_.span()))));
  record.split_hash = to_hex(problem_.split_hash());
  record.scenario = cell_.resolved_toml;
  record.version = FL_VERSION;
  record.threads = static_cast<std::uint64_t>(pool_.num_threads());
  record.parameters = problem_.P();
  record.f_star = f_star_;
  record.columns = measure_set_.columns();
  for (const auto& [key, label] : cell_.axis_labels) record.axes.push_back({key, label});
  for (const auto& [name, value] : problem_.resolved()) record.constants.push_back({name, value});
  const Dataset<T>& data = problem_.train();
  if (data.num_classes > 0) {
    const SplitSkew skew = measure_skew(problem_.shards(), data.label, data.num_classes);
    record.constants.push_back({"split_emd", skew.mean_emd});
    record.constants.push_back({"split_entropy", skew.mean_entropy});
  }
  if (scenario_.evaluate.clients_every > 0)
    record.constants.push_back({"client_accuracy_on_test_rows", problem_.client_rows().are_test_rows ? 1.0 : 0.0});
  const auto skipped = std::count_if(result.rows.begin() + 1, result.rows.end(), [](const RoundRow& row) { return row.clients == 0; });
  if (skipped > 0) record.constants.push_back({"skipped_rounds", static_cast<double>(skipped)});
  std::uint64_t refused = 0;
  for (const RoundRow& row : result.rows) refused += row.refused;
  if (refused > 0) record.constants.push_back({"refused_updates", static_cast<double>(refused)});
  if (const std::size_t dropped = problem_.num_dropped_roles(); dropped > 0)
    record.constants.push_back({"dropped_roles", static_cast<double>(dropped)});
  if (const std::size_t dropped = problem_.num_dropped_rows(); dropped > 0)
    record.constants.push_back({"dropped_rows", static_cast<double>(dropped)});
  if (const std::size_t dropped = problem_.num_dropped_test_rows(); dropped > 0)
    record.constants.push_back({"dropped_test_rows", static_cast<double>(dropped)});
  add_bits(record, round_->ledger(), method_.exchange);
  if (scenario_.evaluate.divergence_factor) record.constants.push_back({"divergence_factor", *scenario_.evaluate.divergence_factor});
  record.constants.push_back({"gamma", step_size_});
  record.constants.push_back({"f_star", f_star_});
  if (std::isfinite(f_star_)) record.constants.push_back({"zeta_sq_at_optimum", measures_->zeta_sq_at_optimum()});
  const Contract contract = method_.exchange.channels.front().compressor->contract(method_.exchange.channels.front().scope);
  if (contract.kappa) record.constants.push_back({"promised_kappa", *contract.kappa});
  if (contract.delta) record.constants.push_back({"promised_delta", *contract.delta});
  if (contract.omega) record.constants.push_back({"promised_omega", *contract.omega});
  for (const BrokenContract& broken : watch_ ? watch_->broken() : std::vector<BrokenContract>{}) record_broken(broken, record.constants);
  add_theory(result);
  record.constants.insert(record.constants.end(), cell_.found.begin(), cell_.found.end());
}

template <class T>
TheoryParts<T> Experiment<T>::theory_parts() const {
  return {scenario_, *method_.local, method_.exchange, method_.unit, step_size_};
}

template <class T>
void Experiment<T>::add_theory(RunResult& result) {
  const TheoryParts<T> parts = theory_parts();
  const bool has_gradients = measures_every_gradient(result.rows);
  if (!std::isfinite(f_star_) || !(has_gradients || average_) || problem_.model().second_order() == nullptr || !has_theory(parts)) return;
  const std::optional<GradientNoise> noise = gradient_noise(problem_, method_.local->sampling());
  if (!noise) return;
  const double curvature = problem_.model().regulariser().largest_curvature();
  const TheoryNumbers numbers{.L = problem_.names_for(Expression("L"), "theory").at("L") + curvature,
                              .L_max = std::ranges::max(problem_.client_smoothness()) + curvature,
                              .largest_weight = std::ranges::max(problem_.weights()),
                              .noise = *noise};
  std::vector<ResolvedConstant>& constants = result.record.constants;
  const std::size_t before = constants.size();
  const auto record = [&constants](const std::vector<ResolvedConstant>& more) {
    constants.insert(constants.end(), more.begin(), more.end());
  };
  if (has_gradients) record(theory_constants(parts, numbers));
  if (average_ && problem_.model().is_convex()) record(convex_theory_constants(parts, numbers, client_convexity_, start_distance_sq_));
  if (constants.size() > before) record(noise_constants(parts, numbers));
}

template <class T>
std::size_t Experiment<T>::size_bytes() const {
  const std::size_t gradients = static_cast<std::size_t>(pool_.num_threads()) * whole_minibatch().bytes;
  const std::size_t working = machine_.device == Device::cpu ? gradients : round_bytes_on_device();
  return clients_->size_bytes() + host_->size_bytes() + shared_->size_bytes() + state_->size_bytes() + runner_->size_bytes() + working;
}

template <class T>
WholeMinibatch Experiment<T>::whole_minibatch() const {
  return largest_minibatch(*oracle_, measures_gradients());
}

template <class T>
bool Experiment<T>::measures_gradients() const {
  return measure_set_.ever_needs(&MeasureCost::gradients);
}

template class Experiment<float>;
template class Experiment<double>;

}  // namespace fl
