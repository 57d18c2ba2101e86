// EF14: error feedback as first used, Algorithm 1 and 2 of Sahu et al. 2021 by the unit of the input.
//
//   client  p = e + u g,  c = C(p),  e <- p - c           server  estimate = sum_i weight_i c_i
//   unit = step      u = gamma: the step size inside the memory (EF-SGD, EC-SGD, EC-GD; Algorithm 1)
//   unit = gradient  u = 1: the server applies step size, momentum and weight decay after the mean (Algorithm 2)
//   unit = update    the memory holds differences of models after local steps (Qsparse-local-SGD)
// Invariant (unit = step, uniform weights): x_t - mean(e_t) follows exact SGD. e [N,P], kept while a client is absent.
// Sources: F. Seide et al., "1-bit stochastic gradient descent", INTERSPEECH 2014; S. U. Stich, J.-B. Cordonnier, M. Jaggi,
// "Sparsified SGD with memory", NeurIPS 2018; S. P. Karimireddy et al., "Error feedback fixes SignSGD", ICML 2019.
#include <algorithm>

#include "compressors/feedback/feedback.hpp"
#include "fl_core/registry.hpp"

namespace fl::FL_DEVICE_NS {

template <class T>
class Ef14 final : public Feedback<T> {
 public:
  explicit Ef14(const NoOptions&) {}

  [[nodiscard]] std::vector<SlotSpec> slots() const override {
    return {{.name = "error", .owner = SlotOwner::client, .double_buffered = true}};
  }
  [[nodiscard]] std::string home_of(const std::string&) const override { return "error"; }
  [[nodiscard]] std::string error_slot() const override { return "error"; }

  void check(const Surroundings& around, Problems& problems) const override {
    if (around.channels.size() != 1)
      problems.push_back({"feedback.up.kind", "ef14 keeps one memory; this local update sends several vectors"});
    for (std::size_t i = 0; i < around.contracts.size(); ++i) {
      const Contract& contract = around.contracts[i];
      if (contract.omega && *contract.omega > 0 && !contract.delta && !contract.kappa)
        problems.push_back({"compressor.up.kind", "ef14 around the unscaled unbiased operator '" + around.operators[i] +
                                                      "' diverges: scale it by 1/(1+omega) (scaled = true where it has that, scaled = false for "
                                                      "random_k), or use feedback 'none' or 'diana'"});
    }
  }

  [[nodiscard]] Send<T> prepare(const Exec&, const RoundContext<T>& context, const ClientBlock<T>& block, std::size_t) const override {
    Send<T> send;
    send.input.add(T(1), block.stored(*context.state, "error")).add(context.input_factor(), block.vectors[0]);
    send.state = {StateRule::residual, block.vectors[0]};
    return send;
  }
  void acknowledge(const RoundContext<T>& context, const ClientBlock<T>& block, std::uint32_t k, const Exchange<T>&) const override {
    context.state->swap("error", block.first + k);
  }
  void receive(const RoundContext<T>&, std::span<const Aggregate> aggregates, std::span<double> estimate) const override {
    std::copy(aggregates[0].estimate.begin(), aggregates[0].estimate.end(), estimate.begin());
  }
};

FL_REGISTER_PART(Feedback, Ef14, NoOptions,
                 (PartInfo{"feedback", "ef14", "error feedback: what is dropped is added to the next input",
                           "Seide et al., INTERSPEECH 2014; Stich, Cordonnier, Jaggi, NeurIPS 2018; Karimireddy et al., ICML 2019"}));

}  // namespace fl::FL_DEVICE_NS
