// Sign: one bit per coordinate and no scale. With server optimiser "sign_sgd" it is signSGD with majority vote.
//
//   C(x)_j = +1 where x_j >= 0, else -1                  client: sends C(g_i)     server: x <- x - eta sgn(sum_i C(g_i))
//
// No class: C(x) does not shrink with x, so |C(x) - x| / |x| and |C(x) - x| are both unbounded, and an error memory would have the wrong
// scale (use ef_sign with error feedback). Use it without memory, or with feedback "signum": the sign of a momentum.
// Published bits: one per coordinate on the uplink; the downlink also takes one if compressor.down = ef_sign, because the vote moves every
// coordinate by the same eta. server.average = "uniform" gives every client one vote; otherwise votes are weighted.
// Bernstein, Wang, Azizzadenesheli, Anandkumar, "signSGD: Compressed optimisation for non-convex problems", ICML 2018; that 0 counts as +1
// was read in GRACE's code.
// Group: quantiser
#include <type_traits>

#include "compressors/compressor.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/quantizer.hpp"
#include "fl_core/config/registry.hpp"

namespace fl::FL_DEVICE_NS {
namespace {

struct PlainSign {
  using Map = std::integral_constant<LevelMap, LevelMap::sign>;
  static constexpr LevelWidth kWidth = LevelWidth::w8;
  static constexpr bool kHasChance = false;
  template <class T>
  FL_HD std::int32_t operator()(T p, T, std::uint32_t, std::size_t) const {
    return p < T(0) ? 0 : 1;
  }
};

template <class T>
class Sign final : public Compressor<T> {
 public:
  explicit Sign(const NoOptions&) {}

  [[nodiscard]] Contract contract(const Scope&) const override {
    Contract contract;
    contract.cost = costs::levels(1, costs::Rounding::nearest);
    contract.no_memory =
        "+-1 does not follow the size of what is compressed, so what it leaves cannot be sent later; use \"ef_sign\" with "
        "this feedback, or feedback \"none\" or \"signum\" with server kind \"sign_sgd\"";
    return contract;
  }

  [[nodiscard]] MessageLevels known_levels(const CompressContext<T>&, const Scope&) const override { return all_known(sign_format(false)); }

  void compress(const Exec& exec, const CompressContext<T>&, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    quantize_rows(exec, input, scope, sign_format(false), width_of(1), static_cast<const T*>(nullptr), PlainSign{},
                  std::span<const RandomStream>{}, state, messages);
  }
};

FL_REGISTER_PART(Compressor, Sign, NoOptions,
                 (PartInfo{"compressor", "sign", "+1 or -1, one bit; for majority votes (server kind \"sign_sgd\")",
                           "Bernstein, Wang, Azizzadenesheli, Anandkumar, signSGD, ICML 2018"}));

}  // namespace
}  // namespace fl::FL_DEVICE_NS
