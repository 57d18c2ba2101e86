// AdaQS: QSGD whose number of levels doubles from time to time.
//
//   s_t = s_0 2^floor((t-1) / double_every),  at most max_levels;   C_t = QSGD with s_t levels,   omega_t = min(d/s_t^2, sqrt(d)/s_t)
//
// Gradients shrink as training goes on and their noise weighs more, so precision is added when it begins to matter. The promise is that of
// the first rounds, omega_1. Options norm and scaled are qsgd's. Published bits: the bits of a level, 32 per norm.
// J. Guo, W. Liu, W. Wang, J. Han, R. Li, Y. Lu, S. Hu, "Accelerating distributed deep learning by adaptive gradient quantization", ICASSP
// 2020. The paper doubles when a ratio of mean and deviation of the gradients falls below a bound; that rule was not at hand, and a server
// would have to tell it to the clients: here the rounds decide, which everyone knows.
#include <algorithm>
#include <string>
#include <vector>

#include "compressors/compressor.hpp"
#include "compressors/wrapped.hpp"
#include "fl_core/registry.hpp"

namespace fl {

struct AdaQsOptions {
  std::int64_t levels = 1, double_every = 100, max_levels = 1024;
  bool uses_max = false, scaled = false;
};

inline void describe(Schema& s, AdaQsOptions& o) {
  s.field("levels", o.levels, "s_0, the levels between 0 and the norm in the first rounds").at_least(1).at_most(1048576);
  s.field("double_every", o.double_every, "rounds after which the levels double").at_least(1).at_most(1000000000).unit("rounds");
  s.field("max_levels", o.max_levels, "most levels").at_least(1).at_most(1048576);
  s.choice("norm", o.uses_max, {{false, "l2"}, {true, "max"}}, "what a segment is divided by");
  s.field("scaled", o.scaled, "divide by 1 + omega: no longer unbiased, but a contraction, as error feedback needs it");
}
inline void validate(const AdaQsOptions& o, Problems& problems) {
  if (o.max_levels < o.levels) problems.push_back({"max_levels", "must be at least levels, " + std::to_string(o.levels)});
}

namespace FL_DEVICE_NS {
namespace {

template <class T>
class AdaQs final : public Compressor<T> {
 public:
  explicit AdaQs(const AdaQsOptions& options) : double_every_(options.double_every) {
    for (std::int64_t levels = options.levels;; levels *= 2) {
      stages_.emplace_back(with_settings("qsgd", {{"levels", Value{std::min(levels, options.max_levels)}},
                                                  {"norm", Value{std::string(options.uses_max ? "max" : "l2")}},
                                                  {"scaled", Value{options.scaled}}}));
      if (levels >= options.max_levels) break;
    }
  }

  [[nodiscard]] Contract contract(const Scope& scope) const override { return stages_.front()->contract(scope); }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    const auto doubled = static_cast<std::size_t>((context.round > 0 ? context.round - 1 : 0) / double_every_);
    stages_[std::min(doubled, stages_.size() - 1)]->compress(exec, context, input, scope, state, messages);
  }

 private:
  std::int64_t double_every_;
  std::vector<Wrapped<T>> stages_;
};

FL_REGISTER_HOST_PART(Compressor, AdaQs, AdaQsOptions,
                      (PartInfo{"compressor", "adaqs", "QSGD whose levels double every so many rounds",
                                "Guo, Liu, Wang, Han, Li, Lu, Hu, Accelerating distributed deep learning, ICASSP 2020"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
