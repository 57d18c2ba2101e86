// Induced compressor: an unbiased operator compresses the error of a biased one, and both messages are sent.
//
//   C_ind(x) = C(x) + Q(x - C(x)),   unbiased with  omega_ind = omega (1 - delta)
//
// for C with |C(x) - x|^2 <= (1 - delta) |x|^2 (in expectation is sufficient) and Q unbiased with omega, drawn independently: the error is
// that of Q on x - C(x). An alternative to error feedback: it has no memory, and a smaller omega than Q alone.
//   compressor.up = { kind = "induced", biased = { kind = "top_k", ratio = 0.01 }, unbiased = { kind = "natural" } }
// On the wire: one message of two parts. Published bits: the sum of both parts.
//
// S. Horvath, P. Richtarik, "A better alternative to error feedback for communication-efficient distributed learning", ICLR 2021.
// Group: hybrid
#include <algorithm>

#include "compressors/compressor.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/quantizer.hpp"
#include "compressors/support/state_from_message.hpp"
#include "compressors/support/wrapped.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/ops/ops.hpp"

namespace fl {

struct InducedOptions {
  NamedPart biased{"top_k", {}};
  NamedPart unbiased{"natural", {}};
};
inline void describe(Schema& s, InducedOptions& o) {
  part_field(s, "biased", "compressor", o.biased, "C, a contraction");
  part_field(s, "unbiased", "compressor", o.unbiased, "Q, which compresses the error of C");
}

namespace FL_DEVICE_NS {
namespace {

template <class T>
class Induced final : public Compressor<T> {
 public:
  explicit Induced(const InducedOptions& options) : biased_(options.biased), unbiased_(options.unbiased) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    const Contract c = biased_->contract(scope), q = unbiased_->contract(scope);
    Contract contract;
    if (q.omega && c.delta) contract.omega = *q.omega * (1 - *c.delta);
    contract.domain = c.domain;
    if (c.cost && q.cost) contract.cost = *c.cost + *q.cost + costs::wrapping() + costs::copy() + EntryCost{1, 1};
    if (!to_string(q.domain).empty()) contract.domain.remainder.push_back(q.domain);
    return contract;
  }
  [[nodiscard]] Scope adapt(Scope scope) const override { return unbiased_->adapt(biased_->adapt(std::move(scope))); }
  void check(const Scope& scope) const override {
    biased_.check("induced", scope);
    unbiased_.check("induced", scope);
    const Contract c = biased_->contract(scope), q = unbiased_->contract(scope);
    if (!c.delta) throw ConfigError("induced: '" + biased_.name() + "' is not a contraction, which biased has to be");
    if (!q.omega)
      throw ConfigError("induced: '" + unbiased_.name() + "' is not unbiased; choose another one, or scaled = false where it has that");
  }

  [[nodiscard]] MessageLevels known_levels(const CompressContext<T>& context, const Scope& scope) const override {
    return {.first = biased_->known_levels(context, scope).first, .rest = unbiased_->known_levels(context, scope).first};
  }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    Workspace::Frame frame(*exec.workspace);
    T *x = frame.take<T>(scope.P), *left = frame.take<T>(scope.P);
    for (std::size_t k = 0; k < messages.size(); ++k) {
      Payload<T>& message = *messages[k];
      load_vector(exec, input, k, x);
      for_each(exec, scope.P, CopyElements<T>{x, left});
      message.place_on(kThisDevice);
      auto rest = std::make_unique<Payload<T>>();
      rest->place_on(message.index.device());
      rest->clear(message.length);
      Payload<T>* const parts[] = {&message, rest.get()};
      const std::span<Payload<T>* const> both(parts);
      const StateWrite<T> residual{StateRule::residual, {left, nullptr, 1, scope.P, scope.P}};
      biased_->compress(exec, inner_context(context, k, 1), vector_input<T>(x, scope.P), scope, residual, both.first(1));
      unbiased_->compress(exec, inner_context(context, k, 2), vector_input<T>(left, scope.P), scope, StateWrite<T>{}, both.last(1));
      message.rest = std::move(rest);
      write_state_from_message(exec, scope, x, message, state, k);
    }
  }

  [[nodiscard]] double published_bits(const Payload<T>& message, const Scope& scope) const override {
    if (message.silent || message.rest == nullptr) return Compressor<T>::published_bits(message, scope);
    return biased_->published_bits(message, scope) + unbiased_->published_bits(*message.rest, scope);
  }

 private:
  Wrapped<T> biased_, unbiased_;
};

FL_REGISTER_PART(Compressor, Induced, InducedOptions,
                 (PartInfo{"compressor", "induced", "a biased operator and an unbiased operator on its error; together unbiased",
                           "Horvath, Richtarik, A better alternative to error feedback, ICLR 2021"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
