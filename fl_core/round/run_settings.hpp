// Constants of a run. Server and clients read them from the scenario; they are never sent.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "fl_core/message/layer_table.hpp"
#include "fl_core/random/random.hpp"

namespace fl {

// The unit of the compressor's input, and thus of its threshold and of the error memory.
enum class Unit {
  gradient,  // g: the server applies the step size
  step,      // gamma * g: the error memory includes the step size
  update,    // w - y_i, a difference of models after local steps
};
[[nodiscard]] constexpr const char* to_string(Unit unit) {
  return unit == Unit::gradient ? "gradient" : unit == Unit::step ? "step" : "update";
}

// The treatment of a client's error memory while it is absent. It is applied when the client returns.
enum class AbsentState {
  keep,    // unchanged
  decay,   // multiplied by a factor per missed round
  drop,    // set to zero
  server,  // the mean memory of the previous cohort, which the server receives and sends; both directions are charged
};

// The average that the server takes of the clients' vectors.
enum class Average {
  weighted,    // with the participation's weights for the cohort
  uniform,     // 1/M each
  normalised,  // FedNova: vectors per unit of local work, times the mean work
};

struct RunSettings {
  Unit unit = Unit::gradient;
  Average average = Average::weighted;
  Seeds seeds;
  std::size_t num_clients = 0;  // N
  std::size_t P = 0;
  std::vector<double> weights;  // w_i [N] of f = sum_i w_i f_i; they sum to 1
  ParameterKinds kinds;         // of the model
  std::string offset_slot;      // client slot m that each client first subtracts from w ("" = none): its own model is w - offset_factor m_i
  double offset_factor = 1;
  double local_steps = 1;  // of a client in a round, if it is a number of steps and not of epochs; a straggler takes fewer

  // Returns whether clients divide their vectors by their work (FedNova).
  [[nodiscard]] bool normalises() const { return average == Average::normalised; }
  // Returns whether clients begin a round at models of their own: w - offset_factor m_i, or w with weights that they keep.
  [[nodiscard]] bool has_own_starts() const { return !offset_slot.empty() || kinds.keeps_weights(); }
};

}  // namespace fl
