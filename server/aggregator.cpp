#include "server/aggregator.hpp"

#include <algorithm>

#include "fl_core/message/payload_ops.hpp"
#include "fl_core/ops/cuda/payload_copy.hpp"

namespace fl {

namespace {
constexpr std::size_t kRange = 16384;        // coordinates of one piece of work: 128 KiB of partial sums
constexpr std::size_t kRowEntries = 131072;  // of the rows of one piece of work: 1 MiB
}  // namespace

template <class T>
void Aggregator<T>::sum(std::span<const Payload<T>* const> messages, std::span<const double> weights, const Scope& scope,
                        std::span<double> sum) {
  if (sum_on_device(messages, weights, scope, sum)) return;
  std::vector<Payload<T>> copies;
  std::vector<const Payload<T>*> here;
  messages = on_host(messages, copies, here);
  const std::size_t L = sum.size();
  const auto pieces = static_cast<std::uint32_t>((L + kRange - 1) / kRange);
  pool_.parallel_for(pieces, [&](std::uint32_t piece, const Exec& exec) {
    const std::size_t first = piece * kRange;
    sum_range(messages, weights, scope, {first, std::min(L, first + kRange)}, sum, exec);
  });
}

template <class T>
void Aggregator<T>::combine(const AggregationRule& rule, std::span<const Payload<T>* const> messages, std::span<const double> weights,
                            const Scope& scope, std::span<double> out) {
  std::vector<Payload<T>> copies;
  std::vector<const Payload<T>*> here, arrived;
  std::vector<double> weights_of_arrived;
  const std::span<const Payload<T>* const> readable = on_host(messages, copies, here);
  for (std::size_t i = 0; i < readable.size(); ++i) {
    if (readable[i] == nullptr) continue;
    arrived.push_back(readable[i]);
    weights_of_arrived.push_back(weights[i]);
  }
  if (arrived.empty()) {
    std::ranges::fill(out, 0.0);
    return;
  }
  const std::size_t L = out.size(), M = arrived.size(), range = std::clamp<std::size_t>(kRowEntries / M, 64, kRange);
  pool_.parallel_for(static_cast<std::uint32_t>((L + range - 1) / range), [&](std::uint32_t piece, const Exec& exec) {
    const std::size_t first = piece * range, count = std::min(L, first + range) - first;
    Workspace::Frame frame(*exec.workspace);
    auto* rows = frame.take<double>(M * count);
    std::fill_n(rows, M * count, 0.0);
    // accumulate() addresses coordinates from 0.
    for (std::size_t i = 0; i < M; ++i) accumulate(*arrived[i], scope, 1.0, first, first + count, rows + i * count - first);
    rule.combine(exec, weights_of_arrived, {rows, nullptr, static_cast<std::uint32_t>(M), count, count}, out.subspan(first, count));
  });
}

// The first message says where they lie; device_ refuses a cohort if some messages lie elsewhere.
template <class T>
bool Aggregator<T>::sum_on_device(std::span<const Payload<T>* const> messages, std::span<const double> weights, const Scope& scope,
                                  std::span<double> sum) {
  const auto sent = std::find_if(messages.begin(), messages.end(), [](const Payload<T>* m) { return m != nullptr && !m->silent; });
  if (sent == messages.end() || (*sent)->index.device() == Device::cpu) return false;
  if (device_ == nullptr) device_ = make_device_aggregation<T>();
  return device_ != nullptr && device_->sum(messages, weights, scope, sum);
}

// Messages that no device form adds up and no host may read are copied.
template <class T>
std::span<const Payload<T>* const> Aggregator<T>::on_host(std::span<const Payload<T>* const> messages, std::vector<Payload<T>>& copies,
                                                          std::vector<const Payload<T>*>& here) {
  const auto is_far = [](const Payload<T>* m) { return m != nullptr && m->index.device() == Device::cuda; };
  if (std::ranges::none_of(messages, is_far)) return messages;
  const DeviceStream stream(Device::cuda);
  copies.reserve(messages.size());
  for (const Payload<T>* message : messages) {
    here.push_back(message);
    if (!is_far(message)) continue;
    cuda::copy_payload(*message, copies.emplace_back(), stream.get());
    here.back() = &copies.back();
  }
  return here;
}

// The leaves are computed in `sum`.
template <class T>
void Aggregator<T>::sum_range(std::span<const Payload<T>* const> messages, std::span<const double> weights, const Scope& scope,
                              SumRange range, std::span<double> sum, const Exec& exec) const {
  Workspace::Frame frame(*exec.workspace);
  const std::span<double> piece = sum.subspan(range.first, range.last - range.first);
  SumTree tree(frame, num_leaves(messages.size()), piece.size());
  for (std::size_t group = 0; group < num_leaves(messages.size()); ++group) {
    leaf(group, messages, weights, scope, range, sum);
    tree.join(group, piece);
  }
  tree.total(piece);
}

template class Aggregator<float>;
template class Aggregator<double>;

}  // namespace fl
