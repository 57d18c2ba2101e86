// One-bit SGD: every negative entry becomes the mean of the negative entries, every other entry the mean of the others.
//
//   C(x)_j = m- = mean {x_i : x_i < 0} where x_j < 0,   m+ = mean {x_i : x_i >= 0} elsewhere;   the mean of no entries is 0
//
// C is the orthogonal projection on the indicator vectors of the two groups: |C(x) - x|^2 = |x|^2 - n- m-^2 - n+ m+^2. A contraction with
// delta(x) = (n- m-^2 + n+ m+^2) / |x|^2 >= |x|_1^2 / (d |x|^2) >= 1/d (Cauchy-Schwarz over the two groups), d the size of the largest
// segment. It is never worse than ef_sign, which has one magnitude for both groups. Intended for error feedback.
// A level is one bit, a segment's scales are m- and m+. Published bits: one per coordinate and 64 per segment. The source takes the means
// of each column of a weight matrix; here they are taken per segment.
// Seide, Fu, Droppo, Li, Yu, "1-bit stochastic gradient descent and its application to data-parallel distributed training of speech DNNs",
// INTERSPEECH 2014.
// Group: quantiser
#include <type_traits>

#include "compressors/compressor.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/quantizer.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/ops/op_types.hpp"
#include "fl_core/ops/ops.hpp"

namespace fl::FL_DEVICE_NS {
namespace {

struct BelowZero {
  template <class T>
  [[nodiscard]] FL_HD double operator()(T p) const {
    return p < T(0) ? static_cast<double>(p) : 0.0;
  }
};
struct IsBelowZero {
  template <class T>
  [[nodiscard]] FL_HD double operator()(T p) const {
    return p < T(0) ? 1.0 : 0.0;
  }
};
struct AboveZero {
  template <class T>
  [[nodiscard]] FL_HD double operator()(T p) const {
    return p < T(0) ? 0.0 : static_cast<double>(p);
  }
};

// Computes scale [K,S,2] = m-, m+.
template <class T>
struct GroupMeans {
  const double *below, *num_below, *above;  // [K,S]
  const double* size;                       // [S]
  std::size_t S;
  T* scale;
  FL_HD void operator()(std::size_t i) const {
    const double num_above = size[i % S] - num_below[i];
    scale[2 * i] = num_below[i] > 0 ? static_cast<T>(below[i] / num_below[i]) : T(0);
    scale[2 * i + 1] = num_above > 0 ? static_cast<T>(above[i] / num_above) : T(0);
  }
};

struct GroupLevel {
  using Map = std::integral_constant<LevelMap, LevelMap::two_values>;
  static constexpr LevelWidth kWidth = LevelWidth::w8;
  static constexpr bool kHasChance = false;
  template <class T>
  FL_HD std::int32_t operator()(T p, const T*, std::uint32_t, std::size_t) const {
    return p < T(0) ? 0 : 1;
  }
};

template <class T>
class OneBit final : public Compressor<T> {
 public:
  explicit OneBit(const NoOptions&) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    Contract contract;
    contract.cost = costs::reading(2) + costs::reading(2) + costs::reading(2) + costs::levels(1, costs::Rounding::nearest, 1);
    contract.delta = 1 / static_cast<double>(largest_segment(scope));
    return contract;
  }

  [[nodiscard]] MessageLevels known_levels(const CompressContext<T>&, const Scope&) const override { return all_known(two_value_format()); }

  void compress(const Exec& exec, const CompressContext<T>&, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    Workspace::Frame frame(*exec.workspace);
    const std::size_t S = scope.segments.size(), pieces = input.clients() * S;
    auto *below = frame.take<double>(pieces), *num_below = frame.take<double>(pieces), *above = frame.take<double>(pieces);
    reduce_rows(exec, input, scope, BelowZero{}, Reduce::sum, below);
    reduce_rows(exec, input, scope, IsBelowZero{}, Reduce::sum, num_below);
    reduce_rows(exec, input, scope, AboveZero{}, Reduce::sum, above);
    T* scale = frame.take<T>(2 * pieces);
    for_each(exec, pieces, GroupMeans<T>{below, num_below, above, segment_sizes(exec, scope, frame), S, scale});
    quantize_rows(exec, input, scope, two_value_format(), width_of(1), scale, GroupLevel{}, std::span<const RandomStream>{}, state,
                  messages);
  }
};

FL_REGISTER_PART(Compressor, OneBit, NoOptions,
                 (PartInfo{"compressor", "one_bit", "the means of the negative and of the other entries; a contraction, for error feedback",
                           "Seide, Fu, Droppo, Li, Yu, 1-bit stochastic gradient descent, INTERSPEECH 2014"}));

}  // namespace
}  // namespace fl::FL_DEVICE_NS
