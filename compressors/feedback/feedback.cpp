#include "compressors/feedback/feedback.hpp"

namespace fl {

std::vector<ChannelSpec> channels_of(const FeedbackPlan& plan, const std::vector<std::string>& local_vectors) {
  std::vector<ChannelSpec> channels = plan.channels;
  if (channels.empty())
    for (const std::string& vector : local_vectors) channels.push_back({.name = vector, .vector = vector});
  for (ChannelSpec& channel : channels)
    if (channel.vector.empty()) channel.vector = local_vectors.front();
  return channels;
}

template <class T>
FeedbackNeeds Feedback<T>::needs() const {
  return {};
}
template <class T>
TheoryStep Feedback<T>::theory_step_size(const TheoryFacts&) const {
  return TheoryStep::none("no theorem on the step size of this feedback is implemented");
}

template <class T>
TheoryStep Feedback<T>::tight_step_size(const TheoryFacts&) const {
  return TheoryStep::none("a tight step is known for ef14 and for ef21 without momentum; \"theory\" is a bound that is not tight");
}

template <class T>
void Feedback<T>::after_compress(const Exec&, const ClientRound<T>&, const ClientBlock<T>&, std::size_t, const Send<T>&,
                                 const Exchange<T>&) const {}

template class Feedback<float>;
template class Feedback<double>;

}  // namespace fl
