// Server SGD with momentum: d = estimate + weight_decay x;  m <- momentum m + d (m = d in round 1);  x <- x - learning_rate gamma u
//   nesterov = "none"      u = m            (momentum 0: plain SGD; with unit "update" this is FedAvg, with momentum FedAvgM)
//   nesterov = "textbook"  u = d + momentum m
//   nesterov = "code"      u = d + m        (the form of the published deep-learning code: with momentum 0 it doubles the step)
#include <algorithm>
#include <vector>

#include "fl_core/config/aliases.hpp"
#include "fl_core/config/registry.hpp"
#include "server/server_optimizer.hpp"

namespace fl {

struct ServerSgdOptions {
  double learning_rate = 1.0;
  double momentum = 0.0;
  double weight_decay = 0.0;
  enum class Nesterov { none, textbook, code } nesterov = Nesterov::none;
};
void describe(Schema& s, ServerSgdOptions& o) {
  s.field("learning_rate", o.learning_rate, "factor on the estimate (in addition to gamma if the unit is a gradient)").above(0);
  s.field("momentum", o.momentum, "heavy-ball momentum on the estimate").at_least(0).below(1);
  s.field("weight_decay", o.weight_decay, "added to the estimate as weight_decay * x, after the mean").at_least(0);
  using N = ServerSgdOptions::Nesterov;
  s.choice("nesterov", o.nesterov, {{N::none, "none"}, {N::textbook, "textbook"}, {N::code, "code"}},
           "look-ahead: d + momentum m, or the published code's d + m");
}

namespace {

template <class T>
class ServerSgd final : public ServerOptimizer<T> {
 public:
  explicit ServerSgd(const ServerSgdOptions& o) : options_(o) {}

  void open(std::size_t P) override {
    if (!is_plain() && momentum_.empty()) momentum_.assign(P, 0.0);
    if (!is_plain() && momentum_.size() != P) throw ArchiveError("in 'optimizer': the momentum has another size than the model");
  }
  void step(std::uint32_t round, double step_size, std::size_t first, std::span<const double> estimate, std::span<T> model) override {
    using N = ServerSgdOptions::Nesterov;
    const double factor = options_.learning_rate * step_size, mu = options_.momentum, decay = options_.weight_decay;
    if (is_plain()) {
      for (std::size_t j = 0; j < model.size(); ++j) model[j] = static_cast<T>(static_cast<double>(model[j]) - factor * estimate[j]);
      return;
    }
    double* momentum = momentum_.data() + first;
    const double ahead = options_.nesterov == N::textbook ? mu : 1.0;
    for (std::size_t j = 0; j < model.size(); ++j) {
      const double d = estimate[j] + decay * static_cast<double>(model[j]);
      momentum[j] = round == 1 ? d : mu * momentum[j] + d;
      const double u = options_.nesterov == N::none ? momentum[j] : d + ahead * momentum[j];
      model[j] = static_cast<T>(static_cast<double>(model[j]) - factor * u);
    }
  }
  [[nodiscard]] std::optional<double> plain_rate() const override {
    return is_plain() ? std::optional(options_.learning_rate) : std::nullopt;
  }
  void persist(Archive& archive) override { archive.list(momentum_); }

 private:
  [[nodiscard]] bool is_plain() const {
    return options_.momentum == 0 && options_.weight_decay == 0 && options_.nesterov != ServerSgdOptions::Nesterov::code;
  }
  ServerSgdOptions options_;
  std::vector<double> momentum_;
};

FL_REGISTER_PART(ServerOptimizer, ServerSgd, ServerSgdOptions,
                 (PartInfo{"server_optimizer", "sgd", "SGD with momentum and weight decay on the estimate", ""}));
const bool kFedAvg = add_alias({"server_optimizer", "fedavg", "sgd", {}, "", "McMahan et al., AISTATS 2017"});
const bool kFedAvgM = add_alias({"server_optimizer", "fedavgm", "sgd", {{"momentum", Value{0.9}}}, "", "Hsu, Qi, Brown, 2019"});

}  // namespace
}  // namespace fl
