// Common parts of the low-rank operators: the matrices of a scope, their singular values, and messages made of factors.
//
//   M [n,m] = U diag(S) V^T,   C(M) = L R^T,   L [n,r], R [m,r]
// Decompositions are computed in double, one tensor at a time, by one-sided Jacobi, which suits layers of up to a few hundred rows.
// Matrices and factors stay on the operator's device. The singular values are copied to the host, which decides what is sent.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "compressors/compressor.hpp"
#include "compressors/support/few_numbers.hpp"
#include "compressors/support/quantizer.hpp"
#include "compressors/support/state_from_message.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/ops/ops.hpp"

namespace fl {

[[nodiscard]] inline bool is_matrix(const Segment& segment) { return segment.rows > 1 && segment.cols > 1; }

// Returns the scope with all tensors that are not matrices moved to the excluded tensors.
[[nodiscard]] inline Scope matrices_of(Scope scope) {
  std::vector<Segment> matrices;
  for (const Segment& segment : scope.segments) (is_matrix(segment) ? matrices : scope.excluded).push_back(segment);
  scope.segments = std::move(matrices);
  std::sort(scope.excluded.begin(), scope.excluded.end(), [](const Segment& a, const Segment& b) { return a.begin < b.begin; });
  return scope;
}

inline void demand_matrices(const std::string& name, const Scope& scope) {
  if (scope.segments.empty() || !std::all_of(scope.segments.begin(), scope.segments.end(), is_matrix))
    throw ConfigError(name + " compresses matrices and finds none; use scope = \"tensor\" and a model with matrix-shaped layers");
}

// Returns the domain in which claims about singular values hold. Outside it, squares are denormal numbers.
template <class T>
[[nodiscard]] Domain singular_value_domain() {
  return {.largest = {sizeof(T) == sizeof(float) ? 1e-32 : 1e-150}, .up_to_rounding = true};
}

namespace FL_DEVICE_NS {

// Returns the largest magnitude of x [n], or 0 if an entry is not finite.
template <class U>
[[nodiscard]] double largest_if_finite(const Exec& exec, const U* x, std::size_t n) {
  Affine<U> input;
  input.add(U(1), BatchView<const U>{x, nullptr, 1, n, n});
  const Scope whole{.kind = ScopeKind::model, .segments = {{0, n, n, 1}}, .excluded = {}, .P = n};
  const double largest = reduced_on_host(exec, input, whole, MagnitudeOf{}, Reduce::max)[0];
  const bool is_finite = reduced_on_host(exec, input, whole, ZeroIfFinite{}, Reduce::sum)[0] == 0;
  return largest > 0 && is_finite ? largest : 0;
}

template <class T>
struct ScaleToDouble {
  const T* M;
  double largest, *scaled;
  FL_HD void operator()(std::size_t j) const { scaled[j] = static_cast<double>(M[j]) / largest; }
};

// Singular triplets with S descending; `rank` counts the S above zero. U [n,q] and V [m,q] lie on the device, q = min(n,m).
struct SingularValues {
  std::size_t q = 0, rank = 0;
  std::vector<double> S;
  const double *U = nullptr, *V = nullptr;
};

// Returns the decomposition of M. The matrix is scaled before and the singular values after, so that no square overflows or vanishes. A
// matrix that is not finite has rank 0. U and V live as long as the frame.
template <class T>
[[nodiscard]] SingularValues singular_values(const Exec& exec, const T* M, const Segment& shape, Workspace::Frame& frame) {
  SingularValues d;
  d.q = std::min(shape.rows, shape.cols);
  const double largest = largest_if_finite(exec, M, shape.size());
  if (largest == 0) return d;
  auto *scaled = frame.take<double>(shape.size()), *U = frame.take<double>(shape.rows * d.q);
  auto *S = frame.take<double>(d.q), *V = frame.take<double>(shape.cols * d.q);
  for_each(exec, shape.size(), ScaleToDouble<T>{M, largest, scaled});
  svd_small(exec, static_cast<const double*>(scaled), shape.rows, shape.cols, U, S, V);
  d.U = U;
  d.V = V;
  d.S = on_host<double>(exec, S, d.q);
  for (double& s : d.S) s *= largest;
  while (d.rank < d.q && d.S[d.rank] > 0) ++d.rank;
  return d;
}

// Returns number r of row i: the entry of column[r], times weight[r] if `weight` is not null.
struct WeightedColumns {
  const double* matrix;
  std::size_t q;
  const std::size_t* column;
  const double* weight;
  FL_HD double operator()(std::size_t i, std::size_t r) const {
    const double entry = matrix[i * q + column[r]];
    return weight != nullptr ? entry * weight[r] : entry;
  }
};

template <class T, class Number>
struct WriteFactor {
  Number number;
  std::size_t rank;
  T* out;
  FL_HD void operator()(std::size_t i) const { out[i] = static_cast<T>(number(i / rank, i % rank)); }
};

// Builds a message of factors segment by segment.
template <class T>
class FactorMessage {
 public:
  FactorMessage(const Exec& exec, Payload<T>& message, const Scope& scope) : exec_(exec), message_(message), scope_(scope) {
    message.place_on(kThisDevice);
    message.positions = Positions::factors;
    message.values = kNativeWire<T>;
  }
  // Adds the factors of the next segment. The FL_HD functors left(i, r) and right(j, r) return their entries.
  template <class Left, class Right>
  void add(std::size_t rank, Left left, Right right) {
    const Segment& shape = scope_.segments[counts_.size()];
    const std::size_t at = message_.value.size();
    counts_.push_back(static_cast<std::uint32_t>(rank));
    message_.value.resize_keep(at + rank * (shape.rows + shape.cols), exec_.stream);
    T* out = message_.value.data() + at;
    for_each(exec_, shape.rows * rank, WriteFactor<T, Left>{left, rank, out});
    for_each(exec_, shape.cols * rank, WriteFactor<T, Right>{right, rank, out + shape.rows * rank});
  }
  void add_nothing() { counts_.push_back(0); }
  // Adds `columns` of a decomposition with its singular values replaced by `weight`.
  void add(const SingularValues& d, const std::vector<std::size_t>& columns, const std::vector<double>& weight) {
    if (columns.empty()) return add_nothing();
    Workspace::Frame frame(*exec_.workspace);
    const std::size_t* column = on_device(exec_, columns, frame);
    add(columns.size(), WeightedColumns{d.U, d.q, column, on_device(exec_, weight, frame)}, WeightedColumns{d.V, d.q, column, nullptr});
  }
  // Adds the first `rank` triplets unchanged.
  void add_leading(const SingularValues& d, std::size_t rank) {
    std::vector<std::size_t> columns;
    for (std::size_t r = 0; r < rank; ++r) columns.push_back(r);
    add(d, columns, d.S);
  }
  void close() {
    message_.num_sent = message_.value.size();
    message_.counts.resize_discard(counts_.size());
    copy_bytes(message_.counts.data(), kThisDevice, counts_.data(), Device::cpu, counts_.size() * sizeof(std::uint32_t), exec_.stream);
  }

 private:
  const Exec& exec_;
  Payload<T>& message_;
  const Scope& scope_;
  std::vector<std::uint32_t> counts_;  // ranks of the segments added so far
};

// Calls fill(k, p, message) for every client, which adds the factors of all segments of p [P]. Then writes the state from the message.
template <class T, class Fill>
void send_factors(const Exec& exec, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                  std::span<Payload<T>* const> messages, Fill fill) {
  Workspace::Frame frame(*exec.workspace);
  T* p = frame.take<T>(scope.P);
  for (std::uint32_t k = 0; k < messages.size(); ++k) {
    load_vector(exec, input, k, p);
    FactorMessage<T> message(exec, *messages[k], scope);
    fill(k, static_cast<const T*>(p), message);
    message.close();
    write_state_from_message(exec, scope, p, *messages[k], state, k);
  }
}

}  // namespace FL_DEVICE_NS
}  // namespace fl
