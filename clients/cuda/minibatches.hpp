// The minibatches of a block of clients, drawn by the host's threads: the same rows as on the CPU.
//
// Clients are sorted in the order of computation: first by descending number of steps, so that the clients with a further step form a
// prefix, then by descending number of rows, so that neighbours are alike.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "clients/learning/descent.hpp"
#include "clients/learning/oracle.hpp"
#include "fl_core/memory/thread_pool.hpp"

namespace fl::cuda {

// The rows of client k in step t are rows[begin[t*K + k]] .. rows[begin[t*K + k + 1] - 1].
struct Minibatches {
  std::size_t K = 0;
  std::vector<std::uint32_t> place;  // [K] position of each client in the block
  std::vector<std::uint32_t> count;  // [K] steps of each client, descending
  std::vector<std::uint32_t> rows;
  std::vector<std::uint64_t> begin;  // [steps*K + 1]

  [[nodiscard]] std::uint32_t steps() const { return count.empty() ? 0 : count.front(); }
  [[nodiscard]] std::span<const std::uint32_t> of(std::uint32_t step, std::size_t k) const {
    const std::size_t at = step * K + k;
    return std::span(rows).subspan(begin[at], begin[at + 1] - begin[at]);
  }
  // Returns the number of rows in the largest minibatch of clients first .. first+clients-1 in a step.
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
  // Returns how many of the clients first .. first+clients-1 take this step; these come first among them.
  [[nodiscard]] std::size_t that_take(std::uint32_t step, std::size_t first, std::size_t clients) const {
    std::size_t active = 0;
    while (active < clients && count[first + active] > step) ++active;
    return active;
  }
};

// Draws the minibatches of all steps. Each client has one step if the descent does not move.
template <class T>
[[nodiscard]] Minibatches draw_minibatches(ThreadPool& pool, const GradientOracle<T>& oracle, const Descent& descent, std::uint32_t round,
                                           std::span<const std::uint32_t> clients);
// Returns an upper bound on the rows in a minibatch of any client.
template <class T>
[[nodiscard]] std::size_t most_rows(const GradientOracle<T>& oracle);

extern template Minibatches draw_minibatches(ThreadPool&, const GradientOracle<float>&, const Descent&, std::uint32_t,
                                             std::span<const std::uint32_t>);
extern template Minibatches draw_minibatches(ThreadPool&, const GradientOracle<double>&, const Descent&, std::uint32_t,
                                             std::span<const std::uint32_t>);
extern template std::size_t most_rows(const GradientOracle<float>&);
extern template std::size_t most_rows(const GradientOracle<double>&);

}  // namespace fl::cuda
