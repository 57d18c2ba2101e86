// QSGD: every coordinate is rounded at random to one of s levels between 0 and the norm of its segment.
//
//   C(x)_j = scale * sign(x_j) * xi_j,   a = s |x_j| / scale,   xi_j = (floor(a) + [u < a - floor(a)]) / s,   scale = |x|_2 or max|x|
//
// Unbiased. With d the size of the largest segment,
//   l2:  omega = min(d / s^2, sqrt(d) / s)      (s = 1: the exact supremum is sqrt(d) - 1)
//   max: omega = min((d-1) / (4 s^2), sqrt(d-1) / (2 s))      (s = 1 is TernGrad)
// scaled = true sends C(x) / (1 + omega), a contraction in expectation with delta = 1 / (1 + omega), as error feedback needs it.
// A segment whose norm is 0, or too small to be divided into s normal numbers, is sent as zeros.
// Published bits: sign and level of fixed width, 1 + ceil(log2(s+1)) per coordinate, 32 per norm (the paper without Elias codes).
// Alistarh, Grubic, Li, Tomioka, Vojnovic, "QSGD: Communication-efficient SGD via gradient quantization and encoding", NeurIPS 2017.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "compressors/compressor.hpp"
#include "compressors/quantizer.hpp"
#include "fl_core/registry.hpp"
#include "fl_core/verb_types.hpp"
#include "fl_core/verbs.hpp"

namespace fl {

enum class QsgdNorm { l2, max };

struct QsgdOptions {
  std::int64_t levels = 127;
  QsgdNorm norm = QsgdNorm::l2;
  bool scaled = false;
};

inline void describe(Schema& s, QsgdOptions& o) {
  s.field("levels", o.levels, "s, the levels between 0 and the norm; 127 fills 8 bits with the sign").at_least(1).at_most(1048576);
  s.choice("norm", o.norm, {{QsgdNorm::l2, "l2"}, {QsgdNorm::max, "max"}}, "what a segment is divided by");
  s.field("scaled", o.scaled, "divide by 1 + omega: no longer unbiased, but a contraction, as error feedback needs it");
}

namespace FL_DEVICE_NS {
namespace {

template <class T>
struct QsgdScale {
  QsgdNorm norm;
  T smallest;  // below it scale / s would be denormal
  FL_HD T operator()(double reduced, std::size_t) const {
    const T scale = static_cast<T>(norm == QsgdNorm::l2 ? sqrt(reduced) : reduced);
    return scale < smallest ? T(0) : scale;
  }
};

template <class T>
struct QsgdLevel {
  using Map = std::integral_constant<LevelMap, LevelMap::linear>;
  T s;
  FL_HD std::int32_t operator()(T p, T scale, std::uint32_t word, std::size_t) const {
    const T inverse = s / scale;  // infinite in a segment of zeros
    T a = (p < T(0) ? -p : p) * inverse;
    a = a < s ? a : s;  // rounding may exceed s; NaN becomes s
    a = scale > T(0) ? a : T(0);
    const std::int32_t whole = static_cast<std::int32_t>(a);
    const std::int32_t level = whole + (RandomStream::to_uniform<T>(word) < a - static_cast<T>(whole) ? 1 : 0);
    return p < T(0) ? -level : level;
  }
};

// The same for float32 and s <= 127, with a in fixed point of 24 binary places (as many as a random number has): two thirds of the time.
struct QsgdLevel8 {
  using Map = std::integral_constant<LevelMap, LevelMap::linear>;
  float s;
  FL_HD std::int32_t operator()(float p, float scale, std::uint32_t word, std::size_t) const {
    const float inverse = s / scale;
    float a = (p < 0 ? -p : p) * inverse;
    a = a < s ? a : s;
    a = scale > 0 ? a : 0;
    const auto fixed = static_cast<std::uint32_t>(static_cast<std::int32_t>(a * 0x1p24f));
    const auto level = static_cast<std::int32_t>((fixed + (word >> 8)) >> 24);
    return p < 0 ? -level : level;
  }
};

template <class T>
class Qsgd final : public Compressor<T> {
 public:
  explicit Qsgd(const QsgdOptions& options) : options_(options) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    const double omega = omega_of(scope);
    Contract contract;
    if (options_.scaled) {
      contract.delta = 1 / (1 + omega);
      contract.delta_holds = Contract::Holds::in_expectation;
    } else {
      contract.omega = omega;
    }
    contract.domain = sizeof(T) == sizeof(float) ? "segments are 0 or have a norm above s * 1.2e-38"
                                                 : "segments are 0 or have a norm between 1e-150 and 1e150";
    return contract;
  }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    const auto s = static_cast<double>(options_.levels);
    LevelFormat format;
    format.min_level = -static_cast<std::int32_t>(options_.levels);
    format.bits = bits_for(2 * static_cast<std::uint64_t>(options_.levels) + 1);
    format.unit = options_.scaled ? 1 / (s * (1 + omega_of(scope))) : 1 / s;
    const QsgdScale<T> scale{options_.norm, std::numeric_limits<T>::min() * static_cast<T>(options_.levels)};
    const std::vector<RandomStream> streams = client_streams(context);
    const auto quantize = [&](auto map, Reduce reduce, auto level) {
      quantize_segments_fused(exec, input, scope, format, width_of(options_.levels), map, reduce, scale, level,
                              std::span<const RandomStream>(streams), state, messages);
    };
    const auto quantize_by_norm = [&](auto level) {
      if (options_.norm == QsgdNorm::l2)
        quantize(SquareOf{}, Reduce::sum, level);
      else
        quantize(MagnitudeOf{}, Reduce::max, level);
    };
    if constexpr (sizeof(T) == sizeof(float))
      if (options_.levels <= 127) return quantize_by_norm(QsgdLevel8{static_cast<float>(options_.levels)});
    quantize_by_norm(QsgdLevel<T>{static_cast<T>(options_.levels)});
  }

 private:
  [[nodiscard]] double omega_of(const Scope& scope) const {
    const auto d = static_cast<double>(largest_segment(scope)), s = static_cast<double>(options_.levels);
    if (options_.norm == QsgdNorm::l2) return std::min(d / (s * s), std::sqrt(d) / s);
    return std::min((d - 1) / (4 * s * s), std::sqrt(d - 1) / (2 * s));
  }
  QsgdOptions options_;
};

FL_REGISTER_PART(Compressor, Qsgd, QsgdOptions,
                 (PartInfo{"compressor", "qsgd", "random rounding to s levels of the segment's norm; unbiased",
                           "Alistarh, Grubic, Li, Tomioka, Vojnovic, QSGD, NeurIPS 2017"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
