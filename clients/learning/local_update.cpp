#include "clients/learning/local_update.hpp"

#include <algorithm>

namespace fl {

// The gradient's entry of a running average is w - b with the minibatch's value b, so s - b = g + (s - w).
template <class T>
void move_own(const ClientRound<T>& round, const ClientBlock<T>& block, std::uint32_t k, const T* g) {
  const T* w = block.start.row(k);
  round.run.kinds.for_each_own_range([&](const ParameterRange& range, std::size_t position) {
    T* s = block.own.row(k) + position;
    if (range.running_rate > 0)
      for (std::size_t j = range.begin; j < range.end; ++j, ++s) *s -= static_cast<T>(range.running_rate) * (g[j] + (*s - w[j]));
    else
      for (std::size_t j = range.begin; j < range.end; ++j, ++s) *s -= static_cast<T>(round.order.step_size) * g[j];
  });
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

template void move_own(const ClientRound<float>&, const ClientBlock<float>&, std::uint32_t, const float*);
template void move_own(const ClientRound<double>&, const ClientBlock<double>&, std::uint32_t, const double*);
template class LocalUpdate<float>;
template class LocalUpdate<double>;

}  // namespace fl
