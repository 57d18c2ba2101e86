#include "clients/host/message_measures.hpp"

#include <algorithm>
#include <limits>

#include "clients/host/device_views.hpp"
#include "fl_core/memory/buffer.hpp"
#include "fl_core/ops/cpu/tile.hpp"
#include "fl_core/ops/message_sums.hpp"
#include "fl_core/ops/row_norms.hpp"

namespace fl {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

}  // namespace

template <class T>
struct MessageMeasures<T>::Scratch {
  std::vector<double> norm;  // [K]
  Buffer<T> kept;            // [K,P] copy of inputs that compression overwrites in place
  Buffer<T> kept_gradient;   // [K,P] for published metrics
};

template <class T>
MessageMeasures<T>::MessageMeasures(std::string error_slot, const Exchange<T>& exchange, PublishedMetrics published, int num_threads,
                                    std::size_t max_cohort)
    : error_slot_(std::move(error_slot)), exchange_(exchange), published_(published), values_(max_cohort), operator_errors_(max_cohort) {
  for (int thread = 0; thread < num_threads; ++thread) scratch_.push_back(std::make_unique<Scratch>());
}

template <class T>
MessageMeasures<T>::~MessageMeasures() = default;

template <class T>
void MessageMeasures<T>::begin_round() {
  std::ranges::fill(operator_errors_, OperatorError{});
}

// Returns the sums of squares of the rows: [K], valid until the next call of this thread.
template <class T>
std::span<double> MessageMeasures<T>::norms(const Exec& exec, Affine<T> rows) {
  std::vector<double>& norm = scratch_[static_cast<std::size_t>(exec.thread)]->norm;
  norm.resize(rows.clients());
  Workspace::Frame frame(*exec.workspace);
  sums_of_squares(exec, reachable(exec, rows, frame), std::span<double>(norm));
  return norm;
}

template <class T>
void MessageMeasures<T>::of_inputs(const Exec& exec, const Exec& host, const ClientRound<T>& round, const ClientBlock<T>& block,
                                   const Send<T>& send) {
  const std::span<ClientMeasures> mine = std::span(values_).subspan(block.first, block.K);
  const std::span<double> compensated = norms(exec, send.input);
  for (std::uint32_t k = 0; k < block.K; ++k) mine[k].compensated = operator_errors_[block.first + k].input = compensated[k];
  const std::span<double> input = norms(exec, Affine<T>().add(round.input_factor(), block.vectors[0]));
  for (std::uint32_t k = 0; k < block.K; ++k) mine[k].input = input[k];
  const std::string& slot = error_slot_;
  const std::span<double> error = slot.empty() ? std::span<double>() : norms(exec, Affine<T>().add(T(1), block.stored(round.state, slot)));
  for (std::uint32_t k = 0; k < block.K; ++k) mine[k].error = slot.empty() ? kUnknown : error[k];
  keep(host, block, send);
}

template <class T>
void MessageMeasures<T>::keep(const Exec& host, const ClientBlock<T>& block, const Send<T>& send) {
  Scratch& scratch = *scratch_[static_cast<std::size_t>(host.thread)];
  const std::size_t P = send.input.size();
  if (send.state.rule == StateRule::zero_where_sent) {
    scratch.kept.resize_discard(block.K * P);
    for (std::uint32_t k = 0; k < block.K; ++k) cpu::load_tile(send.input, k, 0, P, scratch.kept.data() + k * P);
  }
  if (published_ == PublishedMetrics::none) return;
  scratch.kept_gradient.resize_discard(block.K * P);
  for (std::uint32_t k = 0; k < block.K; ++k) std::copy_n(block.vectors[0].row(k), P, scratch.kept_gradient.data() + k * P);
}

template <class T>
void MessageMeasures<T>::of_messages(const Exec& exec, const Exec& host, const ClientRound<T>& round, const ClientBlock<T>& block,
                                     std::size_t c, const Send<T>& send) {
  const std::span<Payload<T>* const> messages = block.messages[c];
  const Scope& scope = exchange_.channels[c].scope;
  std::span<double> error;
  if (send.state.rule == StateRule::residual) {
    error = norms(exec, Affine<T>().add(T(1), send.state.out));
  } else if (messages[0]->length == round.P()) {
    Scratch& scratch = *scratch_[static_cast<std::size_t>(exec.thread)];
    scratch.norm.resize(block.K);
    error = scratch.norm;
    const bool is_kept = send.state.rule == StateRule::zero_where_sent;
    const bool there = !is_kept && std::all_of(messages.begin(), messages.end(), [](const Payload<T>* m) { return lies_on_device(*m); });
    const Exec& where = there ? exec : host;
    Workspace::Frame frame(*where.workspace);
    const BatchView<const T> kept{scratch_[static_cast<std::size_t>(host.thread)]->kept.data(), nullptr, block.K, round.P(), round.P()};
    const Affine<T> input = is_kept ? Affine<T>().add(T(1), kept) : reachable(where, send.input, frame);
    sums_of_squared_errors(where, input, scope, messages, error);
  }
  for (std::uint32_t k = 0; k < block.K; ++k) values_[block.first + k].compression_error = error.empty() ? kUnknown : error[k];
  for (std::uint32_t k = 0; k < block.K && !error.empty() && !send.dense; ++k) operator_errors_[block.first + k].error = error[k];
  if (published_ != PublishedMetrics::none && send.state.rule == StateRule::residual) publish(host, round, block, send);
}

template <class T>
void MessageMeasures<T>::publish(const Exec& host, const ClientRound<T>& round, const ClientBlock<T>& block, const Send<T>& send) {
  const BatchView<const T> gradient{scratch_[static_cast<std::size_t>(host.thread)]->kept_gradient.data(), nullptr, block.K, round.P(),
                                    round.P()};
  const std::span<ClientMeasures> mine = std::span(values_).subspan(block.first, block.K);
  const std::span<double> compensated = norms(host, Affine<T>().add(T(1), send.state.out).add(round.input_factor(), gradient));
  for (std::uint32_t k = 0; k < block.K; ++k) {
    mine[k].compensated = compensated[k];
    if (published_ == PublishedMetrics::ec_gd) mine[k].error = mine[k].compression_error;
  }
}

template <class T>
void MessageMeasures<T>::of_silence(const ClientBlock<T>& block, std::size_t c) {
  for (std::uint32_t k = 0; k < block.K; ++k) {
    ClientMeasures& m = values_[block.first + k];
    if (block.messages[c][k]->silent) m.compression_error = m.compensated;
  }
}

template <class T>
std::size_t MessageMeasures<T>::size_bytes() const {
  std::size_t bytes = 0;
  for (const auto& scratch : scratch_) bytes += (scratch->kept.capacity() + scratch->kept_gradient.capacity()) * sizeof(T);
  return bytes;
}

template class MessageMeasures<float>;
template class MessageMeasures<double>;

}  // namespace fl
