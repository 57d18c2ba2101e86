// A compressor in one file: every coordinate moves to the nearest of 2s + 1 even levels between -M and M, where M is the largest
// magnitude of its segment.
//
//   C(x)_j = (M / s) round(s x_j / M)
//
// No coordinate moves by more than M / (2s), none by more than its own size (0 is a level), and the largest not at all. With d the
// size of the largest segment and E = (d - 1) M^2 / (4 s^2),
//   |C(x) - x|^2 <= E / (M^2 + E) |x|^2:   a contraction with delta = 1 / (1 + (d - 1) / (4 s^2)), on every input
// docs/how-to-add-a-compressor.md walks through this file.
#include <span>

#include "fedbits/operations.hpp"
#include "fedbits/plugin.hpp"

namespace fl {

// 1. What a scenario file may say. Bounds that are given here are checked there, with file, line and column.
struct NearestLevelOptions {
  std::int64_t levels = 7;
};

inline void describe(Schema& s, NearestLevelOptions& o) {
  s.field("levels", o.levels, "s, the levels between 0 and the largest magnitude; 7 fills 4 bits").at_least(1).at_most(32767);
}

// 2. In this namespace the file is compiled for the CPU and, where there is CUDA, once more for the GPU. Functors marked FL_HD run there.
namespace FL_DEVICE_NS {
namespace {

// The segment's scale, from the largest magnitude: 0 where M / s would not be a normal number.
template <class T>
struct LargestMagnitude {
  T smallest;
  FL_HD T operator()(double reduced, std::size_t) const {
    const T scale = static_cast<T>(reduced);
    return scale < smallest ? T(0) : scale;
  }
};

// The level of one number. The receiver makes level * (scale * unit) of it.
template <class T>
struct NearestLevel {
  using Map = std::integral_constant<LevelMap, LevelMap::linear>;
  T s;
  FL_HD std::int32_t operator()(T p, T scale, std::uint32_t, std::size_t) const {
    if (!(scale > T(0))) return 0;
    const T a = (p < T(0) ? -p : p) * (s / scale);
    const std::int32_t level = static_cast<std::int32_t>((a < s ? a : s) + T(0.5));  // NaN becomes s: a message is always well-formed
    return p < T(0) ? -level : level;
  }
};

// 3. The operator: what it promises, and how it makes messages of inputs.
template <class T>
class NearestLevels final : public Compressor<T> {
 public:
  explicit NearestLevels(const NearestLevelOptions& options) : levels_(options.levels) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    const double d = static_cast<double>(largest_segment(scope)), s = static_cast<double>(levels_);
    Contract contract;
    contract.delta = 1 / (1 + (d - 1) / (4 * s * s));
    contract.domain.largest.least = s * static_cast<double>(std::numeric_limits<T>::min());  // M / s is a normal number
    return contract;
  }

  [[nodiscard]] MessageLevels known_levels(const CompressContext<T>&, const Scope&) const override { return all_known(level_format()); }

  void compress(const Exec& exec, const CompressContext<T>&, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    const auto s = static_cast<T>(levels_);
    quantize_segments_fused(exec, input, scope, level_format(), width_of(levels_), MagnitudeOf{}, Reduce::max,
                            LargestMagnitude<T>{std::numeric_limits<T>::min() * s}, NearestLevel<T>{s}, std::span<const RandomStream>{},
                            state, messages);
  }

 private:
  [[nodiscard]] LevelFormat level_format() const {
    return symmetric_levels({.unit = 1 / static_cast<double>(levels_)}, static_cast<std::int32_t>(levels_));
  }
  std::int64_t levels_;
};

// 4. The name in scenario files, a summary and a source for `fedbits list`.
FL_REGISTER_PART(Compressor, NearestLevels, NearestLevelOptions,
                 (PartInfo{"compressor", "nearest_level", "the nearest of even levels up to the largest magnitude; a contraction", ""}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
