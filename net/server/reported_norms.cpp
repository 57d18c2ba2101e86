#include "net/server/reported_norms.hpp"

#include "clients/host/message_measures.hpp"
#include "compressors/codec/codec.hpp"
#include "fl_core/message/payload_ops.hpp"
#include "fl_core/ops/norms.hpp"
#include "fl_core/round/kept_parameters.hpp"

namespace fl::net {

namespace {

constexpr double kUnknownNorm = std::numeric_limits<double>::quiet_NaN();
constexpr const char* kNotInRange = "its norms are not finite, or too large";
constexpr const char* kContradiction = "its norms contradict its message";

}  // namespace

template <class T>
ReportedNorms<T>::ReportedNorms(const ClientRequest<T>& request) : request_(request), channel_(measured_channel(request.method.exchange)) {}

template <class T>
bool ReportedNorms<T>::is_in_range(const StatedNorms& norms) const {
  using Metrics = EvaluateOptions::PublishedMetrics;
  const double most = most_reported<T>(request_.run.P);
  const auto is_number = [most](double value) { return value >= 0 && value <= most; };
  const auto is_number_or_none = [&is_number](double value) { return std::isnan(value) || is_number(value); };
  const ClientMeasures& m = norms.measures;
  const bool has_memory =
      !request_.method.plan.error_slot.empty() && channel_ != nullptr && request_.cell.scenario.evaluate.published_metrics == Metrics::none;
  const bool has_error = channel_ != nullptr && channel_->num_phases() == 1;
  return is_number(m.input) && is_number(m.compensated) && (is_number(m.error) || (!has_memory && std::isnan(m.error))) &&
         (is_number(m.compression_error) || (!has_error && std::isnan(m.compression_error))) &&
         is_number_or_none(norms.operator_error.input) && is_number_or_none(norms.operator_error.error);
}

// Only a method of one phase sends C(p) in one message. Its bytes may be wrong, which the reader of messages finds as well.
template <class T>
double ReportedNorms<T>::length_of(const Exec& exec, const RoundView<T>& round, int phase, const ClientMessage<T>& message) const {
  const std::vector<ExchangeChannel<T>>& channels = request_.method.exchange.channels;
  if (channel_ == nullptr || request_.method.exchange.num_phases() > 1 || !channel_->is_active_in(round.order.round, phase))
    return kUnknownNorm;
  const std::span<const std::uint32_t> client(&message.client, 1);
  std::vector<Payload<T>> contents(channels.size());
  std::vector<const Scope*> scopes;
  std::vector<std::size_t> lengths;
  std::vector<MessageLevels> known;
  std::vector<Payload<T>*> targets;
  Payload<T>* measured = nullptr;
  for (std::size_t c = 0; c < channels.size(); ++c) {
    const ExchangeChannel<T>& channel = channels[c];
    if (!channel.is_active_in(round.order.round, phase)) continue;
    scopes.push_back(&channel.phase_scope[static_cast<std::size_t>(phase)]);
    lengths.push_back(channel.length(phase));
    known.push_back(channel.compressor->known_levels(channel.context(round, phase, client), channel.scope));
    targets.push_back(&contents[c]);
    if (&channel == channel_) measured = &contents[c];
  }
  std::vector<T> averaged(round.run.kinds.num_averaged());
  if (!codec::decode<T>(message.encoded, scopes, lengths, targets, known, std::span<T>(averaged)).ok()) return kUnknownNorm;
  if (measured->silent) return 0;
  const Compressor<T>& receiver = channel_->receiver != nullptr ? *channel_->receiver : *channel_->compressor;
  receiver.reconstruct(exec, channel_->context(round, phase, client), channel_->scope, std::span(&measured, 1));
  std::vector<T> sent(channel_->scope.P);
  write_dense(*measured, channel_->scope, sent.data());
  return std::sqrt(sum_of_squares(sent.data(), sent.size()));
}

// The published metrics are norms of other vectors than p and C(p) - p.
template <class T>
std::vector<std::string> ReportedNorms<T>::leave_out(const RoundView<T>& round, int phase, std::span<const ClientMessage<T>> messages,
                                                     std::vector<StatedNorms>& norms) const {
  const bool are_published = request_.cell.scenario.evaluate.published_metrics != EvaluateOptions::PublishedMetrics::none;
  const std::size_t P = request_.run.P;
  std::vector<std::string> why(messages.size());
  request_.pool.parallel_for(static_cast<std::uint32_t>(messages.size()), [&](std::uint32_t i, const Exec& exec) {
    if (messages[i].refused) return;
    if (!is_in_range(norms[i])) {
      why[i] = kNotInRange;
      return;
    }
    const double sent = length_of(exec, round, phase, messages[i]);
    const auto contradicts = [&](double input_sq, double error_sq) {
      return !is_possible_sum<T>(sent, std::sqrt(input_sq), std::sqrt(error_sq), P);
    };
    const OperatorError& of_operator = norms[i].operator_error;
    const bool is_silent = sent == 0;  // a feedback may have silenced what the operator made
    if ((!are_published && contradicts(norms[i].measures.compensated, norms[i].measures.compression_error)) ||
        (!is_silent && contradicts(of_operator.input, of_operator.error)))
      why[i] = kContradiction;
  });
  const auto odd = static_cast<std::size_t>(std::ranges::count(why, kNotInRange));
  if (2 * odd >= messages.size())
    for (std::string& reason : why)
      if (reason == kNotInRange) reason.clear();
  for (std::size_t i = 0; i < why.size(); ++i)
    if (!why[i].empty()) norms[i] = {kLeftOutNorms, OperatorError{}};
  return why;
}

template class ReportedNorms<float>;
template class ReportedNorms<double>;

}  // namespace fl::net
