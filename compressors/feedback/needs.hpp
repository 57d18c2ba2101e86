// What a feedback needs of its surroundings, as data beside it: the check of a scenario, its errors and the lists of `fedbits list` and the
// reference follow from it.
#pragma once

#include <string>
#include <vector>

#include "compressors/contract.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/config/options.hpp"
#include "fl_core/round/run_settings.hpp"

namespace fl {

struct FeedbackPlan;

// What a feedback may be combined with: checked before anything runs.
struct FeedbackCombination {
  std::string local_update;  // kind
  Unit unit = Unit::gradient;
  bool full_participation = true;
  std::vector<std::string> channels;   // the local vectors
  std::vector<Contract> contracts;     // of each channel's operator, for its scope
  std::vector<std::string> operators;  // kinds
  int num_phases = 1;
  bool computes_anywhere = false;     // LocalUpdate::computes_anywhere
  bool subtracts_optimum = false;     // LocalUpdate::needs_optimum
  std::string downlink = "identity";  // operator of the way down
  Contract downlink_contract;
  std::string server = "sgd";    // kind of the server's optimizer
  bool has_plain_server = true;  // the server's step is a constant times the estimate (ServerOptimizer::plain_rate)
};

// What an operator has to promise.
enum class OperatorClass {
  any,
  bounded,      // no unbiased operator alone, as one that nobody scaled makes a memory grow
  contraction,  // E|C(x)-x|^2 <= (1-delta)|x|^2 for a delta > 0, which omega < 1 is, or an absolute bound, or no omega at least
  unbiased,
};

// What the operator of a channel has to be.
struct OperatorNeed {
  OperatorClass is = OperatorClass::any;
  std::string channel = "";  // "": of every channel without a need of its own
  std::string kind = "";     // the only one that will do, "" = any
  std::string instead = "";  // what to use where the operator is another one
};

// An option of the feedback that is at most 1 / (1 + omegas * omega) for an unbiased operator.
struct OptionBound {
  std::string option;
  double value = 0;
  int omegas = 1;
};

// Without a value there is no need.
struct FeedbackNeeds {
  std::string name = "";  // of the feedback, in errors
  // ---- local work ----
  bool one_vector = false;         // the local update sends one vector
  bool own_models = false;         // clients compute at models of their own
  std::string local_kind = "";     // the only local update that will do
  bool subtracts_optimum = false;  // gradients less those at the optimum
  std::vector<Unit> units = {};    // of what is sent; none: any
  std::string units_why = "";      // "ef21 compresses differences of gradients"
  // ---- operators ----
  bool own_messages = false;  // each client's own message, not only their mean: one phase
  std::vector<OperatorNeed> operators = {};
  std::vector<OptionBound> bounds = {};
  // ---- the rest of the run ----
  bool every_client = false;          // takes part in every round
  std::string all_at_first = "";      // the first round needs every client, because init = "dense"; what init may be instead
  bool plain_server = false;          // the server's step is a constant times the estimate
  bool contracting_downlink = false;  // models go down compressed, by a contraction
  bool keeps_error = true;            // what an operator leaves behind comes back, which Contract::no_memory refuses
};

// Returns the need of a channel's operator.
[[nodiscard]] FL_API OperatorNeed need_of_channel(const FeedbackNeeds& needs, const std::string& channel);
// Whether an operator of this kind and contract will do.
[[nodiscard]] FL_API bool is_met(const OperatorNeed& need, const std::string& kind, const Contract& contract);
// Whether the feedback works with a local update that sends these vectors in this unit. `combination` needs no operators for that.
[[nodiscard]] FL_API bool suits_local_work(const FeedbackNeeds& needs, const FeedbackCombination& combination);

// Adds a problem that says what to do for each need that is not met.
FL_API void check_needs(const FeedbackNeeds& needs, const FeedbackPlan& plan, const FeedbackCombination& combination, Problems& problems);

}  // namespace fl
