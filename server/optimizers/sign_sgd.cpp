// The sign of the estimate: majority vote, where the clients send signs.
//
//   x <- x - learning_rate gamma sgn(estimate),    sgn(0) = +1, 0 or -1 by `tie`
//
// gamma is the step size where the estimate is a gradient, 1 where it is a step or an update. With compressor.up = "sign" the estimate is
// the weighted mean of votes of +-1; a tie needs an even number of equal votes.
// Source: J. Bernstein, Y.-X. Wang, K. Azizzadenesheli, A. Anandkumar, "signSGD: Compressed optimisation for non-convex problems", ICML
// 2018; GRACE's code takes a tie for +1.
#include "fl_core/config/registry.hpp"
#include "server/server_optimizer.hpp"

namespace fl {

struct SignSgdOptions {
  double learning_rate = 1.0;
  enum class Tie { plus, stay } tie = Tie::plus;
};
void describe(Schema& s, SignSgdOptions& o) {
  s.field("learning_rate", o.learning_rate, "length of the step in every coordinate (in addition to gamma if the unit is a gradient)")
      .above(0);
  s.choice("tie", o.tie, {{SignSgdOptions::Tie::plus, "plus"}, {SignSgdOptions::Tie::stay, "stay"}},
           "an estimate of exactly 0 counts as +1, or the coordinate stays");
}

namespace {

template <class T>
class SignSgd final : public ServerOptimizer<T> {
 public:
  explicit SignSgd(const SignSgdOptions& o) : options_(o) {}

  void step(std::uint32_t, double step_size, std::size_t, std::span<const double> estimate, std::span<T> model) override {
    const double length = options_.learning_rate * step_size, tie = options_.tie == SignSgdOptions::Tie::plus ? length : 0;
    for (std::size_t j = 0; j < model.size(); ++j) {
      const double move = estimate[j] > 0 ? length : estimate[j] < 0 ? -length : tie;
      model[j] = static_cast<T>(static_cast<double>(model[j]) - move);
    }
  }

 private:
  SignSgdOptions options_;
};

FL_REGISTER_PART(ServerOptimizer, SignSgd, SignSgdOptions,
                 (PartInfo{"server_optimizer", "sign_sgd", "a step of the same length in every coordinate, along the sign of the estimate",
                           "Bernstein, Wang, Azizzadenesheli, Anandkumar, signSGD, ICML 2018"}));

}  // namespace
}  // namespace fl
