// AdaQS: QSGD whose number of levels doubles as training goes on, coarse at first and fine near the end.
//
//   C = QSGD with s_t levels of |x|_2,   s_t = min(s_0 2^floor((t-1)/E), s_max),   t = 1, 2, ... the round
//
// Unbiased, omega = min(d / s_0^2, sqrt(d) / s_0): the bound of the first rounds holds for all rounds. scaled = true sends C(x) / (1 +
// omega_t), a contraction in expectation with delta = 1 / (1 + omega) of the first rounds. Published bits as for qsgd: 1 +
// ceil(log2(s_t+1)) per coordinate and 32 per norm. The level width in the message follows s_t.
// The source doubles s when a statistic of the gradients says so. Here the number of rounds between two doublings is an option, so that
// every client and the server know s_t without communication. Checked against QSGD with the same s in every round.
// Guo, Liu, Wang, Gong, "Accelerating distributed deep learning by adaptive gradient quantization", ICASSP 2020.
// Group: quantiser
#include <algorithm>

#include "compressors/compressor.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/random_levels.hpp"
#include "fl_core/config/differences.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct AdaqsOptions {
  std::int64_t levels = 1;
  std::int64_t double_every = 50;
  std::int64_t max_levels = 127;
  bool scaled = false;
};

inline void describe(Schema& s, AdaqsOptions& o) {
  s.field("levels", o.levels, "s_0, the levels between 0 and the norm in the first rounds").at_least(1).at_most(1048576);
  s.field("double_every", o.double_every, "E: number of rounds after which the levels double")
      .at_least(1)
      .at_most(4294967295.0)
      .unit("rounds");
  s.field("max_levels", o.max_levels, "s_max, where the doubling ends").at_least(1).at_most(1048576);
  s.field("scaled", o.scaled, "divide by 1 + omega: no longer unbiased, but a contraction, as error feedback needs it");
}

inline void validate(const AdaqsOptions& o, Problems& problems) {
  if (o.max_levels < o.levels)
    problems.push_back({"max_levels", "must be at least levels = " + std::to_string(o.levels) + ", is " + std::to_string(o.max_levels)});
}

namespace FL_DEVICE_NS {
namespace {

template <class T>
class Adaqs final : public Compressor<T> {
 public:
  explicit Adaqs(const AdaqsOptions& options) : options_(options) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    const double omega = omega_of(scope, options_.levels);
    Contract contract;
    contract.cost = costs::reading(2) + costs::levels(8, costs::Rounding::random);
    if (options_.scaled) {
      contract.delta = 1 / (1 + omega);
      contract.delta_holds = Contract::Holds::in_expectation;
    } else {
      contract.omega = omega;
    }
    contract.domain = random_levels_domain<T>(LevelNorm::l2, unit(scope, options_.max_levels));
    return contract;
  }

  [[nodiscard]] MessageLevels known_levels(const CompressContext<T>& context, const Scope& scope) const override {
    return all_known(random_levels_format(levels_in(context.round), unit(scope, levels_in(context.round))));
  }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    const std::int64_t s = levels_in(context.round);
    send_random_levels(exec, context, input, scope, LevelNorm::l2, s, unit(scope, s), state, messages);
  }

 private:
  [[nodiscard]] double unit(const Scope& scope, std::int64_t s) const {
    const double unit = 1 / static_cast<double>(s);
    return options_.scaled ? unit / (1 + omega_of(scope, s)) : unit;
  }
  [[nodiscard]] std::int64_t levels_in(std::uint32_t round) const {
    std::int64_t s = options_.levels, doublings = round > 0 ? (round - 1) / options_.double_every : 0;
    for (; doublings > 0 && s < options_.max_levels; --doublings) s *= 2;
    return std::min(s, options_.max_levels);
  }
  [[nodiscard]] static double omega_of(const Scope& scope, std::int64_t s) {
    return random_levels_omega(LevelNorm::l2, static_cast<double>(largest_segment(scope)), static_cast<double>(s));
  }
  AdaqsOptions options_;
};

FL_REGISTER_PART(Compressor, Adaqs, AdaqsOptions,
                 (PartInfo{"compressor", "adaqs", "QSGD whose levels double every E rounds; unbiased",
                           "Guo, Liu, Wang, Gong, Accelerating distributed deep learning by adaptive gradient quantization, ICASSP 2020"}));
const bool kAdaqsDiffers = add_difference(
    {"compressor", "adaqs",
     "the publication doubles the levels when a statistic of the gradients asks for it; here they double every double_every rounds"});

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
