// Qsparse-local-SGD's operators: the k largest entries, quantised.
//
//   quantizer = "qsgd":   C(x) = Q_s(Top_k(x)),  Q_s random rounding to s levels of |Top_k(x)|_2;  beta = min(k/s^2, sqrt(k)/s)
//     scaled = true       C / (1 + beta):  E|C(x) - x|^2 <= (1 - delta) |x|^2  with  delta = k / (d (1 + beta))
//     scaled = false      needs beta < 1:  delta = (1 - beta) k / d;  with beta >= 1 there is no claim
//   quantizer = "sign":   C(x) = (|Top_k(x)|_1 / k) sgn(x) on the support,  delta(x) = |Top_k(x)|_1^2 / (k |x|^2) >= 1/d
//
// Both deltas follow from |x - T|^2 + E|T - Q(T)|^2 with T = Top_k(x), |T|^2 >= (k/d) |x|^2 and E|Q(T)|^2 <= (1 + beta) |T|^2; over several
// segments the smallest delta holds. The sign operator is stc under another name. On the wire: positions, levels -s .. s, a scale per
// segment. Published bits: per segment 32 + k (ceil(log2 d) + 1 + ceil(log2(s+1))), for signs 32 + k (ceil(log2 d) + 1).
// D. Basu, D. Data, C. Karakus, S. Diggavi, "Qsparse-local-SGD: Distributed SGD with quantization, sparsification and local computations",
// NeurIPS 2019. Local steps and memory are local kind "sgd" and feedback ef14 with unit "update".
// Group: hybrid
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "compressors/compressor.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/quantizer.hpp"
#include "compressors/support/sparsity.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/ops/ops.hpp"

namespace fl {

enum class EntryQuantizer { qsgd, sign };

struct QsparseOptions {
  Sparsity kept;
  EntryQuantizer quantizer = EntryQuantizer::qsgd;
  std::int64_t levels = 15;
  bool scaled = true;
};

inline void describe(Schema& s, QsparseOptions& o) {
  describe_sparsity(s, o.kept);
  s.choice("quantizer", o.quantizer, {{EntryQuantizer::qsgd, "qsgd"}, {EntryQuantizer::sign, "sign"}},
           "random levels of the kept entries' norm, or their signs times their mean magnitude");
  s.field("levels", o.levels, "s, the levels between 0 and the norm, for quantizer = \"qsgd\"").at_least(1).at_most(1048576);
  s.field("scaled", o.scaled, "divide by 1 + beta, which makes it a contraction for any s");
}
inline void validate(const QsparseOptions& o, Problems& problems) { validate_sparsity(o.kept, problems); }

// Returns beta with E|Q_s(v) - v|^2 <= beta |v|^2 for v of k entries.
[[nodiscard]] inline double qsparse_beta(double k, double s) { return std::min(k / (s * s), std::sqrt(k) / s); }

namespace FL_DEVICE_NS {
namespace {

// Computes scale[i] from the squares of a segment's entries; 0 if the norm is too small to be divided into s normal numbers.
template <class T>
struct NormOfSquares {
  const double* squares;
  T smallest;
  T* scale;
  FL_HD void operator()(std::size_t i) const {
    const T norm = static_cast<T>(sqrt(squares[i]));
    scale[i] = norm < smallest ? T(0) : norm;
  }
};

template <class T>
struct RandomLevel {
  T s;
  FL_HD std::int32_t operator()(T p, T scale, std::uint32_t word, std::size_t) const {
    T a = (p < T(0) ? -p : p) * (s / scale);
    a = a < s ? a : s;
    a = scale > T(0) ? a : T(0);
    const auto below = static_cast<std::int32_t>(a);
    const std::int32_t level = below + (RandomStream::to_uniform<T>(word) < a - static_cast<T>(below) ? 1 : 0);
    return p < T(0) ? -level : level;
  }
};

template <class T>
class Qsparse final : public Compressor<T> {
 public:
  explicit Qsparse(const QsparseOptions& options) : options_(options) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    Contract contract;
    contract.cost = costs::selection(kept_fraction(options_.kept, scope)) +
                    kept_fraction(options_.kept, scope) * costs::levels(8, costs::Rounding::random);
    if (options_.quantizer == EntryQuantizer::sign) {
      contract.delta = 1 / static_cast<double>(largest_segment(scope));
      return contract;
    }
    double delta = 1;
    for (const Segment& segment : scope.segments) {
      const double k = kept_entries(options_.kept, segment.size()), beta = largest_beta(scope);
      delta = std::min(delta, k / static_cast<double>(segment.size()) * (options_.scaled ? 1 / (1 + beta) : 1 - beta));
    }
    if (delta > 0) contract.delta = delta;
    contract.delta_holds = Contract::Holds::in_expectation;
    // The kept entries of a segment have at least 1/sqrt(d) of its norm.
    const double s = static_cast<double>(options_.levels) * (options_.scaled ? 1 + largest_beta(scope) : 1);
    const double d = static_cast<double>(largest_segment(scope));
    contract.domain.norm = sizeof(T) == sizeof(float) ? MagnitudeRange{std::sqrt(d) * s * 1.2e-38} : MagnitudeRange{1e-150, 1e150};
    return contract;
  }
  void check(const Scope& scope) const override { check_sparsity("qsparse", options_.kept, scope); }

  [[nodiscard]] MessageLevels known_levels(const CompressContext<T>&, const Scope& scope) const override {
    return all_known(options_.quantizer == EntryQuantizer::sign ? sign_format() : level_format(scope));
  }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    const PerSegment<std::uint32_t> kept = kept_per_segment(options_.kept, scope);
    top_k_rows(exec, input, scope, kept.span(), TieRule::lowest_index, kNativeWire<T>, state, messages);
    if (options_.quantizer == EntryQuantizer::sign) return ternarise_rows(exec, scope, state, messages);
    const auto s = static_cast<double>(options_.levels);
    const std::size_t norms = messages.size() * scope.segments.size();
    Workspace::Frame frame(*exec.workspace);
    auto* squares = frame.take<double>(norms);
    T* scale = frame.take<T>(norms);
    reduce_kept(exec, scope, messages, SquareOf{}, Reduce::sum, squares);
    for_each(exec, norms, NormOfSquares<T>{squares, std::numeric_limits<T>::min() * static_cast<T>(s), scale});
    const std::vector<RandomStream> streams = client_streams(context);
    encode_kept(exec, scope, level_format(scope), width_of(options_.levels), static_cast<const T*>(scale),
                RandomLevel<T>{static_cast<T>(s)}, std::span<const RandomStream>(streams), state, messages);
  }

  [[nodiscard]] double published_bits(const Payload<T>& message, const Scope& scope) const override {
    if (message.silent) return 0;
    const bool has_levels = options_.quantizer == EntryQuantizer::qsgd;
    double bits = 32.0 * static_cast<double>(message.excluded.size());
    for (const Segment& segment : scope.segments) {
      const int per_entry =
          published_index_bits(segment.size()) + 1 + (has_levels ? bits_for(static_cast<std::uint64_t>(options_.levels) + 1) : 0);
      bits += 32.0 + kept_entries(options_.kept, segment.size()) * static_cast<double>(per_entry);
    }
    return bits;
  }

 private:
  [[nodiscard]] LevelFormat level_format(const Scope& scope) const {
    const auto s = static_cast<double>(options_.levels);
    return symmetric_levels({.unit = options_.scaled ? 1 / (s * (1 + largest_beta(scope))) : 1 / s},
                            static_cast<std::int32_t>(options_.levels));
  }
  // Returns the largest beta, whose unit is used for all segments.
  [[nodiscard]] double largest_beta(const Scope& scope) const {
    double beta = 0;
    for (const Segment& segment : scope.segments)
      beta = std::max(beta, qsparse_beta(kept_entries(options_.kept, segment.size()), static_cast<double>(options_.levels)));
    return beta;
  }

  QsparseOptions options_;
};

FL_REGISTER_PART(Compressor, Qsparse, QsparseOptions,
                 (PartInfo{"compressor", "qsparse", "the k largest entries, quantised to random levels or to signs",
                           "Basu, Data, Karakus, Diggavi, Qsparse-local-SGD, NeurIPS 2019"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
