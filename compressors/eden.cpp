// EDEN: a randomly rotated segment, quantised with the optimal levels for normal numbers, and one scale.
//
//   z = sqrt(d) R x / |x|,   Q(z)_j the centroid nearest to z_j: 2^b of them, Lloyd-Max for N(0,1)            (R:
//   compressors/support/rotation.hpp) C(x) = S R^-1 Q(z),   scale = "unbiased": S = |x|^2 / <Rx, Q(z)>      scale = "min_error": S = <Rx,
//   Q(z)> / |Q(z)|^2
//
// b = 1 is DRIVE: both centroids are +-sqrt(2/pi), which the scale absorbs.
// min_error is a projection: |C(x)-x|^2 = |x|^2 - <Rx,Q>^2 / |Q|^2. A contraction in expectation: with the best scale the error is at most
// that of the nearest centroid for |z|, hence of any one m of them, (|x|^2/d) sum_j (|z_j| - m)^2 = |x|^2 (1 + m^2 - 2 m |z|_1 / d), and
// E|z|_1 >= flatness d (rotation.hpp), so delta >= max_m (2 m flatness - m^2), and flatness^2 for b = 1. Observed errors are much smaller:
// normal numbers have an error of 0.3634, 0.1175, 0.03454, 0.009497 for b = 1 .. 4 (Max 1960).
// unbiased: <C(x), x> = |x|^2; the mean is exact for uniform rotations and nearly exact for the Hadamard rotation. omega = 3 as for DRIVE.
// Encoding: b bits per coordinate and the scale; both sides know the centroids. Published bits: the same, 32 per segment.
// Vargaftik, Ben Basat, Portnoy, Mendelson, Ben-Itzhak, Mitzenmacher, "EDEN: Communication-efficient and robust distributed mean estimation
// for federated learning", ICML 2022; J. Max, "Quantizing for minimum distortion", 1960. Tests compare the centroids with Max's table.
// Group: quantiser
#include <cmath>
#include <type_traits>

#include "compressors/compressor.hpp"
#include "compressors/support/normal_centroids.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/rotation.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

enum class EdenScale { unbiased, min_error };

struct EdenOptions {
  std::int64_t bits = 2;
  EdenScale scale = EdenScale::unbiased;
};

inline void describe(Schema& s, EdenOptions& o) {
  s.field("bits", o.bits, "b: 2^b levels for each rotated coordinate").at_least(1).at_most(8);
  s.choice("scale", o.scale, {{EdenScale::unbiased, "unbiased"}, {EdenScale::min_error, "min_error"}},
           "unbiased, for means over clients; min_error is a contraction, as error feedback needs it");
}

namespace FL_DEVICE_NS {
namespace {

// Returns the index of the centroid nearest to |z|: the number of boundaries that are at most |z|.
struct Nearest {
  NormalCentroids table;
  [[nodiscard]] FL_HD std::int32_t index(double magnitude) const {
    std::int32_t low = 0, high = table.count - 1;
    while (low < high) {
      const std::int32_t middle = (low + high) / 2;
      if (table.boundary[middle] <= magnitude)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
  [[nodiscard]] FL_HD double centroid(double magnitude) const { return table.centroid[index(magnitude)]; }
};
struct InnerProduct {  // z Q(z)
  Nearest nearest;
  template <class T>
  [[nodiscard]] FL_HD double operator()(T z) const {
    const double magnitude = fabs(static_cast<double>(z));
    return magnitude * nearest.centroid(magnitude);
  }
};
struct SquaredCentroid {  // Q(z)^2
  Nearest nearest;
  template <class T>
  [[nodiscard]] FL_HD double operator()(T z) const {
    const double c = nearest.centroid(fabs(static_cast<double>(z)));
    return c * c;
  }
};

// Level l >= 0 is centroid l, level l < 0 the negative of centroid -l-1.
template <class T>
struct CentroidLevel {
  using Map = std::integral_constant<LevelMap, LevelMap::linear>;
  Nearest nearest;
  static constexpr LevelWidth kWidth = LevelWidth::w8;
  static constexpr bool kHasChance = false;
  FL_HD std::int32_t operator()(T z, T, std::uint32_t, std::size_t) const {
    const std::int32_t index = nearest.index(fabs(static_cast<double>(z)));
    return z < T(0) ? -index - 1 : index;
  }
};
template <class T>
struct CentroidNumber {
  NormalCentroids table;
  FL_HD T operator()(std::int32_t level) const { return static_cast<T>(level < 0 ? -table.centroid[-level - 1] : table.centroid[level]); }
};

// Computes z <- sqrt(n) z / |z| over one segment of several clients.
template <class T>
struct Normalise {
  const double* squares;  // of the segment, with stride S
  std::size_t S, n, P;
  T* z;  // of the segment, rows with stride P
  FL_HD void operator()(std::size_t i) const {
    const std::size_t k = i / n;
    const double square = squares[k * S];
    T& x = z[k * P + (i - k * n)];
    x = square > 0 ? static_cast<T>(static_cast<double>(x) * sqrt(static_cast<double>(n) / square)) : T(0);
  }
};

// Computes scale [K,S]; products and centroids refer to the normalised z.
template <class T>
struct EdenScales {
  EdenScale rule;
  const double *squares, *products, *centroids, *size;  // [K,S], size: [S]
  std::size_t S;
  T* scale;
  FL_HD void operator()(std::size_t i) const {
    const double norm = sqrt(squares[i]), root = sqrt(size[i % S]);
    const double value = rule == EdenScale::unbiased ? norm * root / products[i] : norm / root * (products[i] / centroids[i]);
    scale[i] = usable_scale<T>(value);
  }
};

template <class T>
class Eden final : public Rotated<T, CentroidNumber<T>> {
 public:
  explicit Eden(const EdenOptions& options) : options_(options), centroids_(normal_centroids(static_cast<int>(options.bits))) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    Contract contract;
    contract.cost = costs::rotation(static_cast<double>(largest_segment(scope))) + costs::reading(2) + costs::reading(2) +
                    costs::levels(8, costs::Rounding::nearest, 2 * static_cast<double>(options_.bits));
    contract.domain.norm = sizeof(T) == sizeof(float) ? MagnitudeRange{1e-30} : MagnitudeRange{1e-150, 1e150};
    if (options_.scale == EdenScale::min_error) {
      contract.delta = least_delta(rotation_flatness(scope));
      contract.delta_holds = Contract::Holds::in_expectation;
    } else {
      contract.omega = 3;
      contract.domain.unbiased_up_to =
          "the difference between Hadamard's and a uniform rotation, with 2 bits a bias of 0.4% of |x| for 64 normal entries, and of a "
          "fifth where three entries hold all";
    }
    return contract;
  }
  [[nodiscard]] double published_bits(const Payload<T>& message, const Scope& scope) const override {
    return Compressor<T>::published_bits(message.on_wire(), scope);
  }

  [[nodiscard]] MessageLevels known_levels(const CompressContext<T>&, const Scope&) const override { return all_known(level_format()); }

 protected:
  void quantise(const Exec& exec, const Scope& scope, std::uint32_t K, T* z, std::span<Payload<T>* const> coded) const override {
    Workspace::Frame frame(*exec.workspace);
    const std::size_t S = scope.segments.size();
    Affine<T> input;
    input.add(T(1), BatchView<const T>{z, nullptr, K, scope.P, scope.P});
    auto *squares = frame.take<double>(K * S), *products = frame.take<double>(K * S), *centroids = frame.take<double>(K * S);
    T* scale = frame.take<T>(K * S);
    reduce_rows(exec, input, scope, SquareOf{}, Reduce::sum, squares);
    for (std::size_t s = 0; s < S; ++s) {
      const Segment& segment = scope.segments[s];
      for_each(exec, K * segment.size(), Normalise<T>{squares + s, S, segment.size(), scope.P, z + segment.begin});
    }
    const Nearest nearest{centroids_};
    reduce_rows(exec, input, scope, InnerProduct{nearest}, Reduce::sum, products);
    reduce_rows(exec, input, scope, SquaredCentroid{nearest}, Reduce::sum, centroids);
    for_each(exec, K * S, EdenScales<T>{options_.scale, squares, products, centroids, segment_sizes(exec, scope, frame), S, scale});
    quantize_rows(exec, input, scope, level_format(), LevelWidth::w8, scale, CentroidLevel<T>{nearest}, std::span<const RandomStream>{},
                  StateWrite<T>{}, coded);
  }
  [[nodiscard]] CentroidNumber<T> number() const override { return {centroids_}; }

 private:
  [[nodiscard]] LevelFormat level_format() const {
    return {.map = LevelMap::linear, .min_level = -centroids_.count, .bits = static_cast<std::uint8_t>(options_.bits)};
  }
  [[nodiscard]] double least_delta(double flatness) const {
    double delta = options_.bits == 1 ? flatness * flatness : 0;
    for (std::int32_t i = 0; i < centroids_.count; ++i)
      delta = std::max(delta, centroids_.centroid[i] * (2 * flatness - centroids_.centroid[i]));
    return delta;
  }
  EdenOptions options_;
  NormalCentroids centroids_;
};

FL_REGISTER_PART(Compressor, Eden, EdenOptions,
                 (PartInfo{"compressor", "eden",
                           "a randomly rotated segment in b bits, levels of the normal law; unbiased, or a contraction",
                           "Vargaftik, Ben Basat, Portnoy, Mendelson, Ben-Itzhak, Mitzenmacher, EDEN, ICML 2022"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
