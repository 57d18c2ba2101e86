// DRIVE: the signs of a randomly rotated segment and one scale.
//
//   C(x) = S R^-1 sgn(R x),   scale = "unbiased": S = |x|^2 / |Rx|_1      scale = "min_error": S = |Rx|_1 / d
//   R: compressors/support/rotation.hpp
//
// min_error is the projection of x on R^-1 sgn(Rx): |C(x)-x|^2 = |x|^2 - |Rx|_1^2 / d. A contraction in expectation with delta =
// flatness^2, 1/2 if all segments are powers of two and 1/4 otherwise (rotation.hpp; a uniform rotation has 2/pi in the limit, and the
// Hadamard rotation is close in experiments), and for every draw delta(x) >= 1/d: it is an ef_sign that does not depend on how x is spread.
// unbiased: <C(x), x> = |x|^2, so C(x) - x is orthogonal to x. For a uniform rotation its mean is 0 by symmetry, for the Hadamard rotation
// nearly 0. omega = 3: the source proves E|C(x)-x|^2 <= 2.92 |x|^2 of uniform rotations for every d (pi/2 - 1 in the limit). Each client
// and round draws a new rotation; the receiver draws the same rotation and undoes it (Compressor::reconstruct). Encoding: one bit per
// coordinate and the scale. Published bits: the same, 32 per segment.
//
// Vargaftik, Ben Basat, Portnoy, Mendelson, Ben-Itzhak, Mitzenmacher, "DRIVE: One-bit distributed mean estimation",
// NeurIPS 2021. Both scales were read in published code; the bounds for min_error are derived here.
// Group: quantiser
#include <cmath>

#include "compressors/compressor.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/rotation.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

enum class RotationScale { unbiased, min_error };

struct DriveOptions {
  RotationScale scale = RotationScale::unbiased;
};

inline void describe(Schema& s, DriveOptions& o) {
  s.choice("scale", o.scale, {{RotationScale::unbiased, "unbiased"}, {RotationScale::min_error, "min_error"}},
           "unbiased, for means over clients; min_error is a contraction, as error feedback needs it");
}

namespace FL_DEVICE_NS {
namespace {

// Computes the scale from sums of squares and of magnitudes of a rotated segment.
template <class T>
struct DriveScale {
  RotationScale rule;
  FL_HD T operator()(double squares, double magnitudes, double size) const {
    return usable_scale<T>(rule == RotationScale::unbiased ? squares / magnitudes : magnitudes / size);
  }
};

template <class T>
struct SignNumber {
  FL_HD T operator()(std::int32_t level) const { return level != 0 ? T(1) : T(-1); }
};

template <class T>
class Drive final : public Rotated<T, SignNumber<T>> {
 public:
  explicit Drive(const DriveOptions& options) : options_(options) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    Contract contract;
    contract.cost = costs::rotation(static_cast<double>(largest_segment(scope))) + costs::reading(2) + costs::reading(2) +
                    costs::levels(1, costs::Rounding::nearest);
    contract.domain.norm = sizeof(T) == sizeof(float) ? MagnitudeRange{1e-30} : MagnitudeRange{1e-150, 1e150};
    if (options_.scale == RotationScale::min_error) {
      contract.delta = rotation_flatness(scope) * rotation_flatness(scope);
      contract.delta_holds = Contract::Holds::in_expectation;
    } else {
      contract.omega = 3;
      contract.domain.unbiased_up_to =
          "the difference between Hadamard's and a uniform rotation, a bias of 1% of |x| for 64 normal entries, and of a third where three "
          "entries hold all";
    }
    return contract;
  }

  [[nodiscard]] MessageLevels known_levels(const CompressContext<T>&, const Scope&) const override { return all_known(sign_format()); }

 protected:
  void quantise(const Exec& exec, const Scope& scope, std::uint32_t K, T* z, std::span<Payload<T>* const> coded) const override {
    quantise_signs(exec, scope, K, z, DriveScale<T>{options_.scale}, coded);
  }
  [[nodiscard]] SignNumber<T> number() const override { return {}; }

 public:
  [[nodiscard]] double published_bits(const Payload<T>& message, const Scope& scope) const override {
    return Compressor<T>::published_bits(message.on_wire(), scope);
  }

 private:
  DriveOptions options_;
};

FL_REGISTER_PART(Compressor, Drive, DriveOptions,
                 (PartInfo{"compressor", "drive", "the signs of a randomly rotated segment; unbiased, or a contraction",
                           "Vargaftik, Ben Basat, Portnoy, Mendelson, Ben-Itzhak, Mitzenmacher, DRIVE, NeurIPS 2021"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
