#include "scenarios/experiment/client_side.hpp"

#include <algorithm>
#include <vector>

#include "clients/learning/device_room.hpp"
#include "fl_core/config/key_error.hpp"
#include "fl_core/memory/device_memory.hpp"

namespace fl {

template <class T>
ClientSide<T>::ClientSide(const Scenario& scenario, FederatedProblem<T>& problem, const RunMethod<T>& method, const RunSettings& run,
                          SharedReplica<T> shared, CohortSizes cohort, const ClientPlace& place, ThreadPool& pool)
    : method_(method), run_(run), place_(place), pool_(pool) {
  const std::size_t N = run.num_clients;
  state_ = std::make_unique<ClientState<T>>(N, cohort.most, run.P, place.paging, cohort.likely, place.memory);
  state_->allow_waves(cohort.waves);
  declare_slots<T>(method, run, {.clients = state_.get()});
  SamplingOptions sampling = method.local->step_settings().sampling;
  sampling.sample_file = problem.find_input("local.sample_file", sampling.sample_file);
  about_key("local.kind", [&] {
    oracle_ = std::make_unique<GradientOracle<T>>(problem.model(), problem.shards(), sampling, run.seeds.sampling,
                                                  static_cast<std::uint32_t>(scenario.rounds), problem.row_counts());
    check_minibatches(*method.local, *oracle_, place.measures_gradients);
  });
  static_assert(static_cast<int>(PublishedMetrics::ec_sgd) == static_cast<int>(EvaluateOptions::PublishedMetrics::ec_sgd));
  runner_ = std::make_unique<BlockRunner<T>>(
      BlockRunnerParts<T>{*method.local, *method.feedback, method.exchange, oracle_.get(), pool, *state_, shared.slots,
                          method.postprocessor.for_clients()},
      cohort.most,
      BlockRunnerOptions{.block = place.block,
                         .materialise = place.materialise,
                         .published_metrics = static_cast<PublishedMetrics>(static_cast<int>(scenario.evaluate.published_metrics)),
                         .device = place.device,
                         .memory = place.memory,
                         .trains_on_cpu = place.trains_on_cpu,
                         .products = scenario.matrix_products,
                         .kinds = run.kinds,
                         .times = place.times});
  state_->bound_memory(room_for_state());
  const AbsenceRule absence = absence_rule(scenario, method, run);
  const bool runs_memory_sum = cohort.waves == 1 && !absence.slot.empty() &&
                               MemorySum<T>::pays_to_run(N, cohort.likely, static_cast<std::uint64_t>(scenario.evaluate.every));
  process_ = std::make_unique<ClientProcess<T>>(ClientParts<T>{run, *method.feedback, method.exchange, *state_, shared, *runner_, pool},
                                                absence, runs_memory_sum, cohort.waves);
}

template <class T>
void ClientSide<T>::prepare(std::span<const double> x_star) {
  if (!method_.local->traits().needs_optimum) return;
  const std::vector<T> at(x_star.begin(), x_star.end());
  method_.local->prepare(pool_.exec(0), *oracle_, *state_, at.data());
}

// Returns the GPU bytes left for client state after per-round buffers. The data are already loaded.
template <class T>
std::uint64_t ClientSide<T>::room_for_state() const {
  if (place_.device == Device::cpu) return kNoBound;
  const std::uint64_t free = free_bytes_of(place_.memory), share = place_.device_bytes == 0 ? free : place_.device_bytes;
  const std::uint64_t room = std::min(free, share);
  return room - std::min(room, most_bytes_on_device() + place_.others_bytes);
}

template <class T>
void ClientSide<T>::require_nothing_after(std::uint64_t round) const {
  for (std::uint32_t client = 0; client < state_->num_clients(); ++client)
    if (state_->acknowledged(client) > round)
      throw ArchiveError("in 'state': client " + std::to_string(client) + " took part in round " +
                         std::to_string(state_->acknowledged(client)) + ", the run has played " + std::to_string(round));
}

template <class T>
std::uint64_t ClientSide<T>::growth_bytes(double draws) const {
  const std::size_t N = state_->num_clients();
  double met = 0;
  for (std::uint32_t i = 0; i < N; ++i) met += state_->acknowledged(i) > 0 ? 1 : 0;
  const double will_meet = std::min(static_cast<double>(N), draws);
  const auto frames = static_cast<double>(state_->num_frames());
  return static_cast<std::uint64_t>((std::min(will_meet, frames) - std::min(met, frames)) * static_cast<double>(state_->client_bytes()));
}

template class ClientSide<float>;
template class ClientSide<double>;

}  // namespace fl
