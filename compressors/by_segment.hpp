// Different operators for different segments of one message: what per-layer schedules share.
//
// Each segment is compressed alone and the parts are joined. That works for messages that need not say every entry: lists of raw values,
// and factors; one message has one kind of values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "compressors/compressor.hpp"
#include "compressors/wrapped.hpp"
#include "fl_core/error.hpp"
#include "fl_core/workspace.hpp"

namespace fl {

// The scope of one segment by itself, within the same vector.
[[nodiscard]] inline Scope alone(const Scope& scope, std::size_t s) {
  return {.kind = scope.kind, .segments = {scope.segments[s]}, .excluded = {}, .P = scope.P};
}

// The message of segment s of x [P], in the scope of that segment alone.
template <class T>
void compress_segment(const Exec& exec, const CompressContext<T>& context, const Wrapped<T>& op, const T* x, const Scope& scope,
                      std::size_t s, std::size_t k, Payload<T>& part) {
  const Scope own = alone(scope, s);
  Payload<T>* target = &part;
  part.clear(scope.P);
  op->compress(exec, inner_context(context, k, s + 1), vector_input(x, scope.P), own, StateWrite<T>{},
               std::span<Payload<T>* const>(&target, 1));
}

// Throws ConfigError unless a message of the operator for one segment can be joined with others.
template <class T>
void demand_joinable(const std::string& owner, const Wrapped<T>& op, const Scope& scope) {
  Workspace workspace;
  Exec exec;
  exec.workspace = &workspace;
  const std::vector<T> zeros(scope.P, T(0));
  const std::uint32_t client = 0;
  CompressContext<T> context;
  context.clients = {&client, 1};
  Payload<T> part;
  compress_segment(exec, context, op, zeros.data(), scope, 0, 0, part);
  const bool is_raw = part.values != WireValue::levels && part.rest == nullptr;
  if (part.positions == Positions::all || !is_raw)
    throw ConfigError(owner + ": '" + op.name() +
                      "' sends every entry or levels; only operators that send raw values of some entries, or factors, differ by layer");
}

// Joins the messages of all segments, [S] of them in order.
template <class T>
void join_segments(const Scope& scope, const std::vector<Payload<T>>& parts, Payload<T>& message) {
  std::size_t total = 0;
  for (const Payload<T>& part : parts) total += part.num_sent;
  message.positions = parts.front().positions;
  message.values = parts.front().values;
  message.counts.resize_discard(scope.segments.size());
  message.value.resize_discard(total);
  message.index.resize_discard(message.positions == Positions::list ? total : 0);
  message.num_sent = 0;
  for (std::size_t s = 0; s < parts.size(); ++s) {
    const Payload<T>& part = parts[s];
    if (part.positions != message.positions || part.values != message.values)
      throw ConfigError("operators of one message must send the same kind of values; these differ by layer");
    message.counts[s] = part.counts[0];
    std::copy(part.value.begin(), part.value.end(), message.value.begin() + static_cast<std::ptrdiff_t>(message.num_sent));
    std::copy(part.index.begin(), part.index.end(),
              message.index.begin() + static_cast<std::ptrdiff_t>(part.index.empty() ? 0 : message.num_sent));
    message.num_sent += part.num_sent;
  }
}

// The weakest of several promises: what holds whichever operator is used.
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
    if (all.domain.find(one.domain) == std::string::npos) all.domain += (all.domain.empty() ? "" : "; ") + one.domain;
    all.linear = all.linear && one.linear;
  }
  return all;
}

}  // namespace fl
