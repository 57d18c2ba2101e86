// One client's vector as a whole, for operators that go client by client; what the operations do is said in fl_core/ops/cpu/vectors.hpp.
//
// Messages are read as fl_core/message/payload_ops.cpp reads them, by the same expressions: one thread per entry, or per element of a
// product of factors. Their excluded values are not looked at: operators have none yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fl_core/memory/exec.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload.hpp"
#include "fl_core/ops/cuda/check.cuh"
#include "fl_core/ops/cuda/plan.cuh"

namespace fl::cuda {
namespace detail {

template <class T>
struct LoadVector {
  Affine<T> input;
  std::size_t k;
  T* p;
  FL_HD void operator()(std::size_t j) const { p[j] = input.at(k, j); }
};

template <class T>
struct ClearVector {
  T* x;
  FL_HD void operator()(std::size_t j) const { x[j] = T(0); }
};

// One warp: lanes fetch 32 neighbours, every lane adds them all in order and keeps the sum that is its own.
template <class T>
__global__ void add_in_order(const T* x, std::size_t n, double* sum) {
  const unsigned lane = threadIdx.x;
  double total = 0;
  for (std::size_t base = 0; base < n; base += kWarp) {
    const double mine = base + lane < n ? static_cast<double>(x[base + lane]) : 0.0;
    double own = 0;
    for (unsigned i = 0; i < kWarp; ++i) {
      total += __shfl_sync(kAllLanes, mine, static_cast<int>(i));
      own = i == lane ? total : own;
    }
    if (base + lane < n) sum[base + lane] = own;
  }
}

// Functors that put, add or clear an entry c_j, with the operations of payload_ops in the same order.
template <class T>
struct PutEntry {
  T* out;
  FL_HD void operator()(std::size_t j, T c) const { out[j] = c; }
};
template <class T>
struct AddEntry {
  T* out;
  FL_HD void operator()(std::size_t j, T c) const { out[j] += T(1) * c; }
};
template <class T>
struct ClearEntry {
  T* out;
  FL_HD void operator()(std::size_t j, T) const { out[j] = T(0); }
};

// Entry i of a message: raw, or the number of its level.
template <class T>
struct EntryNumber {
  WireValue values;
  LevelFormat format;
  LevelWidth width;
  const T* value;
  const std::byte* levels;
  const T* scale;
  [[nodiscard]] FL_HD std::int32_t level(std::size_t i) const {
    switch (width) {
      case LevelWidth::w8: return reinterpret_cast<const std::int8_t*>(levels)[i];
      case LevelWidth::w16: return reinterpret_cast<const std::int16_t*>(levels)[i];
      case LevelWidth::w32: return reinterpret_cast<const std::int32_t*>(levels)[i];
    }
    return 0;
  }
  [[nodiscard]] FL_HD T operator()(std::size_t i, std::size_t segment) const {
    return values == WireValue::levels ? level_value(format, level(i), scale + segment * scales_per_segment(format)) : value[i];
  }
};

struct FirstOffset {
  FL_HD std::size_t operator()(const SegmentPlan& segment) const { return segment.offset; }
};

// Entry i: at position index[i], or at the i-th parameter of the segments where all are sent.
template <class T, class Op>
struct VisitEntry {
  ScopePlan plan;
  const std::uint32_t* index;
  EntryNumber<T> number;
  Op op;
  FL_HD void operator()(std::size_t i) const {
    const std::size_t s = index != nullptr ? segment_at(plan, index[i], FirstElement{}) : segment_at(plan, i, FirstOffset{});
    const std::size_t j = index != nullptr ? index[i] : plan.segment[s].begin + (i - plan.segment[s].offset);
    op(j, number(i, s));
  }
};

// first[s]: where the factors of segment s begin, rows + cols numbers for each rank. The ranks may lie in the host's memory, which is read
// once.
struct FindFactors {
  const std::uint32_t* counts;
  const std::size_t* height;  // [S] rows + cols
  std::size_t S;
  std::size_t *first, *rank;
  FL_HD void operator()(std::size_t) const {
    std::size_t at = 0;
    for (std::size_t s = 0; s < S; ++s) {
      first[s] = at;
      rank[s] = counts[s];
      at += height[s] * rank[s];
    }
  }
};

template <class T, class Op>
struct VisitProduct {
  const std::size_t *first, *rank;  // of this segment
  const T* value;
  std::size_t begin, rows, cols;
  Op op;
  FL_HD void operator()(std::size_t j) const {
    const std::size_t r = *rank;
    const T* left = value + *first;
    if (r > 0) op(begin + j, factor_entry(left, left + rows * r, r, j / cols, j % cols));
  }
};

template <class T, class Op>
void visit_products(const Exec& exec, const Payload<T>& message, const Scope& scope, Op op) {
  Workspace::Frame frame(*exec.workspace);
  const std::size_t S = scope.segments.size();
  std::vector<std::size_t> height;
  for (const Segment& m : scope.segments) height.push_back(m.rows + m.cols);
  auto *first = frame.take<std::size_t>(S), *rank = frame.take<std::size_t>(S);
  for_each(exec, 1, FindFactors{message.counts.data(), upload(exec, std::span<const std::size_t>(height), frame), S, first, rank});
  for (std::size_t s = 0; s < S; ++s) {
    const Segment& m = scope.segments[s];
    for_each(exec, m.size(), VisitProduct<T, Op>{first + s, rank + s, message.value.data(), m.begin, m.rows, m.cols, op});
  }
}

// op(j, c_j) for every entry that lies in the segments.
template <class T, class Op>
void visit_entries(const Exec& exec, const Payload<T>& message, const Scope& scope, Op op) {
  if (message.positions == Positions::factors) return visit_products(exec, message, scope, op);
  Workspace::Frame frame(*exec.workspace);
  const EntryNumber<T> number{message.values,       message.level_format,       message.level_width,
                              message.value.data(), message.level_bytes.data(), message.scale.data()};
  const std::uint32_t* index = message.positions == Positions::list ? message.index.data() : nullptr;
  for_each(exec, message.num_sent, VisitEntry<T, Op>{plan_segments(exec, scope.segments, frame), index, number, op});
}

}  // namespace detail

template <class T>
void load_vector(const Exec& exec, const Affine<T>& input, std::size_t k, T* p) {
  for_each(exec, input.size(), detail::LoadVector<T>{input, k, p});
}

template <class T>
void running_sums(const Exec& exec, const T* x, std::size_t n, double* sum) {
  Launch(exec, "running_sums", n > 0 ? 1 : 0, static_cast<int>(kWarp))(detail::add_in_order<T>, x, n, sum);
}

template <class T>
void expand_message(const Exec& exec, const Payload<T>& message, const Scope& scope, T* out) {
  for_each(exec, scope.P, detail::ClearVector<T>{out});
  detail::visit_entries(exec, message, scope, detail::PutEntry<T>{out});
  if (message.rest != nullptr) detail::visit_entries(exec, *message.rest, scope, detail::AddEntry<T>{out});
}

template <class T>
void clear_sent(const Exec& exec, const Payload<T>& message, const Scope& scope, T* target) {
  detail::visit_entries(exec, message, scope, detail::ClearEntry<T>{target});
  if (message.rest != nullptr) detail::visit_entries(exec, *message.rest, scope, detail::ClearEntry<T>{target});
}

}  // namespace fl::cuda
