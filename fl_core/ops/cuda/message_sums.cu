#include <algorithm>
#include <vector>

#include "fl_core/message/payload_segments.hpp"
#include "fl_core/ops/cuda/message_sums.hpp"
#include "fl_core/ops/cuda/ops.cuh"

namespace fl::cuda {
namespace {

// One client's entries: at positions index[i], or all in order.
template <class T>
struct SentEntries {
  std::size_t count = 0;
  const std::uint32_t* index = nullptr;
  detail::EntryNumber<T> number{};
};

template <class T>
struct AddScaled {
  T factor;
  T* row;
  FL_HD void operator()(std::size_t j, T c) const { row[j] += factor * c; }
};

// The same for the first row of a view, whose number the GPU alone knows.
template <class T>
struct AddScaledToRow {
  T factor;
  BatchView<T> rows;
  FL_HD void operator()(std::size_t j, T c) const { rows.row(0)[j] += factor * c; }
};

// No entry of a message has the position of another.
template <class T>
__global__ void add_entries(ScopePlan plan, const SentEntries<T>* sent, std::size_t num_messages, std::size_t blocks_each, T factor,
                            BatchView<T> rows) {
  for (std::size_t block = blockIdx.x; block < num_messages * blocks_each; block += gridDim.x) {
    const std::size_t k = block / blocks_each, i = (block - k * blocks_each) * kBlockThreads + threadIdx.x;
    const SentEntries<T> mine = sent[k];
    if (i < mine.count) detail::VisitEntry<T, AddScaled<T>>{plan, mine.index, mine.number, {factor, rows.row(k)}}(i);
  }
}

template <class T>
void add(const Exec& exec, std::span<const SentEntries<T>> sent, std::span<const Segment> segments, T factor, BatchView<T> rows) {
  std::size_t most = 0;
  for (const SentEntries<T>& one : sent) most = std::max(most, one.count);
  if (most == 0) return;
  Workspace::Frame frame(*exec.workspace);
  const std::size_t blocks = blocks_for(most);
  Launch(exec, "add_entries", sent.size() * blocks)(add_entries<T>, plan_segments(exec, segments, frame), upload(exec, sent, frame),
                                                    sent.size(), blocks, factor, rows);
}

template <class T>
[[nodiscard]] SentEntries<T> entries_of(const Payload<T>& message) {
  return {
      message.num_sent,
      message.positions == Positions::list ? message.index.data() : nullptr,
      {message.values, message.level_format, message.level_width, message.value.data(), message.level_bytes.data(), message.scale.data()}};
}
template <class T>
[[nodiscard]] SentEntries<T> excluded_of(const Payload<T>& message) {
  return {message.excluded.size(), nullptr, {kNativeWire<T>, {}, LevelWidth::w8, message.excluded.data(), nullptr, nullptr}};
}

// Rows of what is one client's alone.
template <class T>
[[nodiscard]] BatchView<T> row_of(BatchView<T> rows, std::size_t k) {
  return rows.slice(static_cast<std::uint32_t>(k), 1);
}

// Products of factors, and vectors with a shape of their own: message by message.
template <class T>
void add_alone(const Exec& exec, const Payload<T>& message, const Scope& scope, T factor, BatchView<T> row) {
  if (message.positions == Positions::factors) return detail::visit_products(exec, message, scope, AddScaledToRow<T>{factor, row});
  Segment plain;
  const SentEntries<T> sent = entries_of(message);
  add(exec, std::span(&sent, 1), message_segments(scope, true, message.length, plain), factor, row);
}

template <class T>
[[nodiscard]] bool is_alone(const Payload<T>& message, const Scope& scope) {
  return message.positions == Positions::factors || has_own_shape(message, scope);
}

}  // namespace

template <class T>
void add_messages(const Exec& exec, std::span<const Payload<T>* const> messages, const Scope& scope, T factor, BatchView<T> rows) {
  std::vector<SentEntries<T>> together(messages.size()), excluded(messages.size());
  std::vector<const Payload<T>*> rest(messages.size(), nullptr);
  bool has_rest = false;
  for (std::size_t k = 0; k < messages.size(); ++k) {
    const Payload<T>* message = messages[k];
    if (message == nullptr) continue;
    rest[k] = message->rest.get();
    has_rest = has_rest || rest[k] != nullptr;
    if (message->silent) continue;
    if (is_alone(*message, scope))
      add_alone(exec, *message, scope, factor, row_of(rows, k));
    else
      together[k] = entries_of(*message);
    excluded[k] = excluded_of(*message);
  }
  add(exec, std::span<const SentEntries<T>>(together), scope.segments, factor, rows);
  add(exec, std::span<const SentEntries<T>>(excluded), scope.excluded, factor, rows);
  if (has_rest) add_messages(exec, std::span<const Payload<T>* const>(rest), scope, factor, rows);
}

template void add_messages<float>(const Exec&, std::span<const Payload<float>* const>, const Scope&, float, BatchView<float>);
template void add_messages<double>(const Exec&, std::span<const Payload<double>* const>, const Scope&, double, BatchView<double>);

}  // namespace fl::cuda
