#include "clients/cuda/minibatches.hpp"

#include <numeric>

namespace fl::cuda {
namespace {

// The rows that one client drew, step after step.
struct Drawn {
  std::vector<std::uint32_t> rows;
  std::vector<std::size_t> end;  // of each step's rows
  void add(std::span<const std::uint32_t> step) {
    rows.insert(rows.end(), step.begin(), step.end());
    end.push_back(rows.size());
  }
  [[nodiscard]] std::span<const std::uint32_t> of(std::uint32_t step) const {
    const std::size_t begin = step == 0 ? 0 : end[step - 1];
    return std::span(rows).subspan(begin, end[step] - begin);
  }
};

template <class T>
Drawn draw_one(const Exec& exec, const GradientOracle<T>& oracle, const Descent& descent, std::uint32_t round, std::uint32_t client) {
  Workspace::Frame frame(*exec.workspace);
  Drawn drawn;
  if (descent.moves) {
    LocalSteps<T> steps(frame, oracle, client, round, descent.work);
    for (std::uint32_t step = 0; step < steps.count(); ++step) drawn.add(steps.rows(step));
  } else {
    auto* room = frame.template take<std::uint32_t>(std::max<std::size_t>(oracle.batch(), 1));
    drawn.add(oracle.draw(client, {.round = round}, room));
  }
  return drawn;
}

}  // namespace

template <class T>
Minibatches draw_minibatches(ThreadPool& pool, const GradientOracle<T>& oracle, const Descent& descent, std::uint32_t round,
                             std::span<const std::uint32_t> clients) {
  const auto K = static_cast<std::uint32_t>(clients.size());
  std::vector<Drawn> drawn(K);
  const std::uint32_t pieces = std::min(K, 8 * static_cast<std::uint32_t>(pool.num_threads()));
  pool.parallel_for(pieces, [&](std::uint32_t piece, const Exec& exec) {
    for (std::uint32_t k = piece; k < K; k += pieces) drawn[k] = draw_one(exec, oracle, descent, round, clients[k]);
  });

  Minibatches batches;
  batches.K = K;
  batches.place.resize(K);
  std::iota(batches.place.begin(), batches.place.end(), 0u);
  std::stable_sort(batches.place.begin(), batches.place.end(), [&](std::uint32_t a, std::uint32_t b) {
    return drawn[a].end.size() != drawn[b].end.size() ? drawn[a].end.size() > drawn[b].end.size()
                                                      : drawn[a].rows.size() > drawn[b].rows.size();
  });
  std::size_t total = 0;
  for (const std::uint32_t k : batches.place) {
    batches.count.push_back(static_cast<std::uint32_t>(drawn[k].end.size()));
    total += drawn[k].rows.size();
  }
  batches.rows.reserve(total);
  batches.begin.reserve(std::size_t{batches.steps()} * K + 1);
  batches.begin.push_back(0);
  for (std::uint32_t step = 0; step < batches.steps(); ++step)
    for (const std::uint32_t k : batches.place) {
      if (step < drawn[k].end.size()) {
        const std::span<const std::uint32_t> rows = drawn[k].of(step);
        batches.rows.insert(batches.rows.end(), rows.begin(), rows.end());
      }
      batches.begin.push_back(batches.rows.size());
    }
  return batches;
}

template <class T>
std::size_t most_rows(const GradientOracle<T>& oracle) {
  return oracle.most_rows();
}

template Minibatches draw_minibatches(ThreadPool&, const GradientOracle<float>&, const Descent&, std::uint32_t,
                                      std::span<const std::uint32_t>);
template Minibatches draw_minibatches(ThreadPool&, const GradientOracle<double>&, const Descent&, std::uint32_t,
                                      std::span<const std::uint32_t>);
template std::size_t most_rows(const GradientOracle<float>&);
template std::size_t most_rows(const GradientOracle<double>&);

}  // namespace fl::cuda
