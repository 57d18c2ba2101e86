#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "clients/cuda/descent_step.cuh"
#include "clients/cuda/device_data.cuh"
#include "clients/cuda/minibatches.hpp"
#include "clients/cuda/network.hpp"
#include "clients/cuda/optimizer_steps.hpp"
#include "clients/cuda/parameter_places.cuh"
#include "clients/cuda/regression.hpp"
#include "clients/cuda/training.hpp"
#include "clients/learning/device_room.hpp"
#include "clients/learning/weights_first.hpp"
#include "fl_core/memory/buffer.hpp"
#include "fl_core/memory/cuda/memory.hpp"
#include "fl_core/ops/cuda/check.cuh"
#include "fl_core/ops/cuda/graph.hpp"
#include "fl_core/ops/cuda/measured_choice.hpp"
#include "fl_core/ops/cuda/plan.cuh"

namespace fl::cuda {
namespace {

constexpr std::size_t kMostRows = 512;                        // of a client in one piece, unless a minibatch must stay whole
constexpr std::size_t kMostEntries = std::size_t{1} << 31;    // of a client's activation: kernels count them in 32 bits
constexpr std::size_t kMostWaveBytes = std::size_t{2} << 30;  // of activations and weights
constexpr std::size_t kMostRegressionRows = 256;              // of a minibatch that one block of threads computes
constexpr std::size_t kMostRecordedKernels = 4000;            // approximate limit, of local steps that are repeated as one graph
constexpr unsigned kEntriesAThread = 4, kEntriesABlock = kBlockThreads * kEntriesAThread;

// ---- entries of all clients -----------------------------------------------------------------------------------------------------
//
// A block of threads handles kEntriesABlock entries of one client and calls use(client, entry) for each of them.

[[nodiscard]] std::size_t entry_blocks(std::size_t clients, std::size_t P) { return clients * ((P + kEntriesABlock - 1) / kEntriesABlock); }
template <class Use>
__device__ void for_each_entry(std::size_t clients, std::size_t P, const Use& use) {
  const std::size_t per_client = (P + kEntriesABlock - 1) / kEntriesABlock;
  for (std::size_t block = blockIdx.x; block < clients * per_client; block += gridDim.x) {
    const std::size_t k = block / per_client, first = (block - k * per_client) * kEntriesABlock + threadIdx.x;
    FL_UNROLL
    for (unsigned i = 0; i < kEntriesAThread; ++i)
      if (first + i * kBlockThreads < P) use(k, first + i * kBlockThreads);
  }
}

template <class T>
__global__ void spread(std::size_t clients, std::size_t P, const T* from, T* to) {
  for_each_entry(clients, P, [&](std::size_t k, std::size_t j) { to[k * P + j] = from[j]; });
}

// Adds the regulariser's derivative at y to g (stride 0: one y for all). rate [P], unless null, is above 0 at running averages.
template <class T>
__global__ void add_regulariser(std::size_t clients, std::size_t P, Regulariser regulariser, const T* rate, const T* y, std::size_t stride,
                                T* g) {
  for_each_entry(clients, P, [&](std::size_t k, std::size_t j) {
    if (rate == nullptr || rate[j] == T(0)) g[k * P + j] += static_cast<T>(regulariser.derivative(static_cast<double>(y[k * stride + j])));
  });
}

// Clears the entries of running averages, which are no part of a full gradient.
template <class T>
__global__ void clear_averages(std::size_t clients, std::size_t P, const T* rate, T* g) {
  for_each_entry(clients, P, [&](std::size_t k, std::size_t j) {
    if (rate[j] > T(0)) g[k * P + j] = T(0);
  });
}

// Takes one step of the clients that have a further one.
template <class T>
__global__ void take_step(std::size_t clients, std::size_t P, DescentStep<T> step, const T* g, T* v, T* y) {
  for_each_entry(clients, P, [&](std::size_t k, std::size_t j) {
    const std::size_t at = k * P + j;
    y[at] = step.taken(j, g[at], y[at], v == nullptr ? nullptr : v + at);
  });
}

// Copies the client's own values [clients,U], by position in the block, to y: all of them, or its weights alone.
template <class T>
__global__ void read_own(std::size_t clients, std::size_t P, PlacedEntries<T> entries, BatchView<const T> own, const std::uint32_t* place,
                         bool weights_alone, T* y) {
  for_each_entry(clients, entries.U, [&](std::size_t k, std::size_t u) {
    if (!weights_alone || entries.rate[u] == T(0)) y[k * P + entries.at[u]] = own.row(place[k])[u];
  });
}
// Writes the client's own values after its work: those of y, or (w unless null) one step from them along the gradient y at w.
template <class T>
__global__ void write_own(std::size_t clients, std::size_t P, PlacedEntries<T> entries, const T* w, const T* gamma, const T* y,
                          BatchView<T> own, const std::uint32_t* place, std::uint8_t* refused) {
  for_each_entry(clients, entries.U, [&](std::size_t k, std::size_t u) {
    const std::size_t j = entries.at[u];
    const T g = y[k * P + j], rate = entries.rate[u];
    T& x = own.row(place[k])[u];
    x = w == nullptr ? g : rate > T(0) ? x - rate * (g + (x - w[j])) : x - *gamma * g;
    if (!(x - x == T(0))) refused[place[k]] = 1;
  });
}

// Writes the vector that is sent, g or per_work_k (w - y), to the client's position in the block; 0 where parameters are not shared. Sets
// refused to 1 for a client with an entry that is not finite.
template <class T>
__global__ void write_vectors(std::size_t clients, std::size_t P, const T* w, const T* from, const T* per_work, PlacedEntries<T> entries,
                              BatchView<T> out, const std::uint32_t* place, std::uint8_t* refused) {
  for_each_entry(clients, P, [&](std::size_t k, std::size_t j) {
    T x = from[k * P + j];
    if (w != nullptr) x = per_work == nullptr ? w[j] - x : per_work[k] * (w[j] - x);
    if (entries.is_unshared != nullptr && entries.is_unshared[j] != 0) x = T(0);
    out.row(place[k])[entries.place_of == nullptr ? j : entries.place_of[j]] = x;
    if (!(x - x == T(0))) refused[place[k]] = 1;  // all threads that write here write the same value
  });
}
template <class T>
__global__ void clear_refused(std::size_t clients, std::size_t P, BatchView<T> out, const std::uint32_t* place,
                              const std::uint8_t* refused) {
  for_each_entry(clients, P, [&](std::size_t k, std::size_t j) {
    if (refused[place[k]] != 0) out.row(place[k])[j] = T(0);
  });
}

// ---- a block of clients ---------------------------------------------------------------------------------------------------------

// The minibatches of clients first .. first+clients-1 on the GPU. A step consists of pieces of up to kMostRows positions per client, and a
// position holds a row or kNoRow.
struct Piece {
  std::size_t places;        // per client: B
  const std::uint32_t* row;  // [clients, B]
};
struct PlannedStep {
  std::size_t clients;  // that take the step
  std::vector<Piece> pieces;
  const double* scale;         // [clients] 1 / rows of the minibatch
  const RandomStream* random;  // [clients], or null if the network draws no random numbers
};

// The optimizer that steps along gradients in memory, or null, and the model's tensors in the order of layers.
template <class T>
struct OptimizerUse {
  const LocalOptimizer<T>* rule;
  LayerTable layers;
};

// A block with the data that all its waves read, on the GPU.
template <class T>
struct TrainingBlock {
  const RoundView<T>* round;
  const ClientBlock<T>* block;
  const KeptStates<T>* kept;
  const Minibatches* batches;
  const T *w = nullptr, *gamma = nullptr, *per_work = nullptr;
  const std::uint32_t* place = nullptr;
  std::uint8_t* refused = nullptr;
};

template <class T>
class Training final : public DeviceTraining<T> {
 public:
  Training(const Descent& descent, const NetworkForm& form, const Dataset<T>& data, const GradientOracle<T>& oracle,
           MatrixProducts products, const ParameterKinds& kinds, const LocalOptimizer<T>* optimizer)
      : descent_(descent),
        optimizer_{optimizer, {}},
        form_(form),
        network_(form),
        examples_(form, data),
        oracle_(oracle),
        products_(products),
        piece_rows_(form.takes_whole_minibatches ? std::max<std::size_t>(most_rows(oracle), 1) : kMostRows),
        places_(form, kinds) {
    const std::size_t rows = most_rows(oracle);
    if (descent.moves && optimizer == nullptr && kinds.unshared.empty() && rows <= kMostRegressionRows && reads_in_place(examples_.rows()))
      regression_ = as_regression<T>(form, rows);
    if (optimizer != nullptr) optimizer_.layers = in_order_of_layers(oracle.model().layers(), places_.layer_order());
  }

  void run(const Exec& exec, ThreadPool& pool, const RoundView<T>& round, const ClientBlock<T>& block, const KeptStates<T>& kept,
           std::span<std::uint8_t> refused) override {
    const Minibatches batches = draw_minibatches(pool, oracle_, descent_, round.order.round, block.clients);
    if (form_.takes_whole_minibatches) check_entries(batches.largest());
    Workspace::Frame frame(*exec.workspace);
    TrainingBlock<T> there{&round, &block, &kept, &batches};
    std::vector<T> ordered(places_.rate() == nullptr ? 0 : round.P());
    if (places_.rate() != nullptr) put_in_order_of_layers<T>(form_.running_averages, round.P(), block.start.row(0), ordered.data());
    there.w = upload(exec, std::span<const T>(places_.rate() == nullptr ? block.start.row(0) : ordered.data(), round.P()), frame);
    const T gamma = static_cast<T>(round.order.step_size);
    there.gamma = upload(exec, std::span<const T>(&gamma, 1), frame);
    there.place = upload(exec, std::span<const std::uint32_t>(batches.place), frame);
    there.per_work = normalise(exec, round, block, batches, frame);
    there.refused = frame.take<std::uint8_t>(block.K);
    FL_CUDA_CHECK(cudaMemsetAsync(there.refused, 0, block.K, stream_of(exec)));
    timer_.start(exec);
    const std::size_t wave = clients_at_once(batches);
    for (std::size_t first = 0; first < block.K; first += wave)
      train_wave(exec, there, first, std::min<std::size_t>(wave, block.K - first));
    if (!wave_choice_.is_made()) note_time(timer_.stop(exec) / static_cast<double>(std::max<std::size_t>(batches.rows.size(), 1)));
    ::fl::copy_bytes(refused.data(), Device::cpu, there.refused, Device::cuda, block.K, exec.stream);
  }

  [[nodiscard]] bool can_start_at(const RunSettings& run) const override {
    // mu (y - w) with each client's w, or a rule that may read w
    const bool needs_own_start = places_.keeps_weights() && descent_.moves && (descent_.proximal_mu > 0 || optimizer_.rule != nullptr);
    return run.offset_slot.empty() && !needs_own_start;
  }
  [[nodiscard]] std::size_t size_bytes() const override { return examples_.size_bytes() + places_.size_bytes(); }
  [[nodiscard]] std::size_t room_bytes(std::size_t clients) const override {
    const std::size_t each = bytes_per_client(most_rows(oracle_));
    const std::size_t examples = std::min(most_rows(oracle_), piece_rows_) * examples_.per_row();
    return std::min(kMostWaveBytes, clients * each) + each + product_bytes(form_, clients, examples, sizeof(T));
  }

 private:
  void check_entries(std::size_t rows) const {
    if (rows * examples_.per_row() * network_.widest() < kMostEntries) return;
    const std::size_t bytes = rows * examples_.per_row() * network_.entries_per_example() * sizeof(T);
    throw ConfigError("local.batch: batch_norm computes all rows of a minibatch at once; " + std::to_string(rows) + " rows would take " +
                      std::to_string(bytes >> 20) + " MiB of a GPU, and a layer's output of them has more than " +
                      std::to_string(kMostEntries) + " entries, which its kernels cannot count; use a smaller batch or --device cpu");
  }

  void train_wave(const Exec& exec, const TrainingBlock<T>& there, std::size_t first, std::size_t clients) {
    const std::size_t P = there.round->P();
    Workspace::Frame frame(*exec.workspace);
    const T* result = !descent_.moves              ? gradients(exec, there, first, clients, frame)
                      : regression_                ? descend_on_chip(exec, there, first, clients, frame)
                      : optimizer_.rule == nullptr ? descend(exec, there, first, clients, frame)
                                                   : descend_by_optimizer(exec, there, first, clients, frame);
    const T* per_work = there.per_work == nullptr ? nullptr : there.per_work + first;
    const BatchView<T>& out = there.block->vectors[0];
    const std::size_t blocks = entry_blocks(clients, P);
    if (const BatchView<T>& own = there.block->own; own.P > 0)
      Launch(exec, "write_own", entry_blocks(clients, own.P))(write_own<T>, clients, P, places_.entries(),
                                                              descent_.moves ? nullptr : there.w, there.gamma, result, own,
                                                              there.place + first, there.refused);
    Launch(exec, "write_vectors", blocks)(write_vectors<T>, clients, P, descent_.moves ? there.w : nullptr, result, per_work,
                                          places_.entries(), out, there.place + first, there.refused);
    Launch(exec, "clear_refused", blocks)(clear_refused<T>, clients, P, out, there.place + first, there.refused);
  }

  // Requires an optimizer that knows its work, as the local update's traits say.
  [[nodiscard]] double work_of_steps(std::uint32_t steps, double gamma) const {
    return optimizer_.rule == nullptr ? work_of(descent_, steps, gamma) : optimizer_.rule->work(steps).value();
  }
  // Sets block.work and returns 1 / work of every client on the GPU, or null if vectors are not normalised.
  const T* normalise(const Exec& exec, const RoundView<T>& round, const ClientBlock<T>& block, const Minibatches& batches,
                     Workspace::Frame& frame) const {
    std::vector<T> per_work;
    for (std::uint32_t k = 0; k < block.K; ++k) {
      double& work = block.work[batches.place[k]];
      work = round.run.normalises() && descent_.moves ? work_of_steps(batches.count[k], round.order.step_size) : 1;
      per_work.push_back(static_cast<T>(1 / work));
    }
    return round.run.normalises() ? upload(exec, std::span<const T>(per_work), frame) : nullptr;
  }

  // Reports the time of the current choice from its second turn on. The choice counts times from the third turn on: in the first turn the
  // workspace grows, and in the second it becomes one piece at other addresses. The third turn records the steps and the fourth repeats
  // them.
  void note_time(double seconds_per_row) {
    if (std::exchange(way_before_, wave_choice_.way()) == wave_choice_.way()) wave_choice_.took(seconds_per_row);
  }

  // Returns the number of clients in a wave. A wave has the largest size, or a size whose weights and activations stay in the cache:
  // whichever was faster.
  [[nodiscard]] std::size_t clients_at_once(const Minibatches& batches) const {
    const std::size_t rows = batches.largest(), way = wave_choice_.way();
    const bool has_g = !steps_in_passing() || rows > piece_rows_;
    const std::size_t fits = way == 0 ? kMostWaveBytes / bytes_per_client(rows)
                                      : (cache_bytes_ << (way - 1)) / bytes_per_client(rows, 1 + (has_g ? 1 : 0) + num_states());
    return std::clamp<std::size_t>(fits, 1, batches.K);
  }
  [[nodiscard]] bool has_v() const { return descent_.momentum > 0; }
  [[nodiscard]] std::size_t num_states() const { return optimizer_.rule == nullptr ? (has_v() ? 1 : 0) : optimizer_.rule->num_states(); }
  [[nodiscard]] std::size_t bytes_per_client(std::size_t rows) const {
    return bytes_per_client(rows, optimizer_.rule == nullptr ? 3 : 2 + num_states());
  }
  // Returns the bytes of activations and of `vectors` vectors (y, g and the optimizer's) for minibatches of up to `rows` rows.
  [[nodiscard]] std::size_t bytes_per_client(std::size_t rows, std::size_t vectors) const {
    const std::size_t P = oracle_.model().layers().size();
    if (regression_) return 2 * P * sizeof(T) + 1;
    return (std::min(rows, piece_rows_) * examples_.per_row() * network_.entries_per_example() + vectors * P) * sizeof(T) + 1;
  }

  // Uploads all row numbers, factors and streams in a few copies, so that steps follow each other without waiting for the host.
  std::vector<PlannedStep> plan(const Exec& exec, const TrainingBlock<T>& there, std::size_t first, std::size_t clients,
                                Workspace::Frame& frame) const {
    const Minibatches& batches = *there.batches;
    const std::uint32_t round = there.round->order.round;
    std::vector<std::uint32_t> row;
    std::vector<double> scale;
    std::vector<RandomStream> random;
    const bool draws = (network_.draws() || examples_.draws()) && descent_.draws;
    for (std::uint32_t step = 0; step < batches.steps(); ++step) {
      const std::size_t end = first + batches.that_take(step, first, clients);
      for (std::size_t k = first; draws && k < end; ++k)
        random.push_back(oracle_.inner_random(there.block->clients[batches.place[k]], {.round = round, .step = step}));
      for (std::size_t k = first; k < end; ++k)
        scale.push_back(1 / static_cast<double>(std::max<std::size_t>(batches.of(step, k).size(), 1)));
      const std::size_t most = batches.largest(step, first, end - first);
      for (std::size_t from = 0; from < most; from += piece_rows_) {
        const std::size_t B = std::min(piece_rows_, most - from);
        for (std::size_t k = first; k < end; ++k) {
          const std::span<const std::uint32_t> rows = batches.of(step, k);
          const std::size_t here = rows.size() > from ? std::min(B, rows.size() - from) : 0;
          row.insert(row.end(), rows.begin() + static_cast<std::ptrdiff_t>(here > 0 ? from : 0),
                     rows.begin() + static_cast<std::ptrdiff_t>(here > 0 ? from + here : 0));
          row.insert(row.end(), B - here, kNoRow);
        }
      }
    }
    const std::uint32_t* row_there = upload(exec, std::span<const std::uint32_t>(row), frame);
    const double* scale_there = upload(exec, std::span<const double>(scale), frame);
    const RandomStream* random_there = draws ? upload(exec, std::span<const RandomStream>(random), frame) : nullptr;
    std::vector<PlannedStep> steps;
    for (std::uint32_t step = 0; step < batches.steps(); ++step) {
      const std::size_t active = batches.that_take(step, first, clients);
      if (active == 0) break;
      PlannedStep planned{active, {}, scale_there, random_there};
      const std::size_t most = batches.largest(step, first, active);
      for (std::size_t from = 0; from < most; from += piece_rows_) {
        const std::size_t B = std::min(piece_rows_, most - from);
        planned.pieces.push_back({B, row_there});
        row_there += active * B;
      }
      scale_there += active;
      if (draws) random_there += active;
      steps.push_back(std::move(planned));
    }
    return steps;
  }

  // Returns gradients at w, or at w with the weights that clients keep: [clients,P].
  const T* gradients(const Exec& exec, const TrainingBlock<T>& there, std::size_t first, std::size_t clients, Workspace::Frame& frame) {
    const std::size_t P = there.round->P();
    const std::vector<PlannedStep> steps = plan(exec, there, first, clients, frame);
    T* g = frame.take<T>(clients * P);
    T* x = places_.keeps_weights() ? frame.take<T>(clients * P) : nullptr;
    if (x != nullptr) begin_at(exec, there, first, clients, true, x);
    gradient(exec, steps[0], x == nullptr ? LayerWeights<T>{there.w, 0} : LayerWeights<T>{x, P}, g);
    return g;
  }

  // Writes w, with each client's own values in it, to y [clients,P].
  void begin_at(const Exec& exec, const TrainingBlock<T>& there, std::size_t first, std::size_t clients, bool weights_alone, T* y) const {
    const std::size_t P = there.round->P();
    Launch(exec, "spread", entry_blocks(clients, P))(spread<T>, clients, P, there.w, y);
    if (const BatchView<T>& own = there.block->own; own.P > 0)
      Launch(exec, "read_own", entry_blocks(clients, own.P))(read_own<T>, clients, P, places_.entries(), BatchView<const T>(own),
                                                             there.place + first, weights_alone, y);
  }

  // Returns y after all steps of the optimizer, from w: [clients,P]. An optimizer's own launches are not recorded: it may compute on the
  // host from the number of the step.
  const T* descend_by_optimizer(const Exec& exec, const TrainingBlock<T>& there, std::size_t first, std::size_t clients,
                                Workspace::Frame& frame) {
    const std::size_t P = there.round->P();
    T *y = frame.take<T>(clients * P), *g = frame.take<T>(clients * P);
    const std::vector<PlannedStep> steps = plan(exec, there, first, clients, frame);
    begin_at(exec, there, first, clients, false, y);
    OptimizerSteps<T> optimizer(exec, {*optimizer_.rule, descent_, optimizer_.layers, places_.averages()}, *there.kept, clients, there.w,
                                there.place + first, frame);
    for (const PlannedStep& step : steps) {
      gradient(exec, step, LayerWeights<T>{y, P}, g);
      optimizer.step(exec, step.clients, there.round->order.step_size, g, y);
    }
    optimizer.close(exec);
    return y;
  }

  // Returns y after all steps, from w: [clients,P].
  const T* descend(const Exec& exec, const TrainingBlock<T>& there, std::size_t first, std::size_t clients, Workspace::Frame& frame) {
    const std::size_t P = there.round->P(), entries = clients * P;
    T *y = frame.take<T>(entries), *v = has_v() ? frame.take<T>(entries) : nullptr;
    const std::vector<PlannedStep> steps = plan(exec, there, first, clients, frame);
    const bool needs_g = std::any_of(steps.begin(), steps.end(), [this](const PlannedStep& step) { return !steps_in_passing(step); });
    T* g = needs_g ? frame.take<T>(entries) : nullptr;
    const DescentStep<T> how(descent_, there.gamma, there.w, places_.rate());
    const auto take_steps = [&] {
      begin_at(exec, there, first, clients, false, y);
      if (v != nullptr) FL_CUDA_CHECK(cudaMemsetAsync(v, 0, entries * sizeof(T), stream_of(exec)));
      for (const PlannedStep& step : steps) {
        if (steps_in_passing(step)) {
          pass_over(exec, step, 0, LayerWeights<T>{y, P}, GradientStore<T>::step(how, y, v, P));
          continue;
        }
        gradient(exec, step, LayerWeights<T>{y, P}, g);
        Launch(exec, "take_step", entry_blocks(step.clients, P))(take_step<T>, step.clients, P, how, g, v, y);
      }
    };
    if (num_kernels(steps) <= kMostRecordedKernels)
      repeated_.run(exec, key_of(exec, how, steps, clients, y, there.block->own.data, there.place + first), take_steps);
    else
      take_steps();
    return y;
  }

  // Computes the same by one kernel, for a regression.
  const T* descend_on_chip(const Exec& exec, const TrainingBlock<T>& there, std::size_t first, std::size_t clients,
                           Workspace::Frame& frame) const {
    const Minibatches& batches = *there.batches;
    const std::size_t entries = clients * there.round->P();
    T *y = frame.take<T>(entries), *v = has_v() ? frame.take<T>(entries) : nullptr;
    if (v != nullptr) FL_CUDA_CHECK(cudaMemsetAsync(v, 0, entries * sizeof(T), stream_of(exec)));
    const RegressionBatches rows{upload(exec, std::span<const std::uint32_t>(batches.count).subspan(first, clients), frame),
                                 upload(exec, std::span<const std::uint32_t>(batches.rows), frame),
                                 upload(exec, std::span<const std::uint64_t>(batches.begin), frame) + first, batches.K};
    descend_regression(exec, *regression_, examples_.rows(), rows, most_rows(oracle_), clients,
                       DescentStep<T>(descent_, there.gamma, there.w, nullptr), oracle_.model().regulariser(), v, y);
    return y;
  }

  [[nodiscard]] std::size_t num_kernels(const std::vector<PlannedStep>& steps) const {
    std::size_t passes = 0;
    for (const PlannedStep& step : steps) passes += step.pieces.size();
    return passes * (network_.num_kernels() + 2) + steps.size();
  }

  // Returns the arguments of the steps' kernels: sizes, factors and addresses. The current address in the workspace and its number of
  // growths determine all later addresses.
  [[nodiscard]] std::vector<std::uint64_t> key_of(const Exec& exec, const DescentStep<T>& how, const std::vector<PlannedStep>& steps,
                                                  std::size_t clients, const T* y, const T* own, const std::uint32_t* place) const {
    Workspace::Frame here(*exec.workspace);
    const auto address = [](const void* p) { return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(p)); };
    std::vector<std::uint64_t> key{
        clients, address(how.gamma), address(how.w), address(y), address(here.take<std::byte>(1)), exec.workspace->generation()};
    if (own != nullptr) key.insert(key.end(), {address(own), address(place)});
    for (const PlannedStep& step : steps) {
      key.insert(key.end(), {step.clients, step.pieces.size(), address(step.scale), address(step.random)});
      for (const Piece& piece : step.pieces) key.insert(key.end(), {piece.places, address(piece.row)});
    }
    return key;
  }

  // Computes g = the gradients of the clients' minibatches at their weights: [step.clients,P].
  void gradient(const Exec& exec, const PlannedStep& step, LayerWeights<T> y, T* g) const {
    const std::size_t P = oracle_.model().layers().size(), clients = step.clients;
    if (step.pieces.empty()) FL_CUDA_CHECK(cudaMemsetAsync(g, 0, clients * P * sizeof(T), stream_of(exec)));
    for (std::size_t i = 0; i < step.pieces.size(); ++i)
      pass_over(exec, step, i, y, i == 0 ? GradientStore<T>::set(g, P) : GradientStore<T>::add(g, P));
    if (places_.rate() != nullptr && !descent_.draws)
      Launch(exec, "clear_averages", entry_blocks(clients, P))(clear_averages<T>, clients, P, places_.rate(), g);
    const Regulariser& regulariser = oracle_.model().regulariser();
    if (regulariser.l2 != 0 || regulariser.nonconvex != 0)
      Launch(exec, "add_regulariser", entry_blocks(clients, P))(add_regulariser<T>, clients, P, regulariser, places_.rate(), y.data,
                                                                y.stride, g);
  }

  // Returns whether layers may take the step where they compute the gradient, because nothing else contributes to it.
  [[nodiscard]] bool steps_in_passing() const {
    const Regulariser& regulariser = oracle_.model().regulariser();
    return optimizer_.rule == nullptr && places_.rate() == nullptr && regulariser.l2 == 0 && regulariser.nonconvex == 0;
  }
  [[nodiscard]] bool steps_in_passing(const PlannedStep& step) const { return steps_in_passing() && step.pieces.size() == 1; }

  // Runs forward and backward through piece i of the step.
  void pass_over(const Exec& exec, const PlannedStep& step, std::size_t i, LayerWeights<T> y, const GradientStore<T>& by_weights) const {
    Workspace::Frame inner(*exec.workspace);
    const Piece& piece = step.pieces[i];
    const std::size_t clients = step.clients, E = examples_.per_row();
    const LayerPass pass{.exec = exec,
                         .clients = clients,
                         .B = piece.places * E,
                         .random = step.random,
                         .row = E == 1 ? piece.row : nullptr,
                         .first = i * piece_rows_ * E,
                         .products = products_};
    const auto tape = network_.open(inner, pass.examples());
    examples_.make(exec, piece.row, clients, piece.places, step.random, i * piece_rows_, tape.activation[0]);
    const T* z = network_.forward(pass, y, tape);
    examples_.slopes(exec, piece.row, clients, piece.places, step.scale, z, network_.slope_of_output(tape));
    network_.backward(pass, y, tape, by_weights);
  }

  Descent descent_;
  OptimizerUse<T> optimizer_;
  NetworkForm form_;
  DeviceNetwork<T> network_;
  DeviceExamples<T> examples_;
  const GradientOracle<T>& oracle_;
  MatrixProducts products_;
  std::size_t piece_rows_;  // of a client in one piece; gradients of longer minibatches are added up
  ParameterPlaces<T> places_;
  std::optional<RegressionForm> regression_;
  std::size_t cache_bytes_ = cache_bytes_of_device();
  MeasuredChoice wave_choice_{3};
  std::size_t way_before_ = std::numeric_limits<std::size_t>::max();  // of the previous turn
  StreamTimer timer_;
  RepeatedWork repeated_;
};

}  // namespace

template <class T>
std::unique_ptr<DeviceTraining<T>> make_training(const Descent& descent, const NetworkForm& form, const Dataset<T>& data,
                                                 const GradientOracle<T>& oracle, MatrixProducts products, const ParameterKinds& kinds,
                                                 const LocalOptimizer<T>* optimizer) {
  return std::make_unique<Training<T>>(descent, form, data, oracle, products, kinds, optimizer);
}
template std::unique_ptr<DeviceTraining<float>> make_training(const Descent&, const NetworkForm&, const Dataset<float>&,
                                                              const GradientOracle<float>&, MatrixProducts, const ParameterKinds&,
                                                              const LocalOptimizer<float>*);
template std::unique_ptr<DeviceTraining<double>> make_training(const Descent&, const NetworkForm&, const Dataset<double>&,
                                                               const GradientOracle<double>&, MatrixProducts, const ParameterKinds&,
                                                               const LocalOptimizer<double>*);

}  // namespace fl::cuda
