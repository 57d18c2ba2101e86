// What a round measures of messages, client by client: norms of inputs, of errors and of what compression took away.
//
// Norms are taken where the block is, on the CPU or on a GPU, with the same bits (fl_core/ops/row_norms.hpp).
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

// Norms as the published logistic-regression code stores them, where they differ from what the formulas say: it takes them after the
// memory was overwritten in place. ec_gd: error = |e_t+1|^2, compensated = |e_t+1 + gamma g_t|^2; ec_sgd: the compensated one only.
enum class PublishedMetrics { none, ec_gd, ec_sgd };

// Returns the channel whose messages are measured: the only one, or the one that is called "model"; null without such a channel.
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
  // `exchange` outlives it. For threads 0 .. num_threads-1 and cohorts of up to max_cohort.
  MessageMeasures(std::string error_slot, const Exchange<T>& exchange, PublishedMetrics published, int num_threads, std::size_t max_cohort);
  ~MessageMeasures();

  // Forgets the operators' errors of the round before.
  void begin_round();
  // What an operator is about to be given. `host` keeps what it will overwrite.
  void of_inputs(const Exec& exec, const Exec& host, const ClientRound<T>& round, const ClientBlock<T>& block, const Send<T>& send);
  // What it made of channel c's input, before the feedback sees it.
  void of_messages(const Exec& exec, const Exec& host, const ClientRound<T>& round, const ClientBlock<T>& block, std::size_t c,
                   const Send<T>& send);
  // Messages that the feedback silenced took away everything.
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
