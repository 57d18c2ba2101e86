#include "fl_core/message/payload_ops.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "fl_core/config/error.hpp"
#include "fl_core/message/payload_segments.hpp"

namespace fl {

namespace {

// ---- where values come from: source(i) is the number that entry i stands for ----

template <class T>
struct RawSource {
  const T* value;
  T operator()(std::size_t i) const { return value[i]; }
};

// Functors that compute level_value(), with the segment's constants worked out before: the same expression, hence the same bits.
template <class T, class L>
struct LinearSource {
  const L* level;
  T step;  // scale * unit
  T operator()(std::size_t i) const { return static_cast<T>(static_cast<std::int32_t>(level[i])) * step; }
};

template <class T, class L>
struct SignSource {
  const L* level;
  T scale;
  T operator()(std::size_t i) const { return level[i] != 0 ? scale : -scale; }
};

template <class T, class L>
struct TableSource {
  const L* level;
  const T* table;  // of level - min_level
  std::int32_t min_level;
  T operator()(std::size_t i) const { return table[static_cast<std::int32_t>(level[i]) - min_level]; }
};

template <class T, class L>
struct TwoValueSource {
  const L* level;
  T low, high;
  T operator()(std::size_t i) const { return level[i] != 0 ? high : low; }
};

template <class T, class L>
struct ScaledTableSource {
  const L* level;
  const T* table;
  std::int32_t min_level;
  T scale;
  T operator()(std::size_t i) const { return table[static_cast<std::int32_t>(level[i]) - min_level] * scale; }
};

template <class T, class L>
struct GeneralSource {
  const L* level;
  const LevelFormat* format;
  const T* scale;  // of the segment
  T operator()(std::size_t i) const { return level_value(*format, static_cast<std::int32_t>(level[i]), scale); }
};

// Entries from .. to-1 of one segment: parameter index[i], or i + shift where all are sent.
struct Run {
  std::size_t scale = 0;  // the row of the segment's scales
  std::size_t from = 0, to = 0;
  const std::uint32_t* index = nullptr;
  std::size_t shift = 0;
};

// The numbers of all levels at scale 1 for maps that take more than a multiplication, where a message has more entries than levels.
template <class T>
std::vector<T> number_table(const Payload<T>& message) {
  constexpr unsigned kTableBits = 12;
  LevelFormat format = message.level_format;
  std::vector<T> table;
  if (message.values != WireValue::levels || format.bits > kTableBits || message.num_sent < (std::size_t{1} << format.bits)) return table;
  if (format.map != LevelMap::power_of_two && format.map != LevelMap::dynamic_tree && format.map != LevelMap::fp8_e4m3 &&
      format.map != LevelMap::fp8_e5m2) {
    return table;
  }
  format.has_scale = false;
  table.resize(std::size_t{1} << format.bits);
  for (std::size_t code = 0; code < table.size(); ++code) {
    table[code] = level_value(format, format.min_level + static_cast<std::int32_t>(code), T(1));
  }
  return table;
}

template <class T, class Source, class Op>
void apply(const Run& run, Source source, Op op) {
  if (run.index != nullptr) {
    for (std::size_t i = run.from; i < run.to; ++i) op(run.index[i], source(i));
  } else {
    for (std::size_t i = run.from; i < run.to; ++i) op(i + run.shift, source(i));
  }
}

template <class T, class L, class Op>
void apply_levels(const Payload<T>& message, const std::vector<T>& numbers, const Run& run, Op op) {
  const LevelFormat& format = message.level_format;
  const L* level = message.template levels<L>();
  const std::int32_t min = format.min_level;
  const T one = T(1);
  const T* scale = format.has_scale ? message.scale.data() + run.scale * scales_per_segment(format) : &one;
  switch (format.map) {
    case LevelMap::linear: return apply<T>(run, LinearSource<T, L>{level, *scale * static_cast<T>(format.unit)}, op);
    case LevelMap::sign: return apply<T>(run, SignSource<T, L>{level, *scale}, op);
    case LevelMap::two_values: return apply<T>(run, TwoValueSource<T, L>{level, scale[0], scale[1]}, op);
    case LevelMap::table: return apply<T>(run, TableSource<T, L>{level, scale, min}, op);
    case LevelMap::power_of_two:
    case LevelMap::dynamic_tree:
    case LevelMap::fp8_e4m3:
    case LevelMap::fp8_e5m2:
      if (!numbers.empty()) return apply<T>(run, ScaledTableSource<T, L>{level, numbers.data(), min, *scale}, op);
      break;
  }
  apply<T>(run, GeneralSource<T, L>{level, &format, scale}, op);
}

template <class T, class Op>
void apply_run(const Payload<T>& message, const std::vector<T>& numbers, const Run& run, Op op) {
  if (run.from >= run.to) return;
  if (message.values != WireValue::levels) return apply<T>(run, RawSource<T>{message.value.data()}, op);
  switch (message.level_width) {
    case LevelWidth::w8: return apply_levels<T, std::int8_t>(message, numbers, run, op);
    case LevelWidth::w16: return apply_levels<T, std::int16_t>(message, numbers, run, op);
    case LevelWidth::w32: return apply_levels<T, std::int32_t>(message, numbers, run, op);
  }
}

// Entries of each segment that lie in first .. last-1, as runs. Indices ascend over the whole message, so a list needs no counts.
template <class T, class Visit>
void for_each_run(const Payload<T>& message, const Scope& scope, std::size_t first, std::size_t last, Visit visit) {
  Segment plain;
  const bool own_shape = has_own_shape(message, scope);
  const auto segments = message_segments(scope, own_shape, message.length, plain);
  auto segment = std::partition_point(segments.begin(), segments.end(), [&](const Segment& s) { return s.end <= first; });
  if (message.positions == Positions::list) {
    const std::uint32_t* const begin = message.index.data();
    const std::uint32_t* const end = begin + message.num_sent;
    const std::uint32_t* at = std::lower_bound(begin, end, first);
    const bool skips = has_sending_scales_alone(message, segments.size());
    const auto is_sending = [&](std::size_t s) { return !skips || message.counts[s] > 0; };
    std::size_t row = 0;
    for (std::size_t s = 0; s < static_cast<std::size_t>(segment - segments.begin()); ++s) row += is_sending(s) ? 1 : 0;
    for (; segment != segments.end() && segment->begin < last && at != end; ++segment) {
      const std::size_t stop = std::min(last, segment->end);
      const std::uint32_t* const next = segments.size() == 1 && stop >= message.length ? end : std::lower_bound(at, end, stop);
      visit(Run{.scale = row,
                .from = static_cast<std::size_t>(at - begin),
                .to = static_cast<std::size_t>(next - begin),
                .index = begin,
                .shift = 0});
      at = next;
      row += is_sending(static_cast<std::size_t>(segment - segments.begin())) ? 1 : 0;
    }
    return;
  }
  // Entry i of parameter j: j less the parameters before it that segments leave out.
  std::size_t left_out = 0;
  auto tensor = scope.excluded.begin();
  auto unshared = scope.unshared.begin();
  for (; segment != segments.end() && segment->begin < last; ++segment) {
    for (; !own_shape && tensor != scope.excluded.end() && tensor->begin < segment->begin; ++tensor) left_out += tensor->size();
    for (; !own_shape && unshared != scope.unshared.end() && unshared->begin < segment->begin; ++unshared) left_out += unshared->size();
    visit(Run{.scale = static_cast<std::size_t>(segment - segments.begin()),
              .from = std::max(first, segment->begin) - left_out,
              .to = std::min(last, segment->end) - left_out,
              .index = nullptr,
              .shift = left_out});
  }
}

// The same for products of factors; a segment of rank 0 sends nothing.
template <class T, class Op>
void for_each_factor_entry(const Payload<T>& message, const Scope& scope, std::size_t first, std::size_t last, Op op) {
  const T* left = message.value.data();
  for (std::size_t s = 0; s < scope.segments.size(); ++s) {
    const Segment& m = scope.segments[s];
    const std::size_t rank = message.counts[s];
    const T* right = left + m.rows * rank;
    for (std::size_t j = std::max(first, m.begin); rank > 0 && j < std::min(last, m.end); ++j)
      op(j, factor_entry(left, right, rank, (j - m.begin) / m.cols, (j - m.begin) % m.cols));
    left = right + m.cols * rank;
  }
}

// op(j, c_j) for every entry in first .. last-1, excluded tensors last.
template <class T, class Op>
void for_each_entry(const Payload<T>& message, const Scope& scope, std::size_t first, std::size_t last, Op op) {
  if (message.silent) return;
  if (message.positions == Positions::factors) {
    for_each_factor_entry(message, scope, first, last, op);
  } else {
    const std::vector<T> numbers = number_table(message);
    for_each_run(message, scope, first, last, [&](const Run& run) { apply_run(message, numbers, run, op); });
  }
  if (message.excluded.empty()) return;
  if (message.excluded.size() != num_excluded(scope) || message.length != scope.P) {
    throw Error("a message brings " + std::to_string(message.excluded.size()) + " excluded values for a vector of " +
                std::to_string(message.length) + " elements, where the scope excludes " + std::to_string(num_excluded(scope)) + " of " +
                std::to_string(scope.P));
  }
  const T* value = message.excluded.data();
  for (const Segment& tensor : scope.excluded) {
    for (std::size_t j = std::max(first, tensor.begin); j < std::min(last, tensor.end); ++j) op(j, value[j - tensor.begin]);
    value += tensor.size();
  }
}

// Whether value[j] is c_j for all j.
template <class T>
bool is_plain_vector(const Payload<T>& message) {
  return !message.silent && message.positions == Positions::all && message.values != WireValue::levels && message.excluded.empty() &&
         message.num_sent == message.length && message.rest == nullptr;
}

constexpr std::size_t kTogether = 8;
template <class T>
void accumulate_vectors(std::span<const Payload<T>* const, kTogether> messages, std::span<const double, kTogether> weights,
                        std::size_t first, std::size_t last, double* __restrict sum) {
  const T* c[kTogether];
  double weight[kTogether];
  for (std::size_t m = 0; m < kTogether; ++m) {
    c[m] = messages[m]->value.data();
    weight[m] = weights[m];
  }
  for (std::size_t j = first; j < last; ++j) {
    double total = sum[j];
#pragma GCC unroll 8
    for (std::size_t m = 0; m < kTogether; ++m) total += weight[m] * static_cast<double>(c[m][j]);
    sum[j] = total;
  }
}

}  // namespace

template <class T>
void add_scaled(const Payload<T>& message, const Scope& scope, T factor, T* target) {
  T* __restrict out = target;
  for_each_entry(message, scope, 0, message.length, [=](std::size_t j, T c) { out[j] += factor * c; });
  if (message.rest != nullptr) add_scaled(*message.rest, scope, factor, target);
}

template <class T>
void accumulate(const Payload<T>& message, const Scope& scope, double weight, std::size_t first, std::size_t last, double* sum) {
  double* __restrict out = sum;
  for_each_entry(message, scope, first, std::min(last, message.length),
                 [=](std::size_t j, T c) { out[j] += weight * static_cast<double>(c); });
  if (message.rest != nullptr) accumulate(*message.rest, scope, weight, first, last, sum);
}

template <class T>
void accumulate(std::span<const Payload<T>* const> messages, const Scope& scope, std::span<const double> weights, std::size_t first,
                std::size_t last, double* sum) {
  for (std::size_t i = 0; i < messages.size();) {
    const std::span<const Payload<T>* const> next = messages.subspan(i);
    const bool together = next.size() >= kTogether && std::all_of(next.begin(), next.begin() + kTogether, [&](const Payload<T>* m) {
                            return m != nullptr && is_plain_vector(*m) && m->length >= last;
                          });
    if (together) {
      accumulate_vectors(next.template first<kTogether>(), weights.subspan(i).template first<kTogether>(), first, last, sum);
      i += kTogether;
      continue;
    }
    if (next[0] != nullptr && !next[0]->silent) accumulate(*next[0], scope, weights[i], first, last, sum);
    ++i;
  }
}

template <class T>
void write_dense(const Payload<T>& message, const Scope& scope, T* out) {
  // Zeros first where something may stay unsent; a complete vector is written once.
  const std::size_t written = message.silent || message.positions != Positions::all ? 0 : message.num_sent + message.excluded.size();
  if (written < message.length) std::fill_n(out, message.length, T(0));
  T* __restrict dense = out;
  for_each_entry(message, scope, 0, message.length, [=](std::size_t j, T c) { dense[j] = c; });
  if (message.rest != nullptr) add_scaled(*message.rest, scope, T(1), out);
}

template <class T>
void zero_where_sent(const Payload<T>& message, const Scope& scope, T* target) {
  for_each_entry(message, scope, 0, message.length, [=](std::size_t j, T) { target[j] = T(0); });
  if (message.rest != nullptr) zero_where_sent(*message.rest, scope, target);
}

template void add_scaled<float>(const Payload<float>&, const Scope&, float, float*);
template void add_scaled<double>(const Payload<double>&, const Scope&, double, double*);
template void accumulate<float>(const Payload<float>&, const Scope&, double, std::size_t, std::size_t, double*);
template void accumulate<double>(const Payload<double>&, const Scope&, double, std::size_t, std::size_t, double*);
template void accumulate<float>(std::span<const Payload<float>* const>, const Scope&, std::span<const double>, std::size_t, std::size_t,
                                double*);
template void accumulate<double>(std::span<const Payload<double>* const>, const Scope&, std::span<const double>, std::size_t, std::size_t,
                                 double*);
template void write_dense<float>(const Payload<float>&, const Scope&, float*);
template void write_dense<double>(const Payload<double>&, const Scope&, double*);
template void zero_where_sent<float>(const Payload<float>&, const Scope&, float*);
template void zero_where_sent<double>(const Payload<double>&, const Scope&, double*);

}  // namespace fl
