#include "clients/local_update.hpp"

namespace fl {

// The gradient's entry is w - b with the statistic b of the minibatch, so s - b = g + (s - w).
template <class T>
void move_statistics(const ClientRound<T>& round, const ClientBlock<T>& block, std::uint32_t k, const T* g) {
  const T* w = block.start.row(k);
  T* s = round.run.statistics.empty() ? nullptr : block.statistics.row(k);
  for (const Statistic& statistic : round.run.statistics)
    for (std::size_t j = statistic.begin; j < statistic.end; ++j, ++s) *s -= static_cast<T>(statistic.rate) * (g[j] + (*s - w[j]));
}

const Schedule& constant_schedule() {
  static const Schedule constant;
  return constant;
}

template <class T>
std::string LocalUpdate<T>::host_walks() const {
  return descent() ? "" : "may read every row of client state, because the local update does not say what it reads";
}

template <class T>
void LocalUpdate<T>::prepare(const Exec&, const GradientOracle<T>&, ClientState<T>&, const T*) const {}

template void move_statistics(const ClientRound<float>&, const ClientBlock<float>&, std::uint32_t, const float*);
template void move_statistics(const ClientRound<double>&, const ClientBlock<double>&, std::uint32_t, const double*);
template class LocalUpdate<float>;
template class LocalUpdate<double>;

}  // namespace fl
