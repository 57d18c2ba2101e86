// Helpers for per-layer schedules, which use different operators for different segments of one message.
//
// Each segment is compressed alone and the parts are joined. This works for messages that need not describe every entry: lists of raw
// values, and factors. All values of one message have the same kind.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "compressors/compressor.hpp"
#include "compressors/support/quantizer.hpp"
#include "compressors/support/state_from_message.hpp"
#include "compressors/support/wrapped.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/memory/buffer.hpp"
#include "fl_core/memory/workspace.hpp"

namespace fl {

// Returns the scope that consists of segment s alone, within the same vector.
[[nodiscard]] inline Scope alone(const Scope& scope, std::size_t s) {
  return {.kind = scope.kind, .segments = {scope.segments[s]}, .excluded = {}, .P = scope.P};
}

// Returns the beginning of segment s as a vector of its own, of at most `most` numbers. A matrix stays one.
[[nodiscard]] inline Scope beginning_of(const Scope& scope, std::size_t s, std::size_t most) {
  Segment segment = scope.segments[s];
  while (segment.rows * segment.cols > most) {
    std::size_t& longer = segment.rows >= segment.cols ? segment.rows : segment.cols;
    longer -= longer / 2;
  }
  segment.begin = 0;
  segment.end = segment.rows * segment.cols;
  return {.kind = scope.kind, .segments = {segment}, .excluded = {}, .P = segment.end};
}

// Returns the weakest of several contracts, which holds whichever operator is used.
[[nodiscard]] inline Contract weakest(const std::vector<Contract>& contracts) {
  Contract all = contracts.front();
  for (const Contract& one : contracts) {
    const auto join = [](std::optional<double>& a, const std::optional<double>& b, bool takes_larger) {
      if (a && b)
        a = takes_larger ? std::max(*a, *b) : std::min(*a, *b);
      else
        a.reset();
    };
    join(all.kappa, one.kappa, true);
    join(all.delta, one.delta, false);
    join(all.omega, one.omega, true);
    if (one.kappa_holds == Contract::Holds::in_expectation) all.kappa_holds = one.kappa_holds;
    if (one.delta_holds == Contract::Holds::in_expectation) all.delta_holds = one.delta_holds;
    all.domain = in_both(all.domain, one.domain);
    all.linear = all.linear && one.linear;
    if (all.cost && one.cost)
      all.cost = EntryCost{std::max(all.cost->passes, one.cost->passes), std::max(all.cost->operations, one.cost->operations)};
    else
      all.cost.reset();
  }
  return all;
}

namespace FL_DEVICE_NS {

// Writes the message of segment s of x [P] to `part`, in the scope of that segment alone.
template <class T>
void compress_segment(const Exec& exec, const CompressContext<T>& context, const Wrapped<T>& op, const T* x, const Scope& scope,
                      std::size_t s, std::size_t k, Payload<T>& part) {
  const Scope own = alone(scope, s);
  Payload<T>* target = &part;
  part.clear(scope.P);
  op->compress(exec, inner_context(context, k, s + 1), vector_input(x, scope.P), own, StateWrite<T>{},
               std::span<Payload<T>* const>(&target, 1));
}

template <class T>
[[nodiscard]] bool accepts(const Wrapped<T>& op, const Scope& scope) {
  try {
    op->check(scope);
  } catch (const ConfigError&) {
    return false;
  }
  return true;
}

// Returns a scope on which an operator sends the same kind of message as for the first segment: the segment, or the beginning of a long
// one. It is about four times as long as the operator needs, whatever the length of the segment.
template <class T>
[[nodiscard]] Scope trial_scope(const Wrapped<T>& op, const Scope& scope) {
  constexpr std::size_t kFirst = std::size_t{1} << 12, kFactor = 4;
  std::size_t most = kFirst;
  while (most < scope.segments[0].size() && !accepts(op, beginning_of(scope, 0, most / kFactor))) most *= kFactor;
  return beginning_of(scope, 0, most);
}

// Throws ConfigError unless the operator's message for one segment can be joined with other messages.
template <class T>
void demand_joinable(const std::string& owner, const Wrapped<T>& op, const Scope& whole) {
  const Scope scope = trial_scope(op, whole);
  Workspace workspace(kThisDevice);
  Exec exec;
  const DeviceStream stream(kThisDevice);
  exec.device = kThisDevice;
  exec.stream = stream.get();
  exec.workspace = &workspace;
  const std::vector<std::uint32_t> clients = {0};
  CompressContext<T> context;
  context.clients = clients;
  // Some operators send an empty list for zeros, and levels or all entries for other numbers.
  for (const T number : {T(0), T(1), T(0x1p40)}) {
    const std::vector<T> vector(scope.P, number);
    Buffer<T> input(scope.P, kThisDevice);
    copy_bytes(input.data(), kThisDevice, vector.data(), Device::cpu, scope.P * sizeof(T), exec.stream);
    Payload<T> part;
    compress_segment(exec, context, op, input.data(), scope, 0, 0, part);
    const bool is_raw = part.values != WireValue::levels && part.rest == nullptr && &part.on_wire() == &part;
    if (part.positions == Positions::all || !is_raw)
      throw ConfigError(owner + ": '" + op.name() +
                        "' sends every entry or levels; only operators that send raw values of some entries, or factors, differ by layer");
  }
}

// Reuses the buffers for messages of single segments between calls, because GPU memory is slow to allocate. Each CPU thread takes its own
// set.
template <class T>
class SegmentParts {
 public:
  using Parts = std::vector<Payload<T>>;
  // Returns a set of at least S messages. The caller returns the set by give().
  [[nodiscard]] std::unique_ptr<Parts> take(std::size_t S) {
    std::unique_ptr<Parts> parts;
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        parts = std::move(free_.back());
        free_.pop_back();
      }
    }
    if (parts == nullptr) parts = std::make_unique<Parts>();
    if (parts->size() < S) parts->resize(S);
    return parts;
  }
  void give(std::unique_ptr<Parts> parts) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(parts));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Parts>> free_;
};

// Joins the messages of all segments: the first S of `parts`, in order. Throws ConfigError if they send different kinds of values.
template <class T>
void join_segments(const Exec& exec, const Scope& scope, const std::vector<Payload<T>>& parts, Payload<T>& message) {
  const std::size_t S = scope.segments.size();
  std::size_t total = 0;
  std::vector<std::uint32_t> counts;
  for (std::size_t s = 0; s < S; ++s) {
    const Segment& m = scope.segments[s];
    if (parts[s].positions != parts[0].positions || parts[s].values != parts[0].values)
      throw ConfigError("operators of one message must send the same kind of values; these differ by layer");
    // A segment with factors of rank r sends r (rows + cols) numbers.
    const bool is_list = parts[s].positions == Positions::list;
    counts.push_back(static_cast<std::uint32_t>(is_list ? parts[s].num_sent : parts[s].num_sent / (m.rows + m.cols)));
    total += parts[s].num_sent;
  }
  message.place_on(kThisDevice);
  message.positions = parts[0].positions;
  message.values = parts[0].values;
  message.num_sent = total;
  message.counts.resize_discard(S);
  message.value.resize_discard(total);
  message.index.resize_discard(message.positions == Positions::list ? total : 0);
  copy_bytes(message.counts.data(), kThisDevice, counts.data(), Device::cpu, S * sizeof(std::uint32_t), exec.stream);
  std::size_t at = 0;
  for (std::size_t s = 0; s < S; at += parts[s++].num_sent) {
    for_each(exec, parts[s].num_sent, CopyElements<T>{parts[s].value.data(), message.value.data() + at});
    if (message.positions == Positions::list)
      for_each(exec, parts[s].num_sent, CopyElements<std::uint32_t>{parts[s].index.data(), message.index.data() + at});
  }
}

}  // namespace FL_DEVICE_NS

}  // namespace fl
