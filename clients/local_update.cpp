#include "clients/local_update.hpp"

namespace fl {

template <class T>
void LocalUpdate<T>::prepare(const Exec&, const GradientOracle<T>&, StateTable<T>&, const T*) const {}

template class LocalUpdate<float>;
template class LocalUpdate<double>;

}  // namespace fl
