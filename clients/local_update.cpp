#include "clients/local_update.hpp"

namespace fl {

template <class T>
BatchView<const T> own_models(const ClientRound<T>& round, const ClientBlock<T>& block, T* room) {
  if (round.run.offset_slot.empty()) return shared_view(round.reference.data(), block.K, round.P());
  const BatchView<T> offset = block.stored(round.state, round.run.offset_slot);
  const T factor = static_cast<T>(round.run.offset_factor);
  for (std::uint32_t k = 0; k < block.K; ++k) {
    const T* m = offset.row(k);
    T* x = room + k * round.P();
    for (std::size_t j = 0; j < round.P(); ++j) x[j] = round.reference[j] - factor * m[j];
  }
  return {room, nullptr, block.K, round.P(), round.P()};
}

// The gradient's entry is w - b with the statistic b of the minibatch, so s - b = g + (s - w).
template <class T>
void move_statistics(const ClientRound<T>& round, const ClientBlock<T>& block, std::uint32_t k, const T* w, const T* g) {
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

template BatchView<const float> own_models(const ClientRound<float>&, const ClientBlock<float>&, float*);
template BatchView<const double> own_models(const ClientRound<double>&, const ClientBlock<double>&, double*);
template void move_statistics(const ClientRound<float>&, const ClientBlock<float>&, std::uint32_t, const float*, const float*);
template void move_statistics(const ClientRound<double>&, const ClientBlock<double>&, std::uint32_t, const double*, const double*);
template class LocalUpdate<float>;
template class LocalUpdate<double>;

}  // namespace fl
