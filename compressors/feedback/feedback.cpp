#include "compressors/feedback/feedback.hpp"

namespace fl {

template <class T>
std::vector<ChannelSpec> Feedback<T>::channels(const std::vector<std::string>& local_vectors) const {
  std::vector<ChannelSpec> specs;
  for (const auto& vector : local_vectors) specs.push_back({vector, vector});
  return specs;
}

template <class T>
std::string Feedback<T>::home_of(const std::string&) const {
  return "";
}

template <class T>
bool Feedback<T>::speaks(const RoundOrder&, std::size_t) const {
  return true;
}
template <class T>
void Feedback<T>::check(const Surroundings&, Problems&) const {}
template <class T>
TheoryStep Feedback<T>::theory_step_size(const TheoryFacts&) const {
  return TheoryStep::none("no theorem on the step size of this feedback is implemented");
}

template <class T>
void Feedback<T>::after_compress(const Exec&, const ClientRound<T>&, const ClientBlock<T>&, std::size_t, const Send<T>&,
                                 const Exchange<T>&) const {}

template class Feedback<float>;
template class Feedback<double>;

}  // namespace fl
