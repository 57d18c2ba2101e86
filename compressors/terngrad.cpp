// TernGrad: every coordinate becomes 0 or +-m, m the largest magnitude of its segment after clipping.
//
//   x~_j = x_j clipped to +-c sigma,   sigma^2 = mean (x_j - mean x)^2 of the segment,   m = max |x~_j|
//   C(x)_j = m sgn(x_j) with probability |x~_j| / m, else 0
//
// Without clipping (clip = 0) unbiased: E|C(x)|^2 = m |x|_1, omega = (sqrt(d) - 1) / 2 with d the size of the largest segment (attained by
// one entry of 1 and d-1 entries of 1 / (1 + sqrt(d))), the same as qsgd with one level of max|x|.
// With clipping unbiased with respect to x~, not to x: E|C(x) - x|^2 = E|C(x) - x~|^2 + |x~ - x|^2 <= max(1, (sqrt(d) - 1) / 2) |x|^2,
// because |x~|^2 + |x~ - x|^2 <= |x|^2.
// Where sigma is 0 to rounding (sigma^2 <= d 2^-52 of the mean square), as in a tensor of one number, nothing is clipped: clipping would
// make the segment zero, and error feedback would keep all of it for ever. With scope = "tensor" sigma and m are each tensor's own, and a
// short tensor of nearly equal entries is clipped far below its size, so that its memory grows long; clip = 0 avoids that.
// scaled = true divides by 1 + (sqrt(d) - 1) / 2: without clipping a contraction in expectation; with clipping E|C(x) - x|^2 <= |x|^2 -
// <x~, x> / (1 + omega), which has no uniform delta.
// Published bits: 2 per coordinate and 32 per segment. Clipping as in GRACE's code, which was read; the claims are derived here.
// Wen, Xu, Yan, Wu, Wang, Chen, Li, "TernGrad: Ternary gradients to reduce communication in distributed deep learning", NeurIPS 2017.
// Group: quantiser
#include <cmath>
#include <string>

#include "compressors/compressor.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/random_levels.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct TernGradOptions {
  double clip = 2.5;
  bool scaled = false;
};

inline void describe(Schema& s, TernGradOptions& o) {
  s.field("clip", o.clip, "c: entries are clipped to c standard deviations of their segment; 0 clips nothing and is unbiased").at_least(0);
  s.field("scaled", o.scaled, "divide by 1 + omega, as error feedback needs it; without clipping a contraction");
}

namespace FL_DEVICE_NS {
namespace {

struct ValueOf {
  template <class T>
  [[nodiscard]] FL_HD double operator()(T p) const {
    return static_cast<double>(p);
  }
};

// Computes scale [K,S] = min(max|x|, c sigma).
template <class T>
struct ClippedScale {
  const double *sum, *squares, *largest;  // [K,S]
  const double* size;                     // [S]
  std::size_t S;
  double clip;
  T smallest;
  T* scale;
  FL_HD void operator()(std::size_t i) const {
    const double n = size[i % S], mean = sum[i] / n, mean_square = squares[i] / n, variance = mean_square - mean * mean;
    const bool is_constant = variance <= n * 0x1p-52 * mean_square;
    const double bound = clip * sqrt(is_constant ? 0.0 : variance);
    const T m = static_cast<T>(is_constant || largest[i] < bound ? largest[i] : bound);
    scale[i] = m < smallest ? T(0) : m;
  }
};

template <class T>
class TernGrad final : public Compressor<T> {
 public:
  explicit TernGrad(const TernGradOptions& options) : options_(options) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    const double omega = omega_of(scope);
    const bool clips = options_.clip > 0;
    Contract contract;
    contract.cost = costs::reading(2) + (options_.clip > 0 ? costs::reading(2) : EntryCost{}) + costs::levels(2, costs::Rounding::random);
    contract.domain = random_levels_domain<T>(LevelNorm::max, options_.scaled ? 1 / (1 + omega) : 1);
    if (!options_.scaled) {
      contract.omega = clips ? std::max(1.0, omega) : omega;
    } else if (!clips) {
      contract.delta = 1 / (1 + omega);
      contract.delta_holds = Contract::Holds::in_expectation;
    }
    if (clips) contract.domain.unbiased_up_to = "clipping";
    return contract;
  }

  [[nodiscard]] MessageLevels known_levels(const CompressContext<T>&, const Scope& scope) const override {
    return all_known(random_levels_format(1, unit(scope)));
  }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    if (options_.clip == 0) return send_random_levels(exec, context, input, scope, LevelNorm::max, 1, unit(scope), state, messages);
    Workspace::Frame frame(*exec.workspace);
    const T* scale = clipped_scales(exec, input, scope, frame);
    const std::vector<RandomStream> streams = client_streams(context);
    with_random_level<T>(1, [&](auto level) {
      quantize_rows(exec, input, scope, random_levels_format(1, unit(scope)), width_of(1), scale, level,
                    std::span<const RandomStream>(streams), state, messages);
    });
  }

 private:
  [[nodiscard]] double unit(const Scope& scope) const { return options_.scaled ? 1 / (1 + omega_of(scope)) : 1.0; }
  [[nodiscard]] static double omega_of(const Scope& scope) { return (std::sqrt(static_cast<double>(largest_segment(scope))) - 1) / 2; }

  // Returns the scales [K,S], which live in the frame.
  [[nodiscard]] const T* clipped_scales(const Exec& exec, const Affine<T>& input, const Scope& scope, Workspace::Frame& frame) const {
    const std::size_t S = scope.segments.size(), pieces = input.clients() * S;
    auto *sum = frame.take<double>(pieces), *squares = frame.take<double>(pieces), *largest = frame.take<double>(pieces);
    reduce_rows(exec, input, scope, ValueOf{}, Reduce::sum, sum);
    reduce_rows(exec, input, scope, SquareOf{}, Reduce::sum, squares);
    reduce_rows(exec, input, scope, MagnitudeOf{}, Reduce::max, largest);
    T* scale = frame.take<T>(pieces);
    for_each(
        exec, pieces,
        ClippedScale<T>{sum, squares, largest, segment_sizes(exec, scope, frame), S, options_.clip, std::numeric_limits<T>::min(), scale});
    return scale;
  }
  TernGradOptions options_;
};

FL_REGISTER_PART(Compressor, TernGrad, TernGradOptions,
                 (PartInfo{"compressor", "terngrad", "0 or +- the largest magnitude, at random, after clipping",
                           "Wen, Xu, Yan, Wu, Wang, Chen, Li, TernGrad, NeurIPS 2017"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
