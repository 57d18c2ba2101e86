#include <algorithm>
#include <numeric>
#include <vector>

#include "clients/cuda/device_data.cuh"
#include "clients/cuda/network.hpp"
#include "clients/cuda/training.hpp"
#include "fl_core/buffer.hpp"
#include "fl_core/cuda/check.cuh"
#include "fl_core/cuda/memory.hpp"
#include "fl_core/cuda/plan.cuh"

namespace fl::cuda {
namespace {

constexpr std::size_t kMostRows = 512;                    // of a client in one piece
constexpr std::size_t kWaveBytes = std::size_t{2} << 30;  // of activations and weights

// ---- steps --------------------------------------------------------------------------------------------------------------------

template <class T>
__global__ void spread(std::size_t clients, std::size_t P, const T* from, T* to) {
  for (std::size_t i = thread_index(); i < clients * P; i += num_threads()) to[i] = from[i % P];
}

// g += the regulariser's derivative at y (stride 0: the same for all). rate [P], unless null, is above 0 at statistics.
template <class T>
__global__ void add_regulariser(std::size_t clients, std::size_t P, Regulariser regulariser, const T* rate, const T* y, std::size_t stride,
                                T* g) {
  for (std::size_t i = thread_index(); i < clients * P; i += num_threads())
    if (rate == nullptr || rate[i % P] == T(0))
      g[i] += static_cast<T>(regulariser.derivative(static_cast<double>(y[i / P * stride + i % P])));
}

// Statistics have no part in a full gradient.
template <class T>
__global__ void clear_statistics(std::size_t clients, std::size_t P, const T* rate, T* g) {
  for (std::size_t i = thread_index(); i < clients * P; i += num_threads())
    if (rate[i % P] > T(0)) g[i] = T(0);
}

// One step of the clients that have one: v = beta v + g + decay y + mu (y - w), y -= gamma v.
template <class T>
struct Step {
  T gamma, decay, momentum, proximal;
  const T* w;     // [P]
  const T* rate;  // [P], or null: above 0 at statistics, which move by it alone
};
template <class T>
__global__ void take_step(std::size_t clients, std::size_t P, Step<T> step, T* g, T* v, T* y) {
  for (std::size_t i = thread_index(); i < clients * P; i += num_threads()) {
    if (step.rate != nullptr && step.rate[i % P] > T(0)) {
      y[i] -= step.rate[i % P] * g[i];
      continue;
    }
    T direction = g[i];
    if (step.decay > T(0)) direction += step.decay * y[i];
    if (step.proximal > T(0)) direction += step.proximal * (y[i] - step.w[i % P]);
    if (v != nullptr) direction = v[i] = step.momentum * v[i] + direction;
    y[i] -= step.gamma * direction;
  }
}

// What is sent: g, or per_work_k (w - y), to the client's place of the block. One block of threads per client; `refused` says whose is not
// finite, and becomes zeros.
template <class T>
__global__ void write_vectors(std::size_t P, const T* w, const T* from, const T* per_work, BatchView<T> out, const std::uint32_t* place,
                              std::uint32_t count, std::uint8_t* refused) {
  for (std::size_t k = blockIdx.x; k < count; k += gridDim.x) {
    T* to = out.row(place[k]);
    bool finite = true;
    for (std::size_t j = threadIdx.x; j < P; j += blockDim.x) {
      T x = from[k * P + j];
      if (w != nullptr) x = per_work == nullptr ? w[j] - x : per_work[k] * (w[j] - x);
      finite = finite && x - x == T(0);
      to[j] = x;
    }
    __shared__ unsigned spoilt;
    if (threadIdx.x == 0) spoilt = 0;
    __syncthreads();
    if (!finite) atomicAdd(&spoilt, 1u);
    __syncthreads();
    if (spoilt > 0)
      for (std::size_t j = threadIdx.x; j < P; j += blockDim.x) to[j] = T(0);
    if (threadIdx.x == 0) refused[place[k]] = spoilt > 0 ? 1 : 0;
    __syncthreads();
  }
}

// ---- a block of clients ---------------------------------------------------------------------------------------------------------

// The minibatches of a block, drawn on the host, of clients in the order in which they are computed: those with most steps first, so that
// the ones that have another step are the first ones, and then those with most rows, so that neighbours are alike. Of client k in step t:
// the rows begin[t*K + k] .. begin[t*K + k + 1] - 1 of `rows`.
struct Minibatches {
  std::size_t K = 0;
  std::vector<std::uint32_t> place;  // [K] of each client in the block
  std::vector<std::uint32_t> count;  // [K] steps of each, descending
  std::vector<std::uint32_t> rows;
  std::vector<std::size_t> begin;  // [steps*K + 1]
  [[nodiscard]] std::uint32_t steps() const { return count.empty() ? 0 : count.front(); }
  [[nodiscard]] std::span<const std::uint32_t> of(std::uint32_t step, std::size_t k) const {
    const std::size_t at = step * K + k;
    return std::span(rows).subspan(begin[at], begin[at + 1] - begin[at]);
  }
  [[nodiscard]] std::size_t largest(std::uint32_t step, std::size_t first, std::size_t clients) const {
    std::size_t most = 0;
    for (std::size_t k = first; k < first + clients; ++k) most = std::max(most, of(step, k).size());
    return most;
  }
  // How many of clients first .. first+clients-1 take this step; they are the first of them.
  [[nodiscard]] std::size_t that_take(std::uint32_t step, std::size_t first, std::size_t clients) const {
    std::size_t active = 0;
    while (active < clients && count[first + active] > step) ++active;
    return active;
  }
};

// Where the minibatches of clients first .. first+clients-1 lie on the GPU: a step is made of pieces of up to kMostRows places of each
// client, and a place holds a row or kNoRow.
struct Piece {
  std::size_t places;        // of each client: B
  const std::uint32_t* row;  // [clients, B]
};
struct PlannedStep {
  std::size_t clients;  // that take it
  std::vector<Piece> pieces;
  const double* scale;         // [clients] 1 / rows of the minibatch
  const RandomStream* random;  // [clients], or null where the network draws none
};

template <class T>
class Training final : public DeviceTraining<T> {
 public:
  Training(const Descent& descent, const NetworkForm& form, const Dataset<T>& data, const GradientOracle<T>& oracle)
      : descent_(descent),
        network_(form),
        examples_(form, data),
        oracle_(oracle),
        most_rows_(!descent.draws && form.full_piece > 0 ? form.full_piece : kMostRows) {
    if (oracle.statistics().empty()) return;
    std::vector<T> rate(form.size);
    for (const auto& statistic : oracle.statistics())
      std::fill(rate.begin() + static_cast<std::ptrdiff_t>(statistic.begin), rate.begin() + static_cast<std::ptrdiff_t>(statistic.end),
                static_cast<T>(statistic.rate));
    rate_ = Buffer<T>(rate.size(), Device::cuda);
    ::fl::copy_bytes(rate_.data(), Device::cuda, rate.data(), Device::cpu, rate.size() * sizeof(T), nullptr);
  }

  void run(const Exec& exec, const Exec& host, const RoundContext<T>& context, const ClientBlock<T>& block,
           std::span<std::uint8_t> refused) override {
    const Minibatches batches = draw(host, context, block);
    Workspace::Frame frame(*exec.workspace);
    const T* w = upload(exec, std::span<const T>(context.reference, context.P), frame);
    const auto* place = upload(exec, std::span<const std::uint32_t>(batches.place), frame);
    auto* refused_there = frame.take<std::uint8_t>(block.K);
    const T* per_work = normalise(exec, context, block, batches, frame);
    const std::size_t wave = clients_at_once(batches);
    for (std::size_t first = 0; first < block.K; first += wave) {
      const std::size_t clients = std::min<std::size_t>(wave, block.K - first);
      Workspace::Frame inner(*exec.workspace);
      const std::vector<PlannedStep> steps = plan(exec, context, block, batches, first, clients, inner);
      const T* result =
          descent_.moves ? descend(exec, context, steps, clients, w, inner) : gradient(exec, steps[0], LayerWeights<T>{w, 0}, inner);
      Launch(exec, "write_vectors", clients)(write_vectors<T>, context.P, descent_.moves ? w : nullptr, result,
                                             per_work == nullptr ? nullptr : per_work + first, block.vectors[0], place + first,
                                             static_cast<std::uint32_t>(clients), refused_there);
    }
    ::fl::copy_bytes(refused.data(), Device::cpu, refused_there, Device::cuda, block.K, exec.stream);
  }

  [[nodiscard]] std::size_t size_bytes() const override { return examples_.size_bytes(); }
  [[nodiscard]] std::size_t room_bytes(std::size_t clients) const override {
    std::size_t most = oracle_.batch();
    for (const Shard& shard : oracle_.shards()) most = oracle_.is_full() ? std::max(most, shard.size()) : most;
    return std::min(kWaveBytes, clients * bytes_per_client(most)) + bytes_per_client(most);
  }

 private:
  Minibatches draw(const Exec& host, const RoundContext<T>& context, const ClientBlock<T>& block) const {
    Minibatches batches;
    batches.K = block.K;
    std::vector<std::vector<std::vector<std::uint32_t>>> drawn(block.K);  // by client and step
    for (std::uint32_t k = 0; k < block.K; ++k) {
      Workspace::Frame frame(*host.workspace);
      const std::uint32_t client = block.clients[k];
      if (descent_.moves) {
        LocalSteps<T> steps(frame, oracle_, client, context.round, descent_.work);
        for (std::uint32_t step = 0; step < steps.count(); ++step) {
          const std::span<const std::uint32_t> rows = steps.rows(step);
          drawn[k].emplace_back(rows.begin(), rows.end());
        }
      } else {
        auto* room = frame.template take<std::uint32_t>(std::max<std::size_t>(oracle_.batch(), 1));
        const std::span<const std::uint32_t> rows = oracle_.draw(client, {.round = context.round}, room);
        drawn[k].emplace_back(rows.begin(), rows.end());
      }
    }
    std::vector<std::size_t> rows(block.K);
    for (std::uint32_t k = 0; k < block.K; ++k)
      for (const std::vector<std::uint32_t>& step : drawn[k]) rows[k] += step.size();
    batches.place.resize(block.K);
    std::iota(batches.place.begin(), batches.place.end(), 0u);
    std::stable_sort(batches.place.begin(), batches.place.end(), [&](std::uint32_t a, std::uint32_t b) {
      return drawn[a].size() != drawn[b].size() ? drawn[a].size() > drawn[b].size() : rows[a] > rows[b];
    });
    for (const std::uint32_t k : batches.place) batches.count.push_back(static_cast<std::uint32_t>(drawn[k].size()));
    batches.begin.push_back(0);
    for (std::uint32_t step = 0; step < batches.steps(); ++step)
      for (const std::uint32_t k : batches.place) {
        if (step < drawn[k].size()) batches.rows.insert(batches.rows.end(), drawn[k][step].begin(), drawn[k][step].end());
        batches.begin.push_back(batches.rows.size());
      }
    return batches;
  }

  // block.work, and 1 / work of every client on the GPU; null where vectors are not normalised.
  const T* normalise(const Exec& exec, const RoundContext<T>& context, const ClientBlock<T>& block, const Minibatches& batches,
                     Workspace::Frame& frame) const {
    std::vector<T> per_work;
    for (std::uint32_t k = 0; k < block.K; ++k) {
      double& work = block.work[batches.place[k]];
      work = context.normalise && descent_.moves ? work_of(descent_, batches.count[k], context.step_size) : 1;
      per_work.push_back(static_cast<T>(1 / work));
    }
    return context.normalise ? upload(exec, std::span<const T>(per_work), frame) : nullptr;
  }

  [[nodiscard]] std::size_t clients_at_once(const Minibatches& batches) const {
    std::size_t most = 1;
    for (std::uint32_t step = 0; step < batches.steps(); ++step) most = std::max(most, batches.largest(step, 0, batches.K));
    return std::clamp<std::size_t>(kWaveBytes / bytes_per_client(most), 1, batches.K);
  }
  // Of activations, y, g and v, for minibatches of up to so many rows.
  [[nodiscard]] std::size_t bytes_per_client(std::size_t rows) const {
    const std::size_t own = 3 * oracle_.model().layers().size();
    return (std::min(rows, most_rows_) * examples_.per_row() * network_.entries_per_example() + own) * sizeof(T) + 1;
  }

  // All row numbers, factors and streams in a few copies, so that steps follow each other without waiting for the host.
  std::vector<PlannedStep> plan(const Exec& exec, const RoundContext<T>& context, const ClientBlock<T>& block, const Minibatches& batches,
                                std::size_t first, std::size_t clients, Workspace::Frame& frame) const {
    std::vector<std::uint32_t> row;
    std::vector<double> scale;
    std::vector<RandomStream> random;
    const bool draws = (network_.draws() || examples_.draws()) && descent_.draws;
    for (std::uint32_t step = 0; step < batches.steps(); ++step) {
      const std::size_t end = first + batches.that_take(step, first, clients);
      for (std::size_t k = first; draws && k < end; ++k)
        random.push_back(oracle_.inner_random(block.clients[batches.place[k]], {.round = context.round, .step = step}));
      for (std::size_t k = first; k < end; ++k)
        scale.push_back(1 / static_cast<double>(std::max<std::size_t>(batches.of(step, k).size(), 1)));
      const std::size_t most = batches.largest(step, first, end - first);
      for (std::size_t from = 0; from < most; from += most_rows_) {
        const std::size_t B = std::min(most_rows_, most - from);
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
      for (std::size_t from = 0; from < most; from += most_rows_) {
        const std::size_t B = std::min(most_rows_, most - from);
        planned.pieces.push_back({B, row_there});
        row_there += active * B;
      }
      scale_there += active;
      if (draws) random_there += active;
      steps.push_back(std::move(planned));
    }
    return steps;
  }

  // y after all steps, from w: [clients,P].
  const T* descend(const Exec& exec, const RoundContext<T>& context, const std::vector<PlannedStep>& steps, std::size_t clients, const T* w,
                   Workspace::Frame& frame) {
    const std::size_t P = context.P, entries = clients * P;
    T *y = frame.take<T>(entries), *v = descent_.momentum > 0 ? frame.take<T>(entries) : nullptr;
    Launch(exec, "spread", blocks_for(entries))(spread<T>, clients, P, w, y);
    if (v != nullptr) FL_CUDA_CHECK(cudaMemsetAsync(v, 0, entries * sizeof(T), stream_of(exec)));
    const Step<T> how{static_cast<T>(context.step_size),
                      static_cast<T>(descent_.weight_decay),
                      static_cast<T>(descent_.momentum),
                      static_cast<T>(descent_.proximal_mu),
                      w,
                      rate_.empty() ? nullptr : rate_.data()};
    for (const PlannedStep& step : steps) {
      Workspace::Frame inner(*exec.workspace);
      T* g = gradient(exec, step, LayerWeights<T>{y, P}, inner);
      Launch(exec, "take_step", blocks_for(step.clients * P))(take_step<T>, step.clients, P, how, g, v, y);
    }
    return y;
  }

  // Gradients of the clients' minibatches at their weights: [step.clients,P].
  T* gradient(const Exec& exec, const PlannedStep& step, LayerWeights<T> y, Workspace::Frame& frame) {
    const std::size_t P = oracle_.model().layers().size(), clients = step.clients;
    T* g = frame.take<T>(clients * P);
    if (step.pieces.empty()) FL_CUDA_CHECK(cudaMemsetAsync(g, 0, clients * P * sizeof(T), stream_of(exec)));
    for (std::size_t i = 0; i < step.pieces.size(); ++i) {
      Workspace::Frame inner(*exec.workspace);
      const Piece& piece = step.pieces[i];
      const std::size_t E = examples_.per_row();
      const LayerPass pass{.exec = exec,
                           .clients = clients,
                           .B = piece.places * E,
                           .accumulate = i > 0,
                           .random = step.random,
                           .row = E == 1 ? piece.row : nullptr};
      const auto tape = network_.open(inner, pass.examples());
      examples_.make(exec, piece.row, clients, piece.places, step.random, i * most_rows_, tape.activation[0]);
      const T* z = network_.forward(pass, y, tape);
      examples_.slopes(exec, piece.row, clients, piece.places, step.scale, z, network_.slope_of_output(tape));
      network_.backward(pass, y, tape, {g, P});
    }
    const T* rate = rate_.empty() ? nullptr : rate_.data();
    if (rate != nullptr && !descent_.draws)
      Launch(exec, "clear_statistics", blocks_for(clients * P))(clear_statistics<T>, clients, P, rate, g);
    const Regulariser& regulariser = oracle_.model().regulariser();
    if (regulariser.l2 != 0 || regulariser.nonconvex != 0)
      Launch(exec, "add_regulariser", blocks_for(clients * P))(add_regulariser<T>, clients, P, regulariser, rate, y.data, y.stride, g);
    return g;
  }

  Descent descent_;
  DeviceNetwork<T> network_;
  DeviceExamples<T> examples_;
  const GradientOracle<T>& oracle_;
  std::size_t most_rows_;  // of a client in one piece; longer minibatches are added up
  Buffer<T> rate_;         // [P] Layer::statistic_rate of each parameter; empty where there are none
};

}  // namespace

template <class T>
std::unique_ptr<DeviceTraining<T>> make_training(const Descent& descent, const NetworkForm& form, const Dataset<T>& data,
                                                 const GradientOracle<T>& oracle) {
  return std::make_unique<Training<T>>(descent, form, data, oracle);
}
template std::unique_ptr<DeviceTraining<float>> make_training(const Descent&, const NetworkForm&, const Dataset<float>&,
                                                              const GradientOracle<float>&);
template std::unique_ptr<DeviceTraining<double>> make_training(const Descent&, const NetworkForm&, const Dataset<double>&,
                                                               const GradientOracle<double>&);

}  // namespace fl::cuda
