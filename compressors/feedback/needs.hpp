// The requirements of a feedback as data. The check of a scenario, its error messages, the lists of `fedbits list` and the reference are
// derived from them.
#pragma once

#include <string>
#include <vector>

#include "compressors/contract.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/config/options.hpp"
#include "fl_core/round/run_settings.hpp"

namespace fl {

struct FeedbackPlan;

// The combination of parts that a feedback is checked against, before the run starts.
struct FeedbackCombination {
  std::string local_update;  // kind
  Unit unit = Unit::gradient;
  bool full_participation = true;
  std::vector<std::string> channels;   // the local vectors
  std::vector<Contract> contracts;     // of each channel's operator in its scope
  std::vector<std::string> operators;  // kinds
  int num_phases = 1;
  bool computes_anywhere = false;     // LocalUpdate::computes_anywhere
  bool subtracts_optimum = false;     // LocalUpdate::needs_optimum
  std::string downlink = "identity";  // operator of the downlink
  Contract downlink_contract;
  std::string server = "sgd";    // kind of the server's optimizer
  bool has_plain_server = true;  // the server's step is a constant times the estimate (ServerOptimizer::plain_rate)
};

// The class of operators that a feedback accepts.
enum class OperatorClass {
  any,
  bounded,      // an absolute bound, a contraction or no omega: a bare unbiased operator makes a memory grow
  contraction,  // E|C(x)-x|^2 <= (1-delta)|x|^2 for a delta > 0 (which omega < 1 implies), or an absolute bound, or no omega
  unbiased,
};

// The requirement on the operator of a channel.
struct OperatorNeed {
  OperatorClass is = OperatorClass::any;
  std::string channel = "";  // "" = all channels without their own requirement
  std::string kind = "";     // the only accepted operator; "" = any
  std::string instead = "";  // alternative named in the error message
};

// An option of the feedback whose upper bound is 1 / (1 + omegas * omega) for an unbiased operator.
struct OptionBound {
  std::string option;
  double value = 0;
  int omegas = 1;
};

// Fields that keep their default impose no requirement.
struct FeedbackNeeds {
  std::string name = "";  // name of the feedback in error messages
  // ---- local work ----
  bool one_vector = false;         // the local update sends one vector
  bool own_models = false;         // each client computes at its own model
  std::string local_kind = "";     // the only accepted local update; "" = any
  bool subtracts_optimum = false;  // gradients are taken minus those at the optimum
  std::vector<Unit> units = {};    // accepted units of the sent vector; empty = any
  std::string units_why = "";      // "ef21 compresses differences of gradients"
  // ---- operators ----
  bool own_messages = false;  // needs each client's message, not only the mean: one phase
  std::vector<OperatorNeed> operators = {};
  std::vector<OptionBound> bounds = {};
  // ---- the rest of the run ----
  bool every_client = false;          // every client takes part in every round
  std::string all_at_first = "";      // the first round needs every client, because init = "dense"; holds the value of init to use instead
  bool plain_server = false;          // the server's step is a constant times the estimate
  bool contracting_downlink = false;  // the downlink compresses models by a contraction
  bool keeps_error = true;            // the feedback sends the compression error later, which Contract::no_memory forbids
};

// Returns the requirement on a channel's operator.
[[nodiscard]] FL_API OperatorNeed need_of_channel(const FeedbackNeeds& needs, const std::string& channel);
// Returns whether an operator of this kind and contract meets the requirement.
[[nodiscard]] FL_API bool is_met(const OperatorNeed& need, const std::string& kind, const Contract& contract);
// Returns whether the feedback works with a local update that sends these vectors in this unit. The operators in `combination` may be
// empty.
[[nodiscard]] FL_API bool suits_local_work(const FeedbackNeeds& needs, const FeedbackCombination& combination);

// Adds a problem for each requirement that is not met, which says what to change.
FL_API void check_needs(const FeedbackNeeds& needs, const FeedbackPlan& plan, const FeedbackCombination& combination, Problems& problems);

}  // namespace fl
