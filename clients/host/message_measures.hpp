// Measurements of a round's messages for each client: norms of inputs, of errors and of the parts that compression removed.
//
// Norms are computed where the block lies, on the CPU or on a GPU, with the same bits (fl_core/ops/row_norms.hpp).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "compressors/exchange.hpp"
#include "compressors/feedback/feedback.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/round/client_measures.hpp"
#include "fl_core/round/cohort_runner.hpp"
#include "fl_core/round/round_views.hpp"

namespace fl {

// Norms as the published logistic-regression code stores them, if they differ from the formulas: that code computes them after it has
// overwritten the memory in place. ec_gd: error = |e_t+1|^2, compensated = |e_t+1 + gamma g_t|^2; ec_sgd: the compensated norm only.
enum class PublishedMetrics { none, ec_gd, ec_sgd };

// Returns the channel whose messages are measured: the only one, or the one with the name "model"; null without such a channel.
template <class T>
[[nodiscard]] const ExchangeChannel<T>* measured_channel(const Exchange<T>& exchange) {
  if (exchange.channels.size() == 1) return exchange.channels.data();
  for (const ExchangeChannel<T>& channel : exchange.channels)
    if (channel.name == "model") return &channel;
  return nullptr;
}

template <class T>
class MessageMeasures {
 public:
  // `exchange` outlives it. Serves threads 0 .. num_threads-1 and cohorts of up to max_cohort.
  MessageMeasures(std::string error_slot, const Exchange<T>& exchange, PublishedMetrics published, int num_threads, std::size_t max_cohort);
  ~MessageMeasures();

  // Forgets the operators' errors of the previous round.
  void begin_round();
  // Measures an operator's inputs before compression. `host` copies inputs that compression overwrites.
  void of_inputs(const Exec& exec, const Exec& host, const ClientRound<T>& round, const ClientBlock<T>& block, const Send<T>& send);
  // Measures the messages that the operator made of channel c's inputs, before the feedback sees them.
  void of_messages(const Exec& exec, const Exec& host, const ClientRound<T>& round, const ClientBlock<T>& block, std::size_t c,
                   const Send<T>& send);
  // Counts messages that the feedback silenced as a loss of the whole input.
  void of_silence(const ClientBlock<T>& block, std::size_t c);

  [[nodiscard]] std::span<const ClientMeasures> values() const { return values_; }
  [[nodiscard]] std::span<const OperatorError> operator_errors() const { return operator_errors_; }
  [[nodiscard]] std::size_t size_bytes() const;

 private:
  struct Scratch;
  [[nodiscard]] std::span<double> norms(const Exec& exec, Affine<T> rows);
  void keep(const Exec& host, const ClientBlock<T>& block, const Send<T>& send);
  void publish(const Exec& host, const ClientRound<T>& round, const ClientBlock<T>& block, const Send<T>& send);

  std::string error_slot_;  // "" = none
  const Exchange<T>& exchange_;
  PublishedMetrics published_;
  std::vector<ClientMeasures> values_;             // [M]
  std::vector<OperatorError> operator_errors_;     // [M]
  std::vector<std::unique_ptr<Scratch>> scratch_;  // per thread
};

extern template class MessageMeasures<float>;
extern template class MessageMeasures<double>;

}  // namespace fl
