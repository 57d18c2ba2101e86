// What low-rank operators share: the matrices of a scope, their singular values, and messages made of factors.
//
//   M [n,m] = U diag(S) V^T,   C(M) = L R^T,   L [n,r], R [m,r]
// Decompositions are computed in double on the host, one tensor at a time: one-sided Jacobi, meant for layers of up to a few hundred rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "compressors/compressor.hpp"
#include "compressors/state_from_message.hpp"
#include "fl_core/cpu/linalg.hpp"
#include "fl_core/cpu/tile.hpp"
#include "fl_core/error.hpp"

namespace fl {

[[nodiscard]] inline bool is_matrix(const Segment& segment) { return segment.rows > 1 && segment.cols > 1; }

// Tensors without a matrix shape join the excluded ones.
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

// Singular triplets, S descending; rank: those above zero. U [n,q], V [m,q], q = min(n,m).
struct SingularValues {
  std::size_t q = 0, rank = 0;
  std::vector<double> U, S, V;
};

// Scaled before and after, so that no square overflows or vanishes. A matrix that is not finite has rank 0.
template <class T>
[[nodiscard]] SingularValues singular_values(const Exec& exec, const T* M, const Segment& shape) {
  SingularValues d;
  d.q = std::min(shape.rows, shape.cols);
  double largest = 0, sum = 0;
  for (std::size_t j = 0; j < shape.size(); ++j) {
    largest = std::max(largest, std::fabs(static_cast<double>(M[j])));
    sum += static_cast<double>(M[j]) * 0;  // NaN where an entry is not finite
  }
  if (!(largest > 0) || !(sum == 0)) return d;
  std::vector<double> scaled(shape.size());
  for (std::size_t j = 0; j < shape.size(); ++j) scaled[j] = static_cast<double>(M[j]) / largest;
  d.U.resize(shape.rows * d.q);
  d.S.resize(d.q);
  d.V.resize(shape.cols * d.q);
  cpu::svd_small(exec, scaled.data(), shape.rows, shape.cols, d.U.data(), d.S.data(), d.V.data());
  for (double& s : d.S) s *= largest;
  while (d.rank < d.q && d.S[d.rank] > 0) ++d.rank;
  return d;
}

// Puts a message of factors together, segment by segment.
template <class T>
class FactorMessage {
 public:
  FactorMessage(Payload<T>& message, const Scope& scope) : message_(message), scope_(scope) {
    message.positions = Positions::factors;
    message.values = kNativeWire<T>;
    message.counts.resize_discard(scope.segments.size());
  }
  // The next segment's factors: left(i, r) and right(j, r) as numbers.
  template <class Left, class Right>
  void add(std::size_t rank, Left left, Right right) {
    const Segment& shape = scope_.segments[segment_];
    message_.counts[segment_++] = static_cast<std::uint32_t>(rank);
    for (std::size_t i = 0; i < shape.rows; ++i)
      for (std::size_t r = 0; r < rank; ++r) value_.push_back(static_cast<T>(left(i, r)));
    for (std::size_t j = 0; j < shape.cols; ++j)
      for (std::size_t r = 0; r < rank; ++r) value_.push_back(static_cast<T>(right(j, r)));
  }
  // `columns` of a decomposition with its singular values replaced by `weight`.
  void add(const SingularValues& d, const std::vector<std::size_t>& columns, const std::vector<double>& weight) {
    add(
        columns.size(), [&](std::size_t i, std::size_t r) { return d.U[i * d.q + columns[r]] * weight[r]; },
        [&](std::size_t j, std::size_t r) { return d.V[j * d.q + columns[r]]; });
  }
  // The first `rank` triplets as they are.
  void add_leading(const SingularValues& d, std::size_t rank) {
    add(
        rank, [&](std::size_t i, std::size_t r) { return d.U[i * d.q + r] * d.S[r]; },
        [&](std::size_t j, std::size_t r) { return d.V[j * d.q + r]; });
  }
  void close() {
    message_.num_sent = value_.size();
    message_.value.resize_discard(value_.size());
    std::copy(value_.begin(), value_.end(), message_.value.begin());
  }

 private:
  Payload<T>& message_;
  const Scope& scope_;
  std::size_t segment_ = 0;
  std::vector<T> value_;
};

// For every client: fill(k, p, message) adds the factors of all segments of p [P]; the state follows from the message.
template <class T, class Fill>
void send_factors(const Exec& exec, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                  std::span<Payload<T>* const> messages, Fill fill) {
  Workspace::Frame frame(*exec.workspace);
  T* p = frame.take<T>(scope.P);
  for (std::uint32_t k = 0; k < messages.size(); ++k) {
    cpu::load_tile(input, k, 0, scope.P, p);
    FactorMessage<T> message(*messages[k], scope);
    fill(k, static_cast<const T*>(p), message);
    message.close();
    write_state_from_message(exec, scope, p, *messages[k], state, k);
  }
}

}  // namespace fl
