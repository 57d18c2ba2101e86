// DQSGD: random rounding to as many levels as the norm asks for, so that the grid stays as fine when the vector is large.
//
//   s = max(1, ceil(c |x|_2)),   C(x)_j = |x|_2 sgn(x_j) xi_j / s,   xi_j = floor(a) + [u < a - floor(a)],  a = s |x_j| / |x|_2
//
// The step |x|_2 / s is at most 1/c: every coordinate errs by less than 1/c, so it is an absolute compressor with kappa = sqrt(d)/c, and
// unbiased, with an expected squared error of at most d / (4 c^2) and of omega |x|^2, omega = sqrt(d) (that of one level; d the largest
// segment). Segments have levels of their own, and scales |x|_2 / s; the width of a level on the wire is that of the segment with most.
// Published bits: per segment 8 for s, 32 for the norm, and d (1 + ceil(log2(s+1))), with the width of the widest segment.
// G. Yan, S.-L. Huang, T. Lan, L. Song, "DQ-SGD: Dynamic quantization in SGD for communication-efficient distributed learning", 2021:
// levels in proportion to the norm of the gradient. That this makes an absolute compressor is our remark.
#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "compressors/compressor.hpp"
#include "compressors/quantizer.hpp"
#include "fl_core/registry.hpp"
#include "fl_core/verb_types.hpp"
#include "fl_core/verbs.hpp"

namespace fl {

struct DqsgdOptions {
  double precision = 100;
};
inline void describe(Schema& s, DqsgdOptions& o) {
  s.field("precision", o.precision, "c: levels per unit of the norm; no coordinate errs by more than 1/c").above(0).at_most(1e30);
}

namespace FL_DEVICE_NS {
namespace {

constexpr double kMostLevels = 1048576;

// scale is |x| / s; limit [S] is s.
template <class T>
struct DqsgdLevel {
  using Map = std::integral_constant<LevelMap, LevelMap::linear>;
  const T* limit;
  FL_HD std::int32_t operator()(T p, T scale, std::uint32_t word, std::size_t segment) const {
    T a = (p < T(0) ? -p : p) / scale;
    a = a < limit[segment] ? a : limit[segment];  // NaN becomes the limit
    a = scale > T(0) ? a : T(0);
    const auto below = static_cast<std::int32_t>(a);
    const std::int32_t level = below + (RandomStream::to_uniform<T>(word) < a - static_cast<T>(below) ? 1 : 0);
    return p < T(0) ? -level : level;
  }
};

template <class T>
class Dqsgd final : public Compressor<T> {
 public:
  explicit Dqsgd(const DqsgdOptions& options) : precision_(options.precision) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    double d = 0;
    for (const Segment& segment : scope.segments) d += static_cast<double>(segment.size());
    Contract contract;
    contract.kappa = std::sqrt(d) / precision_;
    contract.omega = std::sqrt(static_cast<double>(largest_segment(scope)));
    contract.domain = "norms up to 2^20 / precision, and 0 or normal numbers";
    return contract;
  }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    const std::size_t S = scope.segments.size();
    const std::vector<RandomStream> streams = client_streams(context);
    std::vector<double> squares(messages.size() * S);
    std::vector<T> limit(S), scale(S);
    reduce_rows(exec, input, scope, SquareOf{}, Reduce::sum, squares.data());
    for (std::uint32_t k = 0; k < messages.size(); ++k) {
      const std::int32_t most = choose_levels(squares.data() + k * S, limit, scale);
      LevelFormat format;
      format.min_level = -most;
      format.bits = bits_for(2 * static_cast<std::uint64_t>(most) + 1);
      quantize_rows(exec, input.slice(k, 1), scope, format, width_of(most), scale.data(), DqsgdLevel<T>{limit.data()},
                    std::span<const RandomStream>(streams).subspan(k, 1), state.slice(k, 1), messages.subspan(k, 1));
    }
  }

  [[nodiscard]] double published_bits(const Payload<T>& message, const Scope& scope) const override {
    if (message.silent) return 0;
    const int per_entry = 1 + bits_for(static_cast<std::uint64_t>(-message.level_format.min_level) + 1);
    return 40.0 * static_cast<double>(scope.segments.size()) + static_cast<double>(message.num_sent) * per_entry +
           32.0 * static_cast<double>(message.excluded.size());
  }

 private:
  // s and |x|/s of every segment; the largest s of all. A norm that is not finite or too small counts as 0.
  [[nodiscard]] std::int32_t choose_levels(const double* squares, std::vector<T>& limit, std::vector<T>& scale) const {
    double most = 1;
    for (std::size_t s = 0; s < limit.size(); ++s) {
      const double norm = std::sqrt(squares[s]);
      const double levels = std::isfinite(norm) ? std::clamp(std::ceil(precision_ * norm), 1.0, kMostLevels) : 1.0;
      const T step = std::isfinite(norm) ? static_cast<T>(norm / levels) : T(0);
      limit[s] = static_cast<T>(levels);
      scale[s] = std::isfinite(step) && step >= std::numeric_limits<T>::min() ? step : T(0);
      most = std::max(most, levels);
    }
    return static_cast<std::int32_t>(most);
  }

  double precision_;
};

FL_REGISTER_HOST_PART(Compressor, Dqsgd, DqsgdOptions,
                      (PartInfo{"compressor", "dqsgd", "random rounding with levels in proportion to the norm; unbiased and absolute",
                                "Yan, Huang, Lan, Song, DQ-SGD, 2021"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
