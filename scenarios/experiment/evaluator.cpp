#include "scenarios/experiment/evaluator.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "clients/learning/device_room.hpp"
#include "clients/learning/gradient_failure.hpp"
#include "fl_core/ops/norms.hpp"
#include "fl_core/ops/row_moves.hpp"

namespace fl {

namespace {
constexpr std::size_t kRowsPerPiece = 4096;    // of a test set
constexpr std::uint32_t kClientsPerPass = 32;  // gradients computed at a time
constexpr std::size_t kHeldBytes = 32 << 20;   // gradients of all clients are held if they fit in here
}  // namespace

// The parts of the evaluation that run on a GPU.
template <class T>
struct Evaluator<T>::OnDevice {
  OnDevice(const FederatedProblem<T>& problem, Device device)
      : stream(device), workspace(device), whole(problem.model(), problem.shards(), SamplingOptions{}, 0, 1), local(whole) {
    exec.device = device;
    exec.stream = stream.get();
    exec.workspace = &workspace;
    // Linear models compute in double on the CPU for every T, because f - f* needs that precision.
    if (problem.model().second_order() != nullptr && sizeof(T) < sizeof(double)) return;
    train = make_device_evaluation(problem.model(), problem.train());
    if (problem.test() != nullptr && problem.test() != &problem.train()) test = make_device_evaluation(problem.model(), *problem.test());
    gradient = make_device_training<T>(local, whole);
  }
  // Computes the gradient of all of a client's rows, in the form of a local update with one step.
  class Gradients final : public LocalUpdate<T> {
   public:
    explicit Gradients(const GradientOracle<T>&) {}
    [[nodiscard]] std::vector<Unit> units() const override { return {Unit::gradient}; }
    [[nodiscard]] StepSettings step_settings() const override { return {all_, one_}; }
    [[nodiscard]] std::optional<Descent> descent() const override { return Descent{.work = {}, .draws = false}; }
    void run(const Exec&, const ClientRound<T>&, const GradientOracle<T>&, const ClientBlock<T>&) const override {}

   private:
    SamplingOptions all_;
    Expression one_{"1"};
  };
  [[nodiscard]] DeviceEvaluation<T>* of(const FederatedProblem<T>& problem, const Dataset<T>& data) const {
    return &data == &problem.train() ? train.get() : &data == problem.test() ? test.get() : nullptr;
  }

  DeviceStream stream;
  Workspace workspace;
  Exec exec;
  GradientOracle<T> whole;
  Gradients local;
  std::unique_ptr<DeviceEvaluation<T>> train, test;
  std::unique_ptr<DeviceTraining<T>> gradient;
};

template <class T>
Evaluator<T>::Evaluator(const FederatedProblem<T>& problem, ThreadPool& pool, Device device)
    : problem_(problem),
      pool_(pool),
      row_sums_(pool),
      on_device_(device == Device::cpu ? nullptr : std::make_unique<OnDevice>(problem, device)),
      gradients_(0, on_device_ != nullptr && on_device_->gradient != nullptr ? Device::cuda : Device::cpu) {}
template <class T>
Evaluator<T>::~Evaluator() = default;

template <class T>
std::vector<typename Evaluator<T>::Sums> Evaluator<T>::sums_of(const Dataset<T>& data, std::span<const Rows> lists, std::span<const T> x,
                                                               bool counts) {
  std::vector<Sums> sums(lists.size());
  if (DeviceEvaluation<T>* evaluation = on_device_ ? on_device_->of(problem_, data) : nullptr; evaluation != nullptr) {
    sum_on_device(*evaluation, lists, x, sums);
    return sums;
  }
  pool_.parallel_for(static_cast<std::uint32_t>(lists.size()), [&](std::uint32_t i, const Exec& exec) {
    sums[i].loss = problem_.model().loss_sum(exec, x.data(), data, lists[i], counts ? &sums[i].correct : nullptr);
  });
  return sums;
}

// Evaluates rows one by one on the GPU and adds the results here in row order.
template <class T>
void Evaluator<T>::sum_on_device(DeviceEvaluation<T>& evaluation, std::span<const Rows> lists, std::span<const T> x,
                                 std::vector<Sums>& sums) {
  std::vector<std::uint32_t> rows;
  for (const Rows& list : lists) rows.insert(rows.end(), list.begin(), list.end());
  std::vector<double> loss(rows.size());
  std::vector<std::uint32_t> correct(rows.size());
  if (!rows.empty()) evaluation.run(on_device_->exec, x.data(), rows, loss, correct);
  std::size_t at = 0;
  for (std::size_t i = 0; i < lists.size(); ++i)
    for (std::size_t row = 0; row < lists[i].size(); ++row, ++at) {
      sums[i].loss += loss[at];
      sums[i].correct += correct[at];
    }
}

template <class T>
double Evaluator<T>::train_loss(std::span<const T> x) {
  const std::vector<double> sums = remote_ != nullptr ? remote_->losses(x) : loss_sums(x);
  knows_loss_ = remote_ == nullptr || remote_->is_complete();
  return loss_of(sums, x);
}

template <class T>
double Evaluator<T>::loss_of(std::span<const double> sums, std::span<const T> x) {
  double loss = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) loss += problem_.weights()[i] * (sums[i] / static_cast<double>(problem_.num_rows_of(i)));
  return loss + problem_.model().regulariser(x.data());
}

template <class T>
std::vector<double> Evaluator<T>::loss_sums(std::span<const T> x) {
  const std::vector<Rows> lists(problem_.shards().begin(), problem_.shards().end());
  std::vector<double> losses;
  for (const Sums& sums : sums_of(problem_.train(), lists, x, false)) losses.push_back(sums.loss);
  return losses;
}

template <class T>
Accuracy Evaluator<T>::test(std::span<const T> x) {
  const Dataset<T>* data = problem_.test();
  const bool has_classes = problem_.train().num_classes > 0;
  if (data == nullptr) return {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
  const Rows rows = problem_.test_rows();
  std::vector<Rows> pieces;
  for (std::size_t first = 0; first < rows.size(); first += kRowsPerPiece)
    pieces.push_back(rows.subspan(first, std::min(kRowsPerPiece, rows.size() - first)));
  double total = 0, right = 0;
  for (const Sums& sums : sums_of(*data, pieces, x, has_classes)) {
    total += sums.loss;
    right += static_cast<double>(sums.correct);
  }
  const auto m = static_cast<double>(rows.size());
  const double labels = m * static_cast<double>(data->labels_per_row());
  return {total / m, has_classes ? right / labels : std::numeric_limits<double>::quiet_NaN()};
}

template <class T>
const LossWithGradient<T>* Evaluator<T>::shared_pass() const {
  if (remote_ != nullptr || (on_device_ != nullptr && (on_device_->train != nullptr || on_device_->gradient != nullptr))) return nullptr;
  return dynamic_cast<const LossWithGradient<T>*>(&problem_.model());
}

template <class T>
void Evaluator<T>::compute_gradients(std::span<const T> x, std::uint32_t first, std::uint32_t count, T* gradients,
                                     std::span<double> losses) {
  compute_whole_gradients(x, first, count, gradients, losses);
  if (left_out_.empty()) return;
  const BatchView<T> rows{gradients, nullptr, count, x.size(), x.size()};
  const Exec host;
  const Exec& exec = gradients_.device() == Device::cpu ? host : on_device_->exec;
  for (const ParameterRange& range : left_out_) clear_entries(exec, rows, range.begin, range.end);
  synchronise(exec);
}

template <class T>
void Evaluator<T>::compute_whole_gradients(std::span<const T> x, std::uint32_t first, std::uint32_t count, T* gradients,
                                           std::span<double> losses) {
  const std::size_t P = x.size();
  if (remote_ != nullptr) return remote_->read_gradients(x, first, {gradients, nullptr, count, P, P});
  if (!losses.empty()) {
    const LossWithGradient<T>& model = *shared_pass();
    pool_.parallel_for(count, [&](std::uint32_t k, const Exec& exec) {
      losses[k] = model.gradient_with_loss_sum(exec, x.data(), problem_.shards()[first + k], gradients + k * P);
    });
    return;
  }
  if (on_device_ == nullptr || on_device_->gradient == nullptr) {
    pool_.parallel_for(count, [&](std::uint32_t k, const Exec& exec) {
      const Rows rows = problem_.shards()[first + k];
      const std::uint32_t client = first + k;
      naming_failures({&client, 1}, "at an evaluation", [&] {
        problem_.model().gradient(exec, shared_view(x.data(), 1, P), std::span(&rows, 1), {gradients + k * P, nullptr, 1, P, P}, nullptr);
      });
    });
    return;
  }
  std::vector<std::uint32_t> clients(count);
  std::iota(clients.begin(), clients.end(), first);
  std::vector<double> work(count);
  std::vector<std::uint8_t> refused(count);
  RunSettings run;
  run.P = P;
  const RoundOrder order;
  ClientBlock<T> block{0, count, clients, {{gradients, nullptr, count, P, P}}, {}, work};
  block.start = shared_view(x.data(), count, P);
  on_device_->gradient->run(on_device_->exec, pool_, {run, order, x}, block, {}, refused);
  const std::vector<T> nans(P, std::numeric_limits<T>::quiet_NaN());
  for (std::uint32_t k = 0; k < count; ++k)
    if (refused[k] != 0) copy_bytes(gradients + k * P, Device::cuda, nans.data(), Device::cpu, P * sizeof(T), on_device_->exec.stream);
  synchronise(on_device_->exec);
}

// Returns `entries` numbers of gradients_ in host memory.
template <class T>
const T* Evaluator<T>::gradients_here(const T* gradients, std::size_t entries) {
  if (gradients_.device() == Device::cpu) return gradients;
  copied_gradients_.resize_discard(entries);
  copy_bytes(copied_gradients_.data(), Device::cpu, gradients, Device::cuda, entries * sizeof(T), on_device_->exec.stream);
  return copied_gradients_.data();
}

// Computes zeta^2 as sum_i w_i |g_i - g|^2 in two passes: the first finds g, which avoids cancellation when clients are alike. The second
// computes the gradients again unless all of them are held.
template <class T>
GradientStatistics Evaluator<T>::gradient_with_losses(std::span<const T> x, std::span<double> losses) {
  const auto N = static_cast<std::uint32_t>(problem_.shards().size());
  const std::size_t P = x.size();
  const bool holds_all =
      remote_ == nullptr && (N <= kClientsPerPass || (gradients_.device() == Device::cpu && N * P * sizeof(T) <= kHeldBytes));
  gradients_.resize_discard((holds_all ? std::max(N, kClientsPerPass) : kClientsPerPass) * P);
  mean_.resize_discard(P);
  std::fill(mean_.begin(), mean_.end(), 0.0);
  double zeta_sq = 0;
  std::vector<double> distance(kClientsPerPass);
  for (int pass = 0; pass < 2; ++pass) {
    for (std::uint32_t first = 0; first < N; first += kClientsPerPass) {
      const std::uint32_t count = std::min(kClientsPerPass, N - first);
      T* gradients = gradients_.data() + (holds_all ? first * P : 0);
      const bool with_losses = pass == 0 && !losses.empty();
      if (pass == 0 || (remote_ == nullptr && !holds_all))
        compute_gradients(x, first, count, gradients, with_losses ? losses.subspan(first, count) : std::span<double>());
      if (pass == 1 && remote_ != nullptr) {
        remote_->read_distances(x, mean_.span(), first, std::span(distance).first(count));
      } else if (pass == 1) {
        const T* here = gradients_here(gradients, count * P);
        pool_.parallel_for(count, [&](std::uint32_t k, const Exec&) { distance[k] = distance_sq(here + k * P, mean_.data(), P); });
      }
      const std::span<const double> weights = std::span(problem_.weights()).subspan(first, count);
      if (pass == 0) row_sums_.add(gradients_.device(), {gradients, nullptr, count, P, P}, weights, mean_.span());
      for (std::uint32_t k = 0; pass == 1 && k < count; ++k) zeta_sq += weights[k] * distance[k];
    }
  }
  return {sum_of_squares(mean_.data(), P), zeta_sq};
}

template <class T>
GradientStatistics Evaluator<T>::gradient(std::span<const T> x) {
  return gradient_with_losses(x, {});
}

template <class T>
auto Evaluator<T>::loss_and_gradient(std::span<const T> x) -> std::optional<LossAndGradient> {
  if (shared_pass() == nullptr) return std::nullopt;
  std::vector<double> losses(problem_.shards().size());
  const GradientStatistics gradient = gradient_with_losses(x, losses);
  knows_loss_ = true;
  return LossAndGradient{loss_of(losses, x), gradient};
}

template <class T>
std::vector<typename Evaluator<T>::Sums> Evaluator<T>::sums_of_own(const ClientRows<T>& own, std::span<const Rows> lists,
                                                                   std::span<const T> x, const Adapt& adapt) {
  std::vector<Sums> sums(lists.size());
  const std::size_t P = x.size();
  std::vector<T> models(std::min<std::size_t>(kClientsPerPass, lists.size()) * P);
  for (std::size_t first = 0; first < lists.size(); first += kClientsPerPass) {
    const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(kClientsPerPass, lists.size() - first));
    for (std::uint32_t k = 0; k < count; ++k) {
      std::ranges::copy(x, models.data() + k * P);
      adapt(own.clients[first + k], models.data() + k * P);
    }
    auto sum = [&](std::uint32_t k, const Exec& exec) {
      sums[first + k].loss = problem_.model().loss_sum(exec, models.data() + k * P, *own.data, lists[first + k], &sums[first + k].correct);
    };
    if (on_device_ == nullptr || on_device_->of(problem_, *own.data) == nullptr)
      pool_.parallel_for(count, sum);
    else
      for (std::uint32_t k = 0; k < count; ++k)
        sums[first + k] = sums_of(*own.data, lists.subspan(first + k, 1), std::span<const T>(models).subspan(k * P, P), true).front();
  }
  return sums;
}

template <class T>
Spread Evaluator<T>::client_accuracy(std::span<const T> x, const Adapt& adapt) {
  if (remote_ != nullptr) return remote_accuracy(x);
  const ClientRows<T>& own = problem_.client_rows();
  const std::vector<Rows> lists(own.shards.begin(), own.shards.end());
  const std::vector<Sums> sums = adapt ? sums_of_own(own, lists, x, adapt) : sums_of(*own.data, lists, x, true);
  std::vector<double> accuracy;
  for (std::size_t i = 0; i < lists.size(); ++i)
    accuracy.push_back(static_cast<double>(sums[i].correct) / static_cast<double>(lists[i].size() * own.data->labels_per_row()));
  return spread_of(std::move(accuracy));
}

// Returns the spread of what the clients counted, NaN without all of them.
template <class T>
Spread Evaluator<T>::remote_accuracy(std::span<const T> x) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> correct = remote_->correct(x);
  if (!remote_->is_complete()) return {kUnknown, kUnknown, kUnknown, kUnknown, kUnknown, kUnknown};
  std::vector<double> accuracy;
  for (std::size_t i = 0; i < correct.size(); ++i)
    if (const std::uint64_t labels = problem_.own_labels(i); labels > 0) accuracy.push_back(correct[i] / static_cast<double>(labels));
  return spread_of(std::move(accuracy));
}

template <class T>
std::uint64_t Evaluator<T>::most_bytes_on_device(bool with_gradients) const {
  const Model<T>& model = problem_.model();
  if (model.second_order() != nullptr && sizeof(T) < sizeof(double)) return 0;
  std::size_t rows = std::max(problem_.train().num_rows, problem_.test() == nullptr ? 0 : problem_.test()->num_rows), longest = 0;
  for (const Shard& shard : problem_.shards()) longest = std::max(longest, shard.size());
  const std::uint64_t evaluation = device_evaluation_bytes(model, rows);
  if (!with_gradients) return evaluation + evaluation / 8;
  const std::uint64_t room = std::max(evaluation, device_gradient_bytes(model, kClientsPerPass, longest));
  return room + room / 8 + kClientsPerPass * problem_.P() * sizeof(T);
}

template <class T>
RankingQuality Evaluator<T>::ranking(std::span<const T> x, std::uint64_t seed) {
  if (!ranking_ || ranking_seed_ != seed) ranking_.emplace(problem_.train(), *problem_.test(), seed);
  ranking_seed_ = seed;
  return ranking_->measure(problem_.model(), x, pool_);
}

template class Evaluator<float>;
template class Evaluator<double>;

}  // namespace fl
