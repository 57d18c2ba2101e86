// ACCORDION: weak compression for layers in a critical phase of training, strong compression for the others.
//
//   every `window` rounds of a client and for every segment, with n_now the norm of its input and n_then that of `window` rounds before:
//   critical  if it is the first decision, or |n_then - n_now| / n_then >= eta, or the step size has fallen since
//   C(x)_segment = critical(x) or otherwise(x)
//
//   compressor.up = { kind = "accordion", scope = "tensor", critical = { kind = "top_k", ratio = 0.99 },
//                    otherwise = { kind = "top_k", ratio = 0.1 } }
// Every client decides for itself from norms that it stores, as the published port does; the original adds up the gradients of the window
// and decides for all workers. The input includes the feedback's memory. The contract is the weaker one of both operators. Both must send
// raw values of some entries, or factors. The operator stores 2 S + 2 numbers per client: the norm and decision of each segment, the rounds
// since the last decision, and the step size (known if the input is a step). Published bits: 32 per number. S. Agarwal, H. Wang, K. Lee, S.
// Venkataraman, D. Papailiopoulos, "Adaptive gradient communication via critical learning regime identification", MLSys 2021: eta = 0.5, a
// window of ten epochs, Top-k of 99% and 10%.
// Group: hybrid
#include <algorithm>
#include <cmath>
#include <vector>

#include "compressors/compressor.hpp"
#include "compressors/support/by_segment.hpp"
#include "compressors/support/few_numbers.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/quantizer.hpp"
#include "compressors/support/state_from_message.hpp"
#include "compressors/support/wrapped.hpp"
#include "fl_core/config/differences.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/ops/ops.hpp"

namespace fl {

struct AccordionOptions {
  NamedPart critical{"top_k", {}}, otherwise{"top_k", {}};
  double eta = 0.5;
  std::int64_t window = 10;
};

inline void describe(Schema& s, AccordionOptions& o) {
  part_field(s, "critical", "compressor", o.critical, "operator for segments in a critical phase");
  part_field(s, "otherwise", "compressor", o.otherwise, "operator for all other segments");
  s.field("eta", o.eta, "relative change of a segment's norm that makes it critical").above(0).at_most(1e6);
  s.field("window", o.window, "rounds of a client between decisions").at_least(1).at_most(1000000).unit("rounds");
}

namespace FL_DEVICE_NS {
namespace {

template <class T>
class Accordion final : public Compressor<T> {
 public:
  explicit Accordion(const AccordionOptions& options) : critical_(options.critical), otherwise_(options.otherwise), options_(options) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    Contract contract = weakest({critical_->contract(scope), otherwise_->contract(scope)});
    if (contract.cost) *contract.cost += costs::wrapping() + 1.0 / static_cast<double>(options_.window) * costs::reading(2);
    return contract;
  }
  [[nodiscard]] Scope adapt(Scope scope) const override { return otherwise_->adapt(critical_->adapt(std::move(scope))); }
  void check(const Scope& scope) const override {
    for (const Wrapped<T>* op : {&critical_, &otherwise_}) {
      op->check("accordion", scope);
      demand_joinable("accordion", *op, scope);
    }
  }
  // [S] norms, [S] decisions, rounds since the last decision (0: no decision yet), step size.
  [[nodiscard]] std::size_t client_state_size(const Scope& scope) const override { return 2 * scope.segments.size() + 2; }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    Workspace::Frame frame(*exec.workspace);
    T* x = frame.take<T>(scope.P);
    const std::size_t S = scope.segments.size();
    auto parts = parts_.take(S);
    RememberedNumbers<T> remembered(exec, context.remembered, 2 * S + 2);
    decide(exec, input, scope, context.steps.in_input, remembered);
    for (std::size_t k = 0; k < messages.size(); ++k) {
      load_vector(exec, input, k, x);
      const std::vector<T> memory = remembered.of(k);
      for (std::size_t s = 0; s < S; ++s) {
        const bool is_critical = memory[S + s] != T(0);
        compress_segment<T>(exec, context, is_critical ? critical_ : otherwise_, x, scope, s, k, (*parts)[s]);
      }
      join_segments(exec, scope, *parts, *messages[k]);
      write_state_from_message<T>(exec, scope, x, *messages[k], state, k);
    }
    remembered.write(exec, context.remember);
    parts_.give(std::move(parts));
  }

 private:
  // Makes the decisions of every client. Norms are computed only if a client has a decision to make.
  void decide(const Exec& exec, const Affine<T>& input, const Scope& scope, double step_size, RememberedNumbers<T>& remembered) const {
    const std::size_t S = scope.segments.size(), K = input.clients();
    std::vector<double> squares;  // [K,S]
    for (std::size_t k = 0; k < K; ++k) {
      const std::vector<T> before = remembered.of(k);
      std::vector<T> after = before;
      const bool is_new = before[2 * S] == T(0), has_slowed = !is_new && static_cast<T>(step_size) < before[2 * S + 1];
      const bool is_due = is_new || has_slowed || !(static_cast<double>(before[2 * S]) < static_cast<double>(options_.window));
      after[2 * S] = is_due ? T(1) : before[2 * S] + T(1);
      after[2 * S + 1] = static_cast<T>(step_size);
      if (is_due && squares.empty()) squares = reduced_on_host(exec, input, scope, SquareOf{}, Reduce::sum);
      for (std::size_t s = 0; is_due && s < S; ++s) {
        const double now = std::sqrt(squares[k * S + s]), then = static_cast<double>(before[s]);
        const bool has_changed = then > 0 ? std::fabs(then - now) / then >= options_.eta : now > 0;
        after[s] = static_cast<T>(now);
        after[S + s] = is_new || has_slowed || has_changed ? T(1) : T(0);
      }
      remembered.set(k, after);
    }
  }

  Wrapped<T> critical_, otherwise_;
  AccordionOptions options_;
  SegmentParts<T> parts_;
};

FL_REGISTER_PART(Compressor, Accordion, AccordionOptions,
                 (PartInfo{"compressor", "accordion", "less compression for layers whose norm changes, more for the others",
                           "Agarwal, Wang, Lee, Venkataraman, Papailiopoulos, Accordion, MLSys 2021"}));
const bool kAccordionDiffers = add_difference({"compressor", "accordion",
                                               "the publication decides for all workers, by the norm of gradients added up over a window; "
                                               "here every client decides for itself, by the norm of its own input g + e"});

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
