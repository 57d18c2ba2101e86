// Builds scenario texts from tables: a test names a problem and changes only the relevant tables.
#pragma once

#include <string>

namespace fl::test {

// Each member is the inside of the table of its name; `more` holds whole tables.
struct ScenarioText {
  int rounds = 100;
  std::string precision = "float64";
  std::string data, partition, model, start = "kind = 'zero'";
  std::string local = "kind = 'gradient'\nlearning_rate = '1/(L+l2)'";
  std::string participation = "kind = 'full'", up = "kind = 'identity'", feedback = "kind = 'none'", server = "kind = 'sgd'";
  std::string evaluate = "every = 100", more;

  [[nodiscard]] std::string str() const {
    const auto table = [](const char* name, const std::string& keys) { return "[" + std::string(name) + "]\n" + keys + "\n"; };
    return "name = 'test'\nseed = 1\nrounds = " + std::to_string(rounds) + "\nprecision = '" + precision + "'\n" + table("data", data) +
           table("partition", partition) + table("model", model) + table("start", start) + table("local", local) +
           table("participation", participation) + table("compressor.up", up) + table("feedback.up", feedback) + table("server", server) +
           table("evaluate", evaluate) + more + "\n";
  }
};

// f_i = x^T A_i x / 2 - <b_i, x> in 20 dimensions, eigenvalues from 0.1 to 1, an own rotation and an own minimiser for each client.
inline ScenarioText quadratics(const std::string& more = "clients = 5\nzeta_sq = 1") {
  ScenarioText s;
  s.data = "kind = 'quadratics'\nhessians = 'per_client'\n" + more;
  s.partition = "kind = 'natural'\nclients = 5";
  s.model = "kind = 'quadratic'";
  return s;
}

// 11 quadratics dealt to 4 clients in file order: weights 3/11, 3/11, 3/11, 2/11, and rows to sample from.
inline ScenarioText uneven_quadratics() {
  ScenarioText s = quadratics("clients = 11\nzeta_sq = 1");
  s.partition = "kind = 'contiguous'\nclients = 4";
  return s;
}

// Logistic regression on real rows, sorted by label: as heterogeneous as two classes can be. `data` names the set.
inline ScenarioText logistic(const std::string& data, int clients = 10) {
  ScenarioText s;
  s.data = data + "\ntest = 'none'";
  s.partition = "kind = 'sorted_by_label'\nclients = " + std::to_string(clients);
  s.model = "kind = 'logistic_regression'\nl2 = 'L/100'";
  return s;
}
inline ScenarioText mushrooms(int clients = 10) { return logistic("name = 'mushrooms'\nrows = 1003", clients); }

}  // namespace fl::test
