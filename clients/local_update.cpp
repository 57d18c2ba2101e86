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

template <class T>
const Schedule& LocalUpdate<T>::schedule() const {
  static const Schedule constant;
  return constant;
}

template <class T>
void LocalUpdate<T>::prepare(const Exec&, const GradientOracle<T>&, StateTable<T>&, const T*) const {}

template BatchView<const float> own_models(const RoundContext<float>&, const ClientBlock<float>&, float*);
template BatchView<const double> own_models(const RoundContext<double>&, const ClientBlock<double>&, double*);
template class LocalUpdate<float>;
template class LocalUpdate<double>;

}  // namespace fl
