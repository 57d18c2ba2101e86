// Adaptive server optimisers: the step of each parameter is divided by the root of what its updates were like.
//
//   D_t = -(estimate), the mean update of the clients;   m_t = beta1 m_{t-1} + (1 - beta1) D_t,   m_0 = 0,  v_0 = tau^2
//   adagrad  v_t = v_{t-1} + D_t^2
//   adam     v_t = beta2 v_{t-1} + (1 - beta2) D_t^2
//   yogi     v_t = v_{t-1} - (1 - beta2) D_t^2 sign(v_{t-1} - D_t^2)
//   x_t = x_{t-1} + learning_rate m_t / (sqrt(v_t) + tau)
// Nothing is corrected for the first rounds, as in the source. A gradient as estimate is multiplied by gamma first.
// Source: Reddi, Charles, Zaheer, Garrett, Rush, Konecny, Kumar, McMahan, "Adaptive Federated Optimization", ICLR 2021, Algorithm 2.
#include <cmath>
#include <vector>

#include "fl_core/config/registry.hpp"
#include "server/server_optimizer.hpp"

namespace fl {

struct AdagradOptions {
  double learning_rate = 0.1, beta1 = 0.0, tau = 1e-3;
};
struct AdamOptions {
  double learning_rate = 0.1, beta1 = 0.9, tau = 1e-3, beta2 = 0.99;
};
struct YogiOptions : AdamOptions {};

namespace {
template <class OptionsStruct>
void describe_common(Schema& s, OptionsStruct& o) {
  s.field("learning_rate", o.learning_rate, "server step size eta").above(0);
  s.field("beta1", o.beta1, "decay of the mean of updates").at_least(0).below(1);
  s.field("tau", o.tau, "added to the root of v; the first v is tau^2; a smaller tau is more adaptive").above(0);
}
}  // namespace

void describe(Schema& s, AdagradOptions& o) { describe_common(s, o); }
void describe(Schema& s, AdamOptions& o) {
  describe_common(s, o);
  s.field("beta2", o.beta2, "decay of the mean of squared updates").at_least(0).below(1);
}

namespace {

// Rule::next(v, squared update): the next v.
template <class T, class Rule>
class Adaptive : public ServerOptimizer<T> {
 public:
  template <class OptionsStruct>
  explicit Adaptive(const OptionsStruct& o) : learning_rate_(o.learning_rate), beta1_(o.beta1), tau_(o.tau), rule_(o) {}

  void open(std::size_t P) override {
    if (!m_.empty() && (m_.size() != P || v_.size() != P))
      throw ArchiveError("in 'optimizer': its moments have another size than the model");
    if (!m_.empty()) return;
    m_.assign(P, 0.0);
    v_.assign(P, tau_ * tau_);
  }
  void step(std::uint32_t, double step_size, std::size_t first, std::span<const double> estimate, std::span<T> model) override {
    double *m = m_.data() + first, *v = v_.data() + first;
    for (std::size_t j = 0; j < model.size(); ++j) {
      const double update = -step_size * estimate[j];
      m[j] = beta1_ * m[j] + (1 - beta1_) * update;
      v[j] = rule_.next(v[j], update * update);
      model[j] = static_cast<T>(static_cast<double>(model[j]) + learning_rate_ * m[j] / (std::sqrt(v[j]) + tau_));
    }
  }
  void persist(Archive& archive) override {
    archive.list(m_);
    archive.list(v_);
  }

 private:
  double learning_rate_, beta1_, tau_;
  Rule rule_;
  std::vector<double> m_, v_;  // [P]; empty before the first step
};

struct AdagradRule {
  explicit AdagradRule(const AdagradOptions&) {}
  [[nodiscard]] double next(double v, double square) const { return v + square; }
};
struct AdamRule {
  explicit AdamRule(const AdamOptions& o) : beta2(o.beta2) {}
  [[nodiscard]] double next(double v, double square) const { return beta2 * v + (1 - beta2) * square; }
  double beta2;
};
struct YogiRule {
  explicit YogiRule(const AdamOptions& o) : beta2(o.beta2) {}
  [[nodiscard]] double next(double v, double square) const {
    return v > square ? v - (1 - beta2) * square : v < square ? v + (1 - beta2) * square : v;
  }
  double beta2;
};

template <class T>
struct ServerAdagrad final : Adaptive<T, AdagradRule> {
  using Adaptive<T, AdagradRule>::Adaptive;
};
template <class T>
struct ServerAdam final : Adaptive<T, AdamRule> {
  using Adaptive<T, AdamRule>::Adaptive;
};
template <class T>
struct ServerYogi final : Adaptive<T, YogiRule> {
  using Adaptive<T, YogiRule>::Adaptive;
};

constexpr const char* kSource = "Reddi et al., Adaptive Federated Optimization, ICLR 2021";
FL_REGISTER_PART(ServerOptimizer, ServerAdagrad, AdagradOptions,
                 (PartInfo{"server_optimizer", "adagrad", "steps divided by the root of the sum of squared updates (FedAdagrad)",
                           kSource}));
FL_REGISTER_PART(ServerOptimizer, ServerAdam, AdamOptions,
                 (PartInfo{"server_optimizer", "adam", "steps divided by the root of a running mean of squared updates (FedAdam)",
                           kSource}));
FL_REGISTER_PART(ServerOptimizer, ServerYogi, YogiOptions,
                 (PartInfo{"server_optimizer", "yogi", "as adam, but squared updates move the mean by a bounded amount (FedYogi)",
                           kSource}));

}  // namespace
}  // namespace fl
