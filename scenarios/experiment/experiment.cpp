#include "scenarios/experiment/experiment.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "fl_core/config/key_error.hpp"
#include "fl_core/config/stopping.hpp"
#include "fl_core/ops/pieces.hpp"
#include "fl_core/state/checksum.hpp"
#include "scenarios/experiment/host_needs.hpp"
#include "scenarios/experiment/part_checks.hpp"
#include "scenarios/experiment/start.hpp"
#include "scenarios/file/stop_condition.hpp"

namespace fl {

template <class T>
Experiment<T>::Experiment(const Cell& cell, FederatedProblem<T>& problem, ThreadPool& pool, const MachineOptions& machine)
    : cell_(cell),
      scenario_(cell.scenario),
      problem_(problem),
      pool_(pool),
      machine_(machine),
      measuring_(scenario_, problem, pool, machine.trains_on_cpu ? Device::cpu : machine.device),
      model_(problem.P(), machine.device == Device::cpu ? Device::cpu : Device::pinned) {
  method_ = make_method<T>(scenario_, problem_.layers(), problem_.shards().size(), machine_.device);
  ServerParts<T> parts = make_server_parts<T>(scenario_, problem_);
  if (machine_.source != nullptr) parts.delivery = make_delivery(machine_.source->delivery_of(scenario_.delivery));
  run_ = run_settings(scenario_, method_, problem_);
  measuring_.evaluator.leave_out(run_.kinds.kept);
  check_parts(CheckedParts<T>{scenario_, problem_, method_, *parts.optimizer, *parts.aggregation, *parts.delivery, *parts.asynchronous,
                              *parts.participation, measuring_.set, wants_gap(scenario_, problem_), machine_.source != nullptr});
  choose_memory();
  step_ = step_size_of(scenario_, problem_, method_);
  assemble(std::move(parts));
  start();
  measuring_.run = std::make_unique<RunMeasures<T>>(
      MeasuredRun<T>{scenario_, problem_, pool_, measuring_.evaluator, *sides_.server.round, sides_.clients->probe(), *method_.feedback,
                     *method_.local, model_.span(), path_.average, path_.f_star, step_.value, method_.unit, sides_.clock.get()},
      measuring_.set);
  if (scenario_.evaluate.late_losses && measuring_.evaluator.knows_loss())
    measuring_.late.emplace(
        scenario_.stop, [this](std::span<const T> x) { return measuring_.evaluator.train_loss(x); }, path_.f_star);
  if (const ExchangeChannel<T>* channel = measured_channel(method_.exchange))
    measuring_.watch.emplace(watch_of(*channel->compressor, channel->scope));
}

// Assembles both sides of the run, which share this process's replica of the shared state.
template <class T>
void Experiment<T>::assemble(ServerParts<T> parts) {
  const std::size_t N = run_.num_clients;
  // With GPU memory, shared slots are pinned: kernels read them, and the host writes them every round.
  sides_.shared = std::make_unique<SharedState<T>>(run_.P, memory_.device == Device::cuda ? Device::pinned : memory_.device);
  declare_slots<T>(method_, run_, {.shared = sides_.shared.get()});
  const std::size_t awaited = over_select(*parts.participation, parts.delivery->over_selection());
  CohortSizes cohort{parts.participation->cohort_size(N), parts.participation->likely_cohort_size(N), awaited};
  const bool is_asynchronous = parts.asynchronous->is_asynchronous();
  if (is_asynchronous) {  // each client is a round of its own
    require_plain_messages();
    cohort = {.most = 1, .likely = 1, .waves = cohort.most + parts.asynchronous->buffer()};
  }
  if (machine_.source != nullptr) {
    sides_.clients = machine_.source->clients_of(
        ClientRequest<T>{cell_, problem_, method_, run_, *parts.delivery, *sides_.shared, measuring_.set, cohort, pool_});
    if (!problem_.has_rows()) measuring_.evaluator.ask(sides_.clients->sums());
  } else {
    std::unique_ptr<ClientSide<T>> simulated = simulate_clients(cohort);
    sides_.simulated = simulated.get();
    sides_.clients = std::move(simulated);
  }
  // Over a network the arrivals that are measured decide; the clock says what they would have been if no message is ever too late. It needs
  // the rows, whose number decides the time of local work.
  if (machine_.source == nullptr || (parts.delivery->waits_for_all() && problem_.has_rows()))
    sides_.clock = make_clock<T>(scenario_, problem_, method_, *parts.delivery, sides_.clients->clients(), awaited);
  CohortRunner<T>& runner = sides_.clock && !is_asynchronous ? *sides_.clock->cohort : sides_.clients->clients();
  sides_.server =
      make_server_side<T>(scenario_, problem_.layers(), std::move(parts), method_, run_, *sides_.shared, {runner, &sides_.clients->probe()},
                          {.step_size = step_.value,
                           .sums = machine_.device == Device::cpu ? Device::cpu : Device::pinned,
                           .times = machine_.times,
                           .keeps_messages = machine_.source != nullptr,
                           .clock = sides_.clock ? sides_.clock->clock.get() : nullptr},
                          model_.span(), pool_);
  if (sides_.clock) sides_.clock->cohort->read(sides_.server.round->ledger());
}

// Throws ConfigError for machine settings that follow rounds.
template <class T>
void Experiment<T>::require_plain_messages() const {
  const std::string why = ": an asynchronous run has no rounds whose messages could be ";
  if (machine_.materialise) throw ConfigError("--materialise" + why + "encoded together; leave it out");
  if (!machine_.samples.empty()) throw ConfigError("--samples" + why + "listed with their rows; leave it out");
}

// Asks `factor` times the clients of a round. Returns the number of messages that it is made for, or 0 = those of all clients.
template <class T>
std::size_t Experiment<T>::over_select(Participation& participation, double factor) const {
  if (factor == 1) return 0;
  const std::size_t awaited = participation.cohort_size(run_.num_clients);
  if (!participation.over_select(factor))
    throw key_error("participation.kind",
                    "has no size of its own, so that no more clients can be asked: use kind = \"uniform\", or leave out the over-selection "
                    "(delivery.kind = \"first\", --over-select)");
  return awaited;
}

template <class T>
std::unique_ptr<ClientSide<T>> Experiment<T>::simulate_clients(CohortSizes cohort) {
  const bool gradients = measuring_.set.ever_needs(&MeasureCost::gradients);
  return std::make_unique<ClientSide<T>>(scenario_, problem_, method_, run_, SharedReplica<T>{*sides_.shared}, cohort,
                                         ClientPlace{.block = machine_.block,
                                                     .materialise = machine_.materialise,
                                                     .device = machine_.device,
                                                     .memory = memory_.device,
                                                     .trains_on_cpu = machine_.trains_on_cpu,
                                                     .paging = machine_.paging,
                                                     .device_bytes = machine_.device_bytes,
                                                     .others_bytes = measuring_.evaluator.most_bytes_on_device(gradients),
                                                     .measures_gradients = gradients,
                                                     .times = machine_.times},
                                         pool_);
}

template <class T>
void Experiment<T>::start() {
  const Start start = start_model(scenario_, problem_, *method_.local, machine_.looks_for_errors, model_.span());
  path_.f_star = start.f_star;
  start_kept<T>(run_, model_.span(), *sides_.shared, *sides_.server.state);
  if (start.x_star == nullptr) return;
  if (scenario_.evaluate.average) start_average(*start.x_star);
  sides_.clients->prepare(*start.x_star);
}

template <class T>
void Experiment<T>::start_average(const std::vector<double>& x_star) {
  path_.client_convexity = problem_.least_convexity();
  path_.average.emplace(problem_.P(), 1 - step_.value * path_.client_convexity / 2);
  path_.start_distance_sq = 0;
  for (std::size_t j = 0; j < x_star.size(); ++j) path_.start_distance_sq += std::pow(static_cast<double>(model_[j]) - x_star[j], 2);
}

template <class T>
void Experiment<T>::persist(Archive& archive, std::vector<RoundRow>& rows) {
  LayerTable layers = problem_.layers();
  bool is_double = std::is_same_v<T, double>;
  persist_layers(archive, layers, is_double);
  sides_.server.round->persist(archive);
  if (path_.average) path_.average->persist(archive);
  if (measuring_.watch) measuring_.watch->persist(archive);
  measuring_.set.persist(archive);
  archive.section("rounds");
  fl::persist(archive, rows, measuring_.set.columns().size());
}

// Throws unless a checkpoint's contents belong to `round`: one row per round, and nothing from later rounds.
template <class T>
void Experiment<T>::require_rounds_until(std::uint64_t round, const std::vector<RoundRow>& rows) const {
  if (round > static_cast<std::uint64_t>(scenario_.rounds))
    throw ArchiveError("it is of round " + std::to_string(round) + ", the run has " + std::to_string(scenario_.rounds));
  if (rows.size() != round + 1)
    throw ArchiveError("in 'rounds': it has " + std::to_string(rows.size()) + " rows until round " + std::to_string(round));
  for (std::size_t r = 0; r < rows.size(); ++r)
    if (rows[r].round != r) throw ArchiveError("in 'rounds': row " + std::to_string(r) + " is of round " + std::to_string(rows[r].round));
  sides_.server.round->require_nothing_after(static_cast<std::uint32_t>(round));
  sides_.clients->require_nothing_after(sides_.server.round->last_order(static_cast<std::uint32_t>(round)));
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
    if (measuring_.late) measuring_.late->measure(result.rows);
    save_checkpoint(plan, {at.run, result.rows.back().round, before + seconds_since(started), sides_.clients->page_file()},
                    [&](Archive& archive) { persist(archive, result.rows); });
    sides_.clients->commit_checkpoint();
    saved = Clock::now();
  };

  std::optional<SampleRecorder> samples;
  if (!machine_.samples.empty()) samples.emplace(sample_file_of(machine_.samples, at.run), problem_.shards());
  sides_.clients->record_into(samples ? &*samples : nullptr);
  const auto tell = [&] { return !callback || callback(result.rows.back()); };
  if (!resumed) result.rows.push_back(row_of_start());
  RunStatus status = resumed || tell() ? RunStatus::done : RunStatus::interrupted;
  for (auto r = static_cast<std::uint32_t>(at.round) + 1; r <= scenario_.rounds && status == RunStatus::done; ++r) {
    result.rows.push_back(play(r, measuring_.set.due(r)));
    keep_late_losses(result.rows, measuring_.set.due(r));
    if (samples) samples->end_round();
    const bool ends = ends_here(result), goes_on = tell();
    if (ends) break;
    if (!goes_on) status = RunStatus::interrupted;
    if (goes_on && r < scenario_.rounds && plan.is_due(r, seconds_since(saved))) save();
  }
  if (status == RunStatus::interrupted && !plan.file.empty()) save();
  if (measuring_.late && result.record.message.empty()) result.record.message = measuring_.late->measure_all(result.rows);
  if (status == RunStatus::done && result.record.message.empty()) result.record.message = why_diverged_at_the_end(scenario_, result.rows);
  if (!result.record.message.empty()) status = RunStatus::diverged;
  sides_.clients->record_into(nullptr);
  if (samples && is_finished(status)) samples->finish();
  fill_record(played_run(), status, result);
  if (!machine_.models.folder.empty() && is_finished(status))
    write_model(snapshot_of<T>(result.record.run, result.record.rounds, problem_.layers(), model_.span()), machine_.models.format,
                machine_.models.file_of(result.record.run));
  result.record.seconds = before + seconds_since(started);
  return result;
}

// Returns whether the run ends with the last round played: it diverged, which the record's message then explains, or it reached a limit of
// [stop].
template <class T>
bool Experiment<T>::ends_here(RunResult& result) {
  RoundRow& row = result.rows.back();
  result.record.message = why_diverged(row);
  if (!result.record.message.empty()) return true;
  if (!measuring_.schedule.is_due(static_cast<std::uint32_t>(row.round), scenario_.evaluate.every) || !should_stop(row)) return false;
  if (row.round < static_cast<std::uint64_t>(scenario_.rounds)) measuring_.run->measure(row, measuring_.set.due_at_end());
  return true;
}

template <class T>
RoundRow Experiment<T>::row_of_start() {
  const Preparation measuring("the model is measured before the first round");
  RoundRow row;
  row.clients = 0;
  row.bits_up_published = row.bits_up_entropy = 0;
  if (sides_.clock) row.simulated_s = 0;
  measuring_.run->measure(row, measuring_.set.due(0));
  return row;
}

// Plays one round and takes the measures that are due.
template <class T>
RoundRow Experiment<T>::play(std::uint32_t r, const DueMeasures& due) {
  RoundTimes* times = machine_.times;
  if (times != nullptr) ++times->rounds;
  const ScopedTimer round_timer(seconds_in(times, &RoundTimes::total_s));
  RoundRow row;
  row.round = r;
  if (path_.average) path_.average->template add<T>(model_.span());
  measuring_.set.before_round(r, model_.span());
  sides_.clients->probe().keep_updates(measuring_.set.needs(due, &MeasureCost::updates));
  sides_.server.round->play(r, measuring_.set.needs(due, &MeasureCost::messages));
  if (sides_.clock) row.simulated_s = scenario_.is_asynchronous() ? sides_.clock->clock->now_s() : sides_.clock->cohort->settle();
  const ScopedTimer timer(seconds_in(times, &RoundTimes::evaluate_s));
  if (measuring_.set.is_due("messages", due)) watch_contract(r);
  measuring_.run->measure(row, are_losses_late(due) ? measuring_.set.without("losses", due) : due);
  return row;
}

// A loss that shares its pass with a gradient costs nothing.
template <class T>
bool Experiment<T>::are_losses_late(const DueMeasures& due) const {
  return measuring_.late && measuring_.set.is_due("losses", due) && !measuring_.set.needs(due, &MeasureCost::gradients);
}

template <class T>
void Experiment<T>::keep_late_losses(std::vector<RoundRow>& rows, const DueMeasures& due) {
  if (!are_losses_late(due)) return;
  const Ledger& ledger = sides_.server.round->ledger();
  const auto up = static_cast<double>(ledger.total_up().bits), down = static_cast<double>(ledger.total_down_bits());
  measuring_.late->keep(rows, {.rounds = static_cast<double>(rows.back().round), .bits_up = up, .bits = up + down}, model_.span());
}

// Checks the round's delivered messages against the operator's contract.
template <class T>
void Experiment<T>::watch_contract(std::uint32_t round) {
  if (!measuring_.watch) return;
  const std::span<const std::uint8_t> delivered = sides_.server.round->delivered();
  std::vector<OperatorError> arrived;
  for (std::size_t i = 0; i < delivered.size(); ++i)
    if (delivered[i] != 0) arrived.push_back(sides_.clients->probe().operator_errors()[i]);
  const double gamma = step_.value * method_.local->step_settings().schedule.factor(round, static_cast<std::uint32_t>(scenario_.rounds));
  measuring_.watch->see(round, step_sizes(run_, gamma), arrived);
}

// Returns why the run cannot continue after this round, or "".
template <class T>
std::string Experiment<T>::why_diverged(const RoundRow& row) const {
  const std::string where = " in round " + std::to_string(row.round);
  const bool evaluated = !measuring_.late && scenario_.evaluate.train_loss &&
                         measuring_.schedule.is_due(static_cast<std::uint32_t>(row.round), scenario_.evaluate.every);
  if (row.clients > 0 && row.refused == row.clients && sides_.server.round->absent() == 0)
    return "no client of the cohort sent a finite update" + where;
  if (!is_finite(pool_, sides_.server.round->estimate())) return "the server's estimate is not finite" + where;
  if (evaluated && measuring_.evaluator.knows_loss() && !std::isfinite(row.train_loss)) return "train_loss is not finite" + where;
  return {};
}

template <class T>
std::vector<Contract> Experiment<T>::contracts() const {
  std::vector<Contract> contracts;
  for (const ExchangeChannel<T>& channel : method_.exchange.channels) contracts.push_back(channel.compressor->contract(channel.scope));
  return contracts;
}

template <class T>
bool Experiment<T>::should_stop(const RoundRow& row) const {
  const StopOptions& stop = scenario_.stop;
  const Ledger& ledger = sides_.server.round->ledger();
  const auto is_met = [&](const std::string& text) {
    const std::optional<StopCondition> condition = parse_stop_condition(text);
    const std::size_t place = condition ? place_of(measuring_.set.columns(), condition->column) : row.more.size();
    return place < row.more.size() && condition->is_met(row.more[place]);
  };
  return std::ranges::any_of(stop.measures, is_met) || (stop.accuracy && row.test_accuracy >= *stop.accuracy) ||
         (stop.f_gap && row.f_gap <= *stop.f_gap) || (stop.train_loss && row.train_loss <= *stop.train_loss) ||
         (stop.grad_norm_sq && row.global_grad_norm_sq <= *stop.grad_norm_sq) || (stop.seconds && row.simulated_s >= *stop.seconds) ||
         (stop.bits_up && static_cast<double>(ledger.total_up().bits) >= *stop.bits_up) ||
         (stop.bits && static_cast<double>(ledger.total_up().bits + ledger.total_down_bits()) >= *stop.bits);
}

template <class T>
PlayedRun<T> Experiment<T>::played_run() {
  return {cell_,
          problem_,
          method_,
          sides_.server.round->ledger(),
          measuring_.set,
          *measuring_.run,
          measuring_.watch,
          path_.average,
          model_.span(),
          path_.f_star,
          step_.value,
          step_.rate,
          path_.start_distance_sq,
          path_.client_convexity,
          pool_.num_threads()};
}

template class Experiment<float>;
template class Experiment<double>;

}  // namespace fl
