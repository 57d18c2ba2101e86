// Constants of a run that server and clients each read from the scenario: they are never sent.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "fl_core/message/layer_table.hpp"
#include "fl_core/random/random.hpp"

namespace fl {

// In which unit a compressor sees its input, and so in which unit its threshold and the error memory are.
enum class Unit {
  gradient,  // g: the step size is applied by the server
  step,      // gamma * g: the step size is inside the memory
  update,    // w - y_i, a difference of models after local steps
};
[[nodiscard]] constexpr const char* to_string(Unit unit) {
  return unit == Unit::gradient ? "gradient" : unit == Unit::step ? "step" : "update";
}

// What becomes of a client's error memory while it is absent; it is settled when the client comes back.
enum class AbsentState {
  keep,    // nothing
  decay,   // times a factor for every round that it missed
  drop,    // zero
  server,  // the mean memory of the cohort before it, which the server is told and sends: paid for in both directions
};

// How the clients' vectors are averaged.
enum class Average {
  weighted,    // with the participation's weights of the cohort
  uniform,     // 1/M each
  normalised,  // FedNova: vectors per unit of local work, times the mean work
};

struct RunSettings {
  Unit unit = Unit::gradient;
  Average average = Average::weighted;
  Seeds seeds;
  std::size_t num_clients = 0;  // N
  std::size_t P = 0;
  std::vector<double> weights;        // w_i [N] of f = sum_i w_i f_i, summing to 1
  std::vector<Statistic> statistics;  // of the model: no feedback sees them, as their entries in clients' vectors are 0
  bool local_statistics = false;      // they stay with the clients (fl_core/round/own_statistics.hpp)
  std::string offset_slot;            // client slot that each client takes off w first ("" = none): its own model is w - offset_factor m_i
  double offset_factor = 1;

  // Whether clients divide what they send by their work (FedNova).
  [[nodiscard]] bool normalises() const { return average == Average::normalised; }
};

}  // namespace fl
