// The first half of a block's work: the vectors that its clients want to send, computed on the CPU's threads or on a GPU, or given.
#pragma once

#include <memory>
#include <vector>

#include "clients/host/cohort_messages.hpp"
#include "clients/host/runner_parts.hpp"
#include "clients/learning/device_training.hpp"
#include "fl_core/memory/buffer.hpp"

namespace fl {

template <class T>
class LocalTraining {
 public:
  // The parts outlive it. `reads_given`: operators read given vectors where they are; otherwise they are copied to the block.
  LocalTraining(const BlockRunnerParts<T>& parts, const BlockRunnerOptions& options, bool reads_given);

  // Writes the marks of refused clients and the own values of the following blocks into `sent`.
  void write_to(CohortMessages<T>& sent) { sent_ = &sent; }
  // Names the models at which the block's clients begin, and fills its vectors.
  void run(const Exec& exec, const ClientRound<T>& round, ClientBlock<T>& block);
  void postprocess(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block);

  // Returns null if clients train on the CPU.
  [[nodiscard]] const DeviceTraining<T>* on_device() const { return on_device_.get(); }

 private:
  void take_given(const ClientBlock<T>& block);
  void open_own(const ClientRound<T>& round, const ClientBlock<T>& block);
  // Returns the models at which the clients of a block begin: w, or, in `room` [K,P] unless it is null, their own models, w - offset_factor
  // m_i with the weights that they keep. Entries of running averages are those of w.
  [[nodiscard]] BatchView<const T> start_of(const ClientRound<T>& round, const ClientBlock<T>& block, T* room) const;
  void train_on_cpu(const Exec& exec, const ClientRound<T>& round, ClientBlock<T>& block);
  // Runs the local updates into rows on the host and copies these to the block's rows.
  void train_and_upload(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block);
  void refuse_non_finite(const ClientBlock<T>& block);

  const BlockRunnerParts<T> parts_;
  const BlockRunnerOptions options_;
  const bool reads_given_;
  std::unique_ptr<DeviceTraining<T>> on_device_;
  std::vector<Buffer<T>> trained_;  // by local vector: [K,P] of a block that was trained on the host
  CohortMessages<T>* sent_ = nullptr;
};

extern template class LocalTraining<float>;
extern template class LocalTraining<double>;

}  // namespace fl
