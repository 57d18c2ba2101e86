// Strom's threshold quantiser: if an entry exceeds tau in magnitude, its sign is sent and represents tau.
//
//   C(x)_j = tau sgn(x_j) if |x_j| > tau, else 0;     |C(x) - x|^2 = |x|^2 - sum over sent j of (2 tau |x_j| - tau^2)
//
// |C(x)| <= |x| and the error never grows, but no class holds for all x: |x_j| - tau is unbounded, and a small x sends nothing. Intended
// for error feedback (ef14), whose memory is then sent in units of tau over several rounds. tau is in units of the input and chosen for the
// application.
// On the wire: positions, and levels -1 and +1 in units of tau; tau is configuration. Published bits: 32 per entry, 31 for the position and
// one for the sign. N. Strom, "Scalable distributed DNN training using commodity GPU cloud computing", INTERSPEECH 2015.
// Group: sparsifier
#include <cmath>
#include <limits>
#include <string>

#include "compressors/compressor.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/quantizer.hpp"
#include "fl_core/config/key_error.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/ops/ops.hpp"

namespace fl {

struct StromOptions {
  double tau = 0.01;
};
inline void describe(Schema& s, StromOptions& o) {
  s.field("tau", o.tau, "magnitude that an entry must exceed to be sent, and its magnitude at the receiver").above(0).at_most(1e30);
}

namespace FL_DEVICE_NS {
namespace {

struct StromLevel {
  template <class T>
  FL_HD std::int32_t operator()(T p, T, std::uint32_t, std::size_t) const {
    return p < T(0) ? -1 : 1;
  }
};

template <class T>
class Strom final : public Compressor<T> {
 public:
  explicit Strom(const StromOptions& options) : tau_(static_cast<T>(options.tau)) {}

  [[nodiscard]] Contract contract(const Scope&) const override {
    Contract contract;
    contract.cost = costs::reading(2) + costs::kept(0);
    return contract;
  }

  void check(const Scope&) const override {
    if (!(tau_ > T(0))) throw key_error("tau", "strom: tau is 0 in the run's precision; choose a larger one");
  }

  [[nodiscard]] MessageLevels known_levels(const CompressContext<T>&, const Scope&) const override { return all_known(level_format()); }

  void compress(const Exec& exec, const CompressContext<T>&, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    const AtLeast<T> exceeds{std::nextafter(tau_, std::numeric_limits<T>::infinity())};
    select_rows(exec, input, scope, exceeds, kNativeWire<T>, state, messages);
    encode_kept(exec, scope, level_format(), LevelWidth::w8, static_cast<const T*>(nullptr), StromLevel{}, state, messages);
  }

  [[nodiscard]] double published_bits(const Payload<T>& message, const Scope&) const override {
    return message.silent ? 0 : 32.0 * static_cast<double>(message.num_sent + message.excluded.size());
  }

 private:
  [[nodiscard]] LevelFormat level_format() const {
    return {.min_level = -1, .bits = bits_for(3), .unit = static_cast<double>(tau_), .has_scale = false};
  }
  T tau_;
};

FL_REGISTER_PART(Compressor, Strom, StromOptions,
                 (PartInfo{"compressor", "strom", "+tau or -tau for every entry whose magnitude exceeds tau; for error feedback",
                           "Strom, Scalable distributed DNN training using commodity GPU cloud computing, INTERSPEECH 2015"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
