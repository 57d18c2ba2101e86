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
    const std::size_t first = piece * kRange, last = std::min(L, first + kRange);
    sum_range(messages, weights, scope, first, last, sum.data(), exec);
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

// Groups are joined like the carries of a binary counter: partial[level] holds a sum of 2^level groups.
template <class T>
void Aggregator<T>::sum_range(std::span<const Payload<T>* const> messages, std::span<const double> weights, const Scope& scope,
                              std::size_t first, std::size_t last, double* sum, const Exec& exec) const {
  const std::size_t count = last - first, groups = (messages.size() + kSumGroup - 1) / kSumGroup;
  Workspace::Frame frame(*exec.workspace);
  std::size_t levels = 1;
  while ((std::size_t{1} << levels) <= groups) ++levels;
  // accumulate() addresses coordinates from 0, so each level's buffer is shifted by `first`.
  auto* partial = frame.take<double>(levels * count);
  std::uint64_t full = 0;
  for (std::size_t group = 0; group < groups; ++group) {
    double* target = sum + first;
    std::fill_n(target, count, 0.0);
    const std::size_t from = group * kSumGroup, in_group = std::min(messages.size() - from, kSumGroup);
    accumulate(messages.subspan(from, in_group), scope, weights.subspan(from, in_group), first, last, sum);
    std::size_t level = 0;
    for (; (full >> level & 1) != 0; ++level) {
      const double* left = partial + level * count;
      for (std::size_t j = 0; j < count; ++j) target[j] = left[j] + target[j];
      full &= ~(std::uint64_t{1} << level);
    }
    std::copy_n(target, count, partial + level * count);
    full |= std::uint64_t{1} << level;
  }
  double* total = sum + first;
  bool started = false;
  for (std::size_t level = 0; level < levels; ++level) {
    if ((full >> level & 1) == 0) continue;
    const double* left = partial + level * count;
    for (std::size_t j = 0; j < count; ++j) total[j] = started ? left[j] + total[j] : left[j];
    started = true;
  }
}

template class Aggregator<float>;
template class Aggregator<double>;

}  // namespace fl
