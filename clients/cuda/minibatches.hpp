// The minibatches of a block of clients, drawn on the host's threads: the rows that clients on the CPU would take.
//
// Clients are in the order in which they are computed: those with most steps first, so that the ones that have another step are the first
// ones, and then those with most rows, so that neighbours are alike.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "clients/descent.hpp"
#include "clients/oracle.hpp"
#include "fl_core/memory/thread_pool.hpp"

namespace fl::cuda {

// Of client k in step t: the rows begin[t*K + k] .. begin[t*K + k + 1] - 1 of `rows`.
struct Minibatches {
  std::size_t K = 0;
  std::vector<std::uint32_t> place;  // [K] of each client in the block
  std::vector<std::uint32_t> count;  // [K] steps of each, descending
  std::vector<std::uint32_t> rows;
  std::vector<std::uint64_t> begin;  // [steps*K + 1]

  [[nodiscard]] std::uint32_t steps() const { return count.empty() ? 0 : count.front(); }
  [[nodiscard]] std::span<const std::uint32_t> of(std::uint32_t step, std::size_t k) const {
    const std::size_t at = step * K + k;
    return std::span(rows).subspan(begin[at], begin[at + 1] - begin[at]);
  }
  // Rows of the largest minibatch of clients first .. first+clients-1 in a step.
  [[nodiscard]] std::size_t largest(std::uint32_t step, std::size_t first, std::size_t clients) const {
    std::size_t most = 0;
    for (std::size_t k = first; k < first + clients; ++k) most = std::max(most, of(step, k).size());
    return most;
  }
  [[nodiscard]] std::size_t largest() const {
    std::size_t most = 0;
    for (std::size_t i = 0; i + 1 < begin.size(); ++i) most = std::max<std::size_t>(most, begin[i + 1] - begin[i]);
    return most;
  }
  // How many of clients first .. first+clients-1 take this step; they are the first of them.
  [[nodiscard]] std::size_t that_take(std::uint32_t step, std::size_t first, std::size_t clients) const {
    std::size_t active = 0;
    while (active < clients && count[first + active] > step) ++active;
    return active;
  }
};

// One step where the descent does not move.
template <class T>
[[nodiscard]] Minibatches draw_minibatches(ThreadPool& pool, const GradientOracle<T>& oracle, const Descent& descent, std::uint32_t round,
                                           std::span<const std::uint32_t> clients);
// The most rows that a minibatch of any client may have.
template <class T>
[[nodiscard]] std::size_t most_rows(const GradientOracle<T>& oracle);

extern template Minibatches draw_minibatches(ThreadPool&, const GradientOracle<float>&, const Descent&, std::uint32_t,
                                             std::span<const std::uint32_t>);
extern template Minibatches draw_minibatches(ThreadPool&, const GradientOracle<double>&, const Descent&, std::uint32_t,
                                             std::span<const std::uint32_t>);
extern template std::size_t most_rows(const GradientOracle<float>&);
extern template std::size_t most_rows(const GradientOracle<double>&);

}  // namespace fl::cuda
