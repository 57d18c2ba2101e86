#include "server/memory_sum.hpp"

#include <algorithm>

namespace fl {

template <class T>
void MemorySum<T>::begin_round(std::uint32_t round, std::span<const std::uint32_t> cohort, StateTable<T>& state) {
  if (!is_running_) return;
  add(round, cohort, -1, state);
  const double aged = absence_.factor_of_a_round();
  if (aged == 1) return;
  for (double& x : state.server(slot())) x *= aged;
}

template <class T>
void MemorySum<T>::end_round(std::span<const std::uint32_t> cohort, StateTable<T>& state) {
  if (is_running_) add(0, cohort, 1, state);
}

// Threads share coordinates; each sums in the order of the cohort. Round 0: nobody has missed anything.
template <class T>
void MemorySum<T>::add(std::uint32_t round, std::span<const std::uint32_t> cohort, double sign, StateTable<T>& state) {
  constexpr std::size_t kPiece = 2048;  // coordinates: 16 KiB of the sum
  const std::span<double> sum = state.server(slot());
  std::vector<double> factor;
  std::vector<std::span<const T>> memory;
  for (const std::uint32_t client : cohort) {
    factor.push_back(sign * weights_[client] * (round == 0 ? 1 : absence_.kept_share(round, client, state)));
    memory.push_back(state.of_client(absence_.slot(), client));
  }
  const auto pieces = static_cast<std::uint32_t>((sum.size() + kPiece - 1) / kPiece);
  pool_.parallel_for(pieces, [&](std::uint32_t piece, const Exec&) {
    const std::size_t first = piece * kPiece, last = std::min(sum.size(), first + kPiece);
    for (std::size_t k = 0; k < memory.size(); ++k) {
      const T* e = memory[k].data();
      for (std::size_t j = first; j < last; ++j) sum[j] += factor[k] * static_cast<double>(e[j]);
    }
  });
}

template <class T>
std::vector<double> MemorySum<T>::value(std::uint32_t round, StateTable<T>& state) const {
  std::vector<double> sum(state.P(), 0.0);
  if (is_running_) {
    std::ranges::copy(state.server(slot()), sum.begin());
    absence_.add_replacements(round, weights_, state, sum);
    return sum;
  }
  for (std::uint32_t client = 0; client < weights_.size(); ++client)
    if (state.acknowledged(client) > 0) absence_.add_memory(round, client, weights_[client], state, sum);  // others have none
  return sum;
}

template class MemorySum<float>;
template class MemorySum<double>;

}  // namespace fl
