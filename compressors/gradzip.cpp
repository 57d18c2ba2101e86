// GradZip: low rank by one sweep of alternating least squares, from the factor of the client's previous round.
//
//   L = M Q (Q^T Q + rho_Q I)^-1,   R = M^T L (L^T L + rho_L I)^-1,   C(M) = L R^T,   Q <- R
//   rho = ridge * trace / r of the matrix that it is added to, so that the sweep does not depend on the scale of M
//
// R minimises |M - L R^T|^2 + rho |R|^2, whose value at R = 0 is |M|^2: hence |C(M) - M| <= |M|. No class beyond that; for error feedback.
// The operator remembers Q [m,r] of every client and matrix; a client that it has not met starts from random numbers, and so does a matrix
// whose factor became zero. On the wire: both factors, r (n + m) numbers per matrix; tensors without a matrix shape travel uncompressed.
// Published bits: 32 per number. M. Cho, V. Muthusamy, B. Nemanich, R. Puri, "GradZip: Gradient compression using alternating matrix
// factorization for large-scale deep learning", NeurIPS 2019 workshop. Its text was not at hand: alternating least squares from the
// previous factor with a ridge term is how the survey of compressed communication describes it; that the ridge is relative, and that
// factors are each client's own rather than averaged, is ours. g++ 12 warns inside its own AVX-512 intrinsics, wherever Eigen uses them.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <vector>

#include "compressors/compressor.hpp"
#include "compressors/low_rank.hpp"
#include "compressors/thresholds.hpp"
#include "fl_core/registry.hpp"

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

using Matrix = Eigen::MatrixXd;
Eigen::Index at(std::size_t i) { return static_cast<Eigen::Index>(i); }

// A F (F^T F + rho I)^-1: the least squares that keep F fixed.
Matrix ridge_step(const Matrix& A, const Matrix& F, double ridge) {
  Matrix normal = F.transpose() * F;
  const double rho = ridge * normal.trace() / static_cast<double>(normal.rows());
  normal.diagonal().array() += rho;
  return normal.ldlt().solve((A * F).transpose()).transpose();
}

template <class T>
class GradZip final : public Compressor<T> {
 public:
  explicit GradZip(const GradZipOptions& options) : options_(options) {}

  [[nodiscard]] Contract contract(const Scope&) const override { return {}; }
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
      const T* before = context.remembered.row(k);
      T* after = context.remember.row(k);
      for (std::size_t s = 0; s < scope.segments.size(); ++s) {
        const Segment& m = scope.segments[s];
        send_matrix(p + m.begin, m, segment_stream(context, k, s), before, after, message);
        before += m.cols * rank_of(m);
        after += m.cols * rank_of(m);
      }
    });
  }

 private:
  [[nodiscard]] std::size_t rank_of(const Segment& m) const { return std::min({static_cast<std::size_t>(options_.rank), m.rows, m.cols}); }

  void send_matrix(const T* p, const Segment& m, const RandomStream& stream, const T* before, T* after, FactorMessage<T>& message) const {
    const std::size_t r = rank_of(m);
    const auto none = [](std::size_t, std::size_t) { return 0.0; };
    std::copy_n(before, m.cols * r, after);
    double largest = 0, sum = 0;
    for (std::size_t j = 0; j < m.size(); ++j) {
      largest = std::max(largest, std::fabs(static_cast<double>(p[j])));
      sum += static_cast<double>(p[j]) * 0;  // NaN where an entry is not finite
    }
    if (!(largest > 0) || !(sum == 0)) return message.add(0, none, none);
    Matrix M(at(m.rows), at(m.cols));
    for (std::size_t i = 0; i < m.rows; ++i)
      for (std::size_t j = 0; j < m.cols; ++j) M(at(i), at(j)) = static_cast<double>(p[i * m.cols + j]) / largest;
    const Matrix L = ridge_step(M, start(m.cols, r, before, stream), options_.ridge);
    const Matrix R = ridge_step(M.transpose(), L, options_.ridge);
    if (!L.allFinite() || !R.allFinite() || L.isZero(0) || R.isZero(0)) return message.add(0, none, none);
    message.add(
        r, [&](std::size_t i, std::size_t c) { return L(at(i), at(c)) * largest; },
        [&](std::size_t j, std::size_t c) { return R(at(j), at(c)); });
    for (std::size_t j = 0; j < m.cols; ++j)
      for (std::size_t c = 0; c < r; ++c) after[j * r + c] = static_cast<T>(R(at(j), at(c)));
  }

  // The remembered factor, or uniform numbers in [-1, 1) where it is zero.
  [[nodiscard]] static Matrix start(std::size_t cols, std::size_t r, const T* before, const RandomStream& stream) {
    const bool is_new = std::all_of(before, before + cols * r, [](T x) { return x == T(0); });
    Matrix Q(at(cols), at(r));
    for (std::size_t j = 0; j < cols; ++j)
      for (std::size_t c = 0; c < r; ++c)
        Q(at(j), at(c)) = is_new ? 2 * stream.uniform<double>(j * r + c) - 1 : static_cast<double>(before[j * r + c]);
    return Q;
  }

  GradZipOptions options_;
};

FL_REGISTER_HOST_PART(Compressor, GradZip, GradZipOptions,
                      (PartInfo{"compressor", "gradzip", "low rank by a sweep of alternating least squares from the client's last factor",
                                "Cho, Muthusamy, Nemanich, Puri, GradZip, NeurIPS 2019 workshop"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
