// GradZip: low rank by one sweep of alternating least squares, from the factor of the client's previous round.
//
//   L = M Q (Q^T Q + rho_Q I)^-1,   R = M^T L (L^T L + rho_L I)^-1,   C(M) = L R^T,   Q <- R
//   rho = ridge * trace / r of the matrix to which it is added, so that the sweep does not depend on the scale of M
//
// R minimises |M - L R^T|^2 + rho |R|^2, whose value at R = 0 is |M|^2: hence |C(M) - M| <= |M|. No stronger class holds; intended for
// error feedback. The operator stores Q [m,r] of every client and matrix. A new client starts from random numbers, and so does a matrix
// whose factor became zero. On the wire: both factors, r (n + m) numbers per matrix; tensors without a matrix shape are sent uncompressed.
// Published bits: 32 per number. M. Cho, V. Muthusamy, B. Nemanich, R. Puri, "GradZip: Gradient compression using alternating matrix
// factorization for large-scale deep learning", NeurIPS 2019 workshop. Its text was not available: the survey of compressed communication
// describes alternating least squares from the previous factor with a ridge term. The relative ridge, and factors per client rather than
// averaged ones, are our choices.
// Group: low rank
#include <algorithm>
#include <cstddef>

#include "compressors/compressor.hpp"
#include "compressors/support/low_rank.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/thresholds.hpp"
#include "fl_core/config/differences.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/ops/ops.hpp"

namespace fl {

struct GradZipOptions {
  std::int64_t rank = 2;
  double ridge = 1e-3;
};
inline void describe(Schema& s, GradZipOptions& o) {
  s.field("rank", o.rank, "columns of the factors").at_least(1).at_most(1024);
  s.field("ridge", o.ridge, "ridge term, as a part of the mean diagonal entry of the normal matrix").above(0).at_most(1e6);
}

namespace FL_DEVICE_NS {
namespace {

// Loads Q, the previous factor, which stays stored until a new one replaces it.
template <class T>
struct LoadFactor {
  BatchView<const T> before;
  BatchView<T> after;
  std::size_t k, begin;
  double* Q;
  FL_HD void operator()(std::size_t i) const {
    after.row(k)[begin + i] = before.row(k)[begin + i];
    Q[i] = static_cast<double>(before.row(k)[begin + i]);
  }
};
template <class T>
struct StoreFactor {
  const double* R;
  BatchView<T> after;
  std::size_t k, begin;
  FL_HD void operator()(std::size_t i) const { after.row(k)[begin + i] = static_cast<T>(R[i]); }
};
struct RandomFactor {
  RandomStream stream;
  double* Q;
  FL_HD void operator()(std::size_t i) const { Q[i] = 2 * stream.uniform<double>(i) - 1; }
};
// Returns entries of a row-major matrix [.,r], times a number.
struct ScaledMatrix {
  const double* matrix;
  std::size_t r;
  double factor;
  FL_HD double operator()(std::size_t i, std::size_t c) const { return matrix[i * r + c] * factor; }
};

template <class T>
class GradZip final : public Compressor<T> {
 public:
  explicit GradZip(const GradZipOptions& options) : options_(options) {}

  [[nodiscard]] Contract contract(const Scope&) const override {
    Contract contract;
    contract.cost = costs::copy() + EntryCost{4, 2} + 2.0 * costs::thin_product(static_cast<double>(options_.rank));
    return contract;
  }
  [[nodiscard]] Scope adapt(Scope scope) const override { return matrices_of(std::move(scope)); }
  void check(const Scope& scope) const override { demand_matrices("gradzip", scope); }

  [[nodiscard]] std::size_t client_state_size(const Scope& scope) const override {
    std::size_t size = 0;
    for (const Segment& m : scope.segments) size += m.cols * rank_of(m);
    return size;
  }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    send_factors(exec, input, scope, state, messages, [&](std::uint32_t k, const T* p, FactorMessage<T>& message) {
      std::size_t begin = 0;
      for (std::size_t s = 0; s < scope.segments.size(); ++s) {
        const Segment& m = scope.segments[s];
        send_matrix(exec, p + m.begin, m, segment_stream(context, k, s), context, k, begin, message);
        begin += m.cols * rank_of(m);
      }
    });
  }

 private:
  [[nodiscard]] std::size_t rank_of(const Segment& m) const { return std::min({static_cast<std::size_t>(options_.rank), m.rows, m.cols}); }

  // Sends one matrix. p: the matrix; begin: offset of its factor in the state of client k.
  void send_matrix(const Exec& exec, const T* p, const Segment& m, const RandomStream& stream, const CompressContext<T>& context,
                   std::size_t k, std::size_t begin, FactorMessage<T>& message) const {
    Workspace::Frame frame(*exec.workspace);
    const std::size_t r = rank_of(m), size = m.cols * r;
    auto *Q = frame.take<double>(size), *M = frame.take<double>(m.size());
    auto *L = frame.take<double>(m.rows * r), *R = frame.take<double>(size);
    for_each(exec, size, LoadFactor<T>{context.remembered, context.remember, k, begin, Q});
    const double largest = largest_if_finite(exec, p, m.size());
    if (largest == 0) return message.add_nothing();
    for_each(exec, m.size(), ScaleToDouble<T>{p, largest, M});
    // A zero factor, as in the first round, would stay zero.
    if (largest_if_finite(exec, Q, size) == 0) for_each(exec, size, RandomFactor{stream, Q});
    ridge_least_squares(exec, Transpose::no, m.rows, m.cols, r, M, Q, options_.ridge, L);
    ridge_least_squares(exec, Transpose::yes, m.cols, m.rows, r, M, L, options_.ridge, R);
    if (largest_if_finite(exec, L, m.rows * r) == 0 || largest_if_finite(exec, R, size) == 0) return message.add_nothing();
    message.add(r, ScaledMatrix{L, r, largest}, ScaledMatrix{R, r, 1});
    for_each(exec, size, StoreFactor<T>{R, context.remember, k, begin});
  }

  GradZipOptions options_;
};

FL_REGISTER_PART(Compressor, GradZip, GradZipOptions,
                 (PartInfo{"compressor", "gradzip", "low rank by a sweep of alternating least squares from the client's last factor",
                           "Cho, Muthusamy, Nemanich, Puri, GradZip, NeurIPS 2019 workshop"}));
const bool kGradZipDiffers = add_difference(
    {"compressor", "gradzip",
     "the text of the publication was not at hand; here the ridge is relative to the matrix and every client keeps factors of its own"});

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
