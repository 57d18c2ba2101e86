#include "clients/local_update.hpp"

namespace fl {

template <class T>
BatchView<const T> own_models(const RoundContext<T>& context, const ClientBlock<T>& block, T* room) {
  if (context.offset_slot.empty()) return shared_view(context.reference, block.K, context.P);
  const BatchView<T> offset = block.stored(*context.state, context.offset_slot);
  const T factor = static_cast<T>(context.offset_factor);
  for (std::uint32_t k = 0; k < block.K; ++k) {
    const T* m = offset.row(k);
    T* x = room + k * context.P;
    for (std::size_t j = 0; j < context.P; ++j) x[j] = context.reference[j] - factor * m[j];
  }
  return {room, nullptr, block.K, context.P, context.P};
}

// The gradient's entry is w - b with the statistic b of the minibatch, so s - b = g + (s - w).
template <class T>
void move_statistics(const RoundContext<T>& context, const ClientBlock<T>& block, std::uint32_t k, const T* w, const T* g) {
  T* s = context.statistics.empty() ? nullptr : block.statistics.row(k);
  for (const Statistic& statistic : context.statistics)
    for (std::size_t j = statistic.begin; j < statistic.end; ++j, ++s) *s -= static_cast<T>(statistic.rate) * (g[j] + (*s - w[j]));
}

template <class T>
const Schedule& LocalUpdate<T>::schedule() const {
  static const Schedule constant;
  return constant;
}

template <class T>
std::string LocalUpdate<T>::host_walks() const {
  return descent() ? "" : "may read every row of client state, because the local update does not say what it reads";
}

template <class T>
void LocalUpdate<T>::prepare(const Exec&, const GradientOracle<T>&, StateTable<T>&, const T*) const {}

template BatchView<const float> own_models(const RoundContext<float>&, const ClientBlock<float>&, float*);
template BatchView<const double> own_models(const RoundContext<double>&, const ClientBlock<double>&, double*);
template void move_statistics(const RoundContext<float>&, const ClientBlock<float>&, std::uint32_t, const float*, const float*);
template void move_statistics(const RoundContext<double>&, const ClientBlock<double>&, std::uint32_t, const double*, const double*);
template class LocalUpdate<float>;
template class LocalUpdate<double>;

}  // namespace fl
