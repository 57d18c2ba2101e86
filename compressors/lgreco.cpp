// L-GreCo: every layer uses one of several operators, such that the message is as short as possible at the error of a reference operator.
//
//   choose c_s for every segment s:   minimise sum_s bits(c_s)
//   subject to   sum_s |C_{c_s}(x_s) - x_s|^2 <= alpha sum_s |C_ref(x_s) - x_s|^2
//
// The problem is solved by dynamic programming over segments and the error spent, in `steps` steps of the budget. Each error is rounded up,
// so that the bound holds exactly. The reference is one of the candidates and is used if the rounding leaves no other choice. Bits are
// those of the encoding. With alpha <= 1 the reference's delta therefore holds for the whole message in every round in which a choice is
// made.
//   compressor.up = { kind = "lgreco", scope = "tensor", reference = { kind = "top_k", ratio = 0.05 }, candidates = [
//     { kind = "top_k", ratio = 0.01 }, { kind = "top_k", ratio = 0.1 }, { kind = "top_k", ratio = 0.2 } ] }
// Every client chooses for itself, every `adjust_every` rounds. The operator stores the S choices and the rounds since the last choice.
// Candidates must send raw values of some entries, or factors. Published bits: 32 per number.
// M. Alimohammadi, I. Markov, E. Frantar, D. Alistarh, "L-GreCo: Layerwise-adaptive gradient compression for efficient and accurate deep
// learning", MLSys 2024: budgets over ranges around a default parameter, alpha = 1. The paper chooses on gradients that all workers add up
// between adjustments; here each client chooses on its input of the round.
// Group: hybrid
#include <algorithm>
#include <cmath>
#include <vector>

#include "compressors/codec/codec.hpp"
#include "compressors/compressor.hpp"
#include "compressors/support/by_segment.hpp"
#include "compressors/support/few_numbers.hpp"
#include "compressors/support/knapsack.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/quantizer.hpp"
#include "compressors/support/state_from_message.hpp"
#include "compressors/support/wrapped.hpp"
#include "fl_core/config/differences.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/ops/cuda/payload_copy.hpp"
#include "fl_core/ops/ops.hpp"

namespace fl {

struct LGreCoOptions {
  NamedPart reference{"top_k", {}};
  std::vector<NamedPart> candidates;
  double alpha = 1;
  std::int64_t adjust_every = 10, steps = 1000;
};

inline void describe(Schema& s, LGreCoOptions& o) {
  part_field(s, "reference", "compressor", o.reference,
             "the operator whose error on all segments is the allowed error; one of the candidates");
  part_field(s, "candidates", "compressor", o.candidates, "other operators that a segment may take");
  s.field("alpha", o.alpha, "error allowed, as a part of the reference's").above(0).at_most(1e6);
  s.field("adjust_every", o.adjust_every, "rounds of a client between choices").at_least(1).at_most(1000000).unit("rounds");
  s.field("steps", o.steps, "number of steps into which the allowed error is divided").at_least(1).at_most(1000000);
}

namespace FL_DEVICE_NS {
namespace {

// Computes in double, so that no value is rounded before it is squared.
template <class T>
struct WriteDifference {
  const T *x, *sent;
  double* difference;
  FL_HD void operator()(std::size_t j) const { difference[j] = static_cast<double>(x[j]) - static_cast<double>(sent[j]); }
};

template <class T>
class LGreCo final : public Compressor<T> {
 public:
  explicit LGreCo(const LGreCoOptions& options) : options_(options) {
    operators_.emplace_back(options.reference);
    for (const NamedPart& candidate : options.candidates) operators_.emplace_back(candidate);
  }

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    std::vector<Contract> all;
    for (const Wrapped<T>& op : operators_) all.push_back(op->contract(scope));
    Contract contract = weakest(all);
    contract.omega.reset();  // a choice by the error of a draw is not independent of the draw
    if (contract.cost) *contract.cost += costs::wrapping() + choice_cost(all);
    if (options_.alpha <= 1 && options_.adjust_every == 1 && all.front().delta) {
      contract.delta = all.front().delta;
      contract.delta_holds = all.front().delta_holds;
    }
    return contract;
  }
  [[nodiscard]] Scope adapt(Scope scope) const override {
    for (const Wrapped<T>& op : operators_) scope = op->adapt(std::move(scope));
    return scope;
  }
  void check(const Scope& scope) const override {
    for (const Wrapped<T>& op : operators_) {
      op.check("lgreco", scope);
      demand_joinable("lgreco", op, scope);
    }
  }
  // [S] the operator of each segment, rounds since the choice (0: no choice yet)
  [[nodiscard]] std::size_t client_state_size(const Scope& scope) const override { return scope.segments.size() + 1; }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    Workspace::Frame frame(*exec.workspace);
    T* x = frame.take<T>(scope.P);
    const std::size_t S = scope.segments.size();
    auto parts = parts_.take(S);
    RememberedNumbers<T> remembered(exec, context.remembered, S + 1);
    for (std::size_t k = 0; k < messages.size(); ++k) {
      load_vector(exec, input, k, x);
      std::vector<T> memory = remembered.of(k);
      const bool is_due = memory[S] == T(0) || !(static_cast<double>(memory[S]) < static_cast<double>(options_.adjust_every));
      memory[S] = is_due ? T(1) : memory[S] + T(1);
      if (is_due) choose(exec, context, x, scope, k, memory);
      remembered.set(k, memory);
      for (std::size_t s = 0; s < S; ++s) compress_segment<T>(exec, context, chosen(memory[s]), x, scope, s, k, (*parts)[s]);
      join_segments(exec, scope, *parts, *messages[k]);
      write_state_from_message<T>(exec, scope, x, *messages[k], state, k);
    }
    remembered.write(exec, context.remember);
    parts_.give(std::move(parts));
  }

 private:
  // Every adjust_every rounds all operators compress the vector, and each of their messages is expanded, subtracted and measured.
  [[nodiscard]] EntryCost choice_cost(const std::vector<Contract>& all) const {
    EntryCost sum;
    for (const Contract& one : all) sum += one.cost.value_or(EntryCost{}) + EntryCost{6, 4};
    return 1 / static_cast<double>(options_.adjust_every) * sum;
  }
  // Returns the operator that a number of the state names. The state may come from a file or be another caller's: a number that names none
  // stands for the reference.
  [[nodiscard]] const Wrapped<T>& chosen(T number) const {
    const bool names_one = number >= T(0) && number < static_cast<T>(operators_.size());
    return operators_[names_one ? static_cast<std::size_t>(number) : 0];
  }

  // Tries every operator on every segment and writes the choice to `chosen` [S] and more. Messages are counted on the host.
  void choose(const Exec& exec, const CompressContext<T>& context, const T* x, const Scope& scope, std::size_t k,
              std::vector<T>& chosen) const {
    Workspace::Frame frame(*exec.workspace);
    const std::size_t S = scope.segments.size(), C = operators_.size();
    std::vector<std::vector<double>> cost(S, std::vector<double>(C)), error = cost;
    T* sent = frame.take<T>(scope.P);
    auto* difference = frame.take<double>(scope.P);
    Payload<T> part, copy;
    double allowed = 0;
    for (std::size_t s = 0; s < S; ++s) {
      const Scope own = alone(scope, s);
      const Segment& segment = scope.segments[s];
      for (std::size_t c = 0; c < C; ++c) {
        compress_segment<T>(exec, context, operators_[c], x, scope, s, k, part);
        const codec::Channel<T> channel{&payload_on_host(exec, part, copy), &own};
        cost[s][c] = static_cast<double>(codec::encoded_bits<T>(std::span(&channel, 1)));
        expand_message(exec, part, own, sent);
        for_each(exec, segment.size(), WriteDifference<T>{x + segment.begin, sent + segment.begin, difference + segment.begin});
        error[s][c] = reduced_on_host(exec, vector_input<double>(difference, scope.P), own, SquareOf{}, Reduce::sum)[0];
      }
      allowed += options_.alpha * error[s][0];
    }
    const auto steps = static_cast<std::size_t>(options_.steps);
    const std::vector<std::size_t> best = cheapest_within(cost, error, allowed, steps);
    for (std::size_t s = 0; s < S; ++s) chosen[s] = static_cast<T>(best[s]);
  }
  // Returns the message itself, or `copy` if the message is on a GPU.
  [[nodiscard]] static const Payload<T>& payload_on_host(const Exec& exec, const Payload<T>& message, Payload<T>& copy) {
    if constexpr (kThisDevice == Device::cpu) {
      return message;
    } else {
      cuda::copy_payload(message, copy, exec.stream);
      return copy;
    }
  }

  LGreCoOptions options_;
  std::vector<Wrapped<T>> operators_;  // the reference first
  SegmentParts<T> parts_;
};

FL_REGISTER_PART(Compressor, LGreCo, LGreCoOptions,
                 (PartInfo{"compressor", "lgreco", "an operator for each layer: the shortest message at the error of a reference",
                           "Alimohammadi, Markov, Frantar, Alistarh, L-GreCo, MLSys 2024"}));
const bool kLGreCoDiffers = add_difference({"compressor", "lgreco",
                                            "the publication chooses for all workers, on gradients added up between two choices; here "
                                            "every client chooses for itself, on its own input of the round"});

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
