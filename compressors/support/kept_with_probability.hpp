// Unbiased sparsification of one vector keeps entry j with probability p_j = min(1, a |x_j|) and sends x_j / p_j.
//
// Among all p_j with sum p_j = k, this form has the smallest variance sum x_j^2 / p_j. Entries with p_j < 1 that are kept become +-1/a.
// Each operator only chooses how to find a.
#pragma once

#include <cstddef>

#include "compressors/compressor.hpp"
#include "compressors/support/dense_form.hpp"
#include "compressors/support/thresholds.hpp"
#include "fl_core/ops/ops.hpp"

namespace fl::FL_DEVICE_NS {

// Computes factor * c_j of a segment. Parameter begin + j uses random word begin + j.
template <class T>
struct KeepWithProbability {
  const T* p;
  RandomStream stream;
  std::size_t begin;
  const double* a;
  double factor;
  T* c;
  FL_HD void operator()(std::size_t j) const {
    const double magnitude = static_cast<double>(p[j] < T(0) ? -p[j] : p[j]), probability = *a * magnitude;
    const bool is_certain = probability >= 1;
    const bool is_kept = is_certain || RandomStream::to_uniform<double>(stream.bits(begin + j)) < probability;
    const double value = is_certain ? magnitude : 1 / *a;
    const T sent = is_kept ? static_cast<T>(factor * value) : T(0);
    c[j] = p[j] < T(0) ? -sent : sent;
  }
};

// Calls find(s, p [n], n, a) for every client and segment, which sets *a on the device. Then draws the kept entries and sends them,
// multiplied by factor[s].
template <class T, class Find>
void send_with_probability(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope,
                           std::span<const double> factor, const StateWrite<T>& state, std::span<Payload<T>* const> messages, Find find) {
  Workspace::Frame frame(*exec.workspace);
  T *p = frame.take<T>(scope.P), *c = frame.take<T>(scope.P);
  auto* a = frame.take<double>(1);
  for (std::uint32_t k = 0; k < messages.size(); ++k) {
    const RandomStream stream(context.random_key, context.clients[k], context.round);
    for_each(exec, scope.P, LoadInput<T>{input, k, p});
    for (std::size_t s = 0; s < scope.segments.size(); ++s) {
      const std::size_t begin = scope.segments[s].begin, n = scope.segments[s].size();
      find(s, p + begin, n, a);
      for_each(exec, n, KeepWithProbability<T>{p + begin, stream, begin, a, factor[s], c + begin});
    }
    send_nonzeros(exec, scope, p, c, state.slice(k, 1), messages.subspan(k, 1));
  }
}

}  // namespace fl::FL_DEVICE_NS
