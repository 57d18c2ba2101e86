// The memory needs of an experiment, and the choice of its memory.
#include "clients/learning/device_room.hpp"
#include "fl_core/memory/device_memory.hpp"
#include "scenarios/experiment/experiment.hpp"
#include "scenarios/experiment/host_needs.hpp"

namespace fl {

// Chooses GPU memory, or managed memory if the host needs to access vectors, state or messages.
template <class T>
void Experiment<T>::choose_memory() {
  memory_.host_needs =
      host_needs(scenario_, *method_.local, *method_.feedback, method_.exchange, method_.postprocessor.plan, machine_.materialise);
  if (machine_.keeps_managed) memory_.host_needs.emplace_back("MachineOptions::keeps_managed: a test asks for it");
  memory_.device = machine_.device == Device::cpu ? Device::cpu : memory_.host_needs.empty() ? Device::cuda : Device::managed;
  if (memory_.device != Device::managed || shares_managed_memory()) return;
  std::string needs;
  for (const std::string& need : memory_.host_needs) needs += (needs.empty() ? "" : "; ") + need;
  throw DeviceError(
      "--device cuda: this GPU cannot share managed memory with a host that runs at the same time (concurrentManagedAccess "
      "is 0), and this study needs that. " +
      needs + ". Use --device cpu, or parts that stay on the GPU: `fedbits list feedbacks --device cuda` says which do");
}

template <class T>
std::uint64_t Experiment<T>::round_bytes_on_device() const {
  return sides_.simulated->most_bytes_on_device() +
         measuring_.evaluator.most_bytes_on_device(measuring_.set.ever_needs(&MeasureCost::gradients));
}

template <class T>
DeviceNeed Experiment<T>::device_need() const {
  const Dataset<T>*train = &problem_.train(), *test = problem_.test();
  DeviceNeed need;
  need.data = train;
  need.data_bytes = device_data_bytes(*train);
  if (test != nullptr && test != train) need.data_bytes += device_data_bytes(*test);
  need.round_bytes = round_bytes_on_device() + sides_.shared->size_bytes();
  need.state_bytes = sides_.simulated->state().whole_bytes();
  need.least_state_bytes = sides_.simulated->state().least_bytes();
  // Pinned memory holds counts of messages and the server's sums of messages, by both kinds of weights.
  need.pinned_bytes = sides_.simulated->most_pinned_bytes() + method_.exchange.channels.size() * 2 * problem_.P() * sizeof(double);
  need.needs_managed = memory_.host_needs;
  need.trains_on_cpu = why_clients_train_on_cpu(scenario_, *method_.local, problem_.model());
  if (memory_.host_needs.empty()) need.pinned_bytes += sides_.shared->size_bytes();  // kernels receive copies, which round_bytes counts
  return need;
}

template <class T>
std::size_t Experiment<T>::size_bytes() const {
  const std::size_t gradients = static_cast<std::size_t>(pool_.num_threads()) * whole_minibatch().bytes;
  const std::size_t working = machine_.device == Device::cpu ? gradients : round_bytes_on_device();
  const std::size_t of_clients = sides_.simulated == nullptr ? 0 : sides_.simulated->size_bytes();
  return of_clients + sides_.shared->size_bytes() + sides_.server.state->size_bytes() + working;
}

template <class T>
WholeMinibatch Experiment<T>::whole_minibatch() const {
  return sides_.simulated == nullptr ? WholeMinibatch{} : sides_.simulated->whole_minibatch();
}

// Instantiates the members defined in this file; the other files instantiate theirs.
#define FL_INSTANTIATE(T)                                              \
  template void Experiment<T>::choose_memory();                        \
  template std::uint64_t Experiment<T>::round_bytes_on_device() const; \
  template DeviceNeed Experiment<T>::device_need() const;              \
  template std::size_t Experiment<T>::size_bytes() const;              \
  template WholeMinibatch Experiment<T>::whole_minibatch() const;
FL_INSTANTIATE(float)
FL_INSTANTIATE(double)
#undef FL_INSTANTIATE

}  // namespace fl
