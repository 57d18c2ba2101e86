// One client, one vector, one operator: the context for a test of an operator.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compressors/conversation.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/config/registry.hpp"

namespace fl::test {

// Options of a registered compressor with some fields set; throws ConfigError for a value that is refused.
inline Options compressor_options(const std::string& name, const std::vector<std::pair<std::string, Value>>& fields) {
  Options options = Registry::instance().default_options("compressor", name);
  std::vector<Problem> problems;
  Schema schema = options.schema();
  for (const auto& [key, value] : fields) {
    Field* field = schema.find(key);
    if (field == nullptr) throw Error("no option " + key);
    if (auto why = field->assign(value)) problems.push_back({key, *why});
  }
  options.validate(problems);
  if (!problems.empty()) throw ConfigError(problems);
  return options;
}

// Returns an operator with the options that are set, for failures: "operator top_k(ratio = 0.1)".
[[nodiscard]] inline std::string operator_text(const std::string& name, const std::vector<std::pair<std::string, Value>>& fields = {}) {
  std::string text;
  for (const auto& [key, value] : fields) text += (text.empty() ? "" : ", ") + key + " = " + to_string(value);
  return "operator " + name + (text.empty() ? "" : "(" + text + ")");
}

template <class T>
std::unique_ptr<Compressor<T>> make_compressor(const std::string& name, const std::vector<std::pair<std::string, Value>>& fields = {}) {
  return make_part<Compressor<T>>("compressor", name, compressor_options(name, fields), Device::cpu, kPrecisionOf<T>);
}

template <class T>
struct Sent {
  Payload<T> message;           // of the last phase
  std::vector<T> state, dense;  // [P] new state (residual), C(x)
  std::vector<T> memory;        // [L] what the operator remembers of the client
};

// Sends x once, as the only client, from the memory that is given (zeros without it).
template <class T>
Sent<T> compress(Compressor<T>& op, const Scope& scope, const std::vector<T>& x, double step_size = 1, std::uint32_t round = 0,
                 std::uint32_t client = 0, std::vector<T> memory = {}) {
  Workspace workspace;
  Exec exec;
  exec.workspace = &workspace;
  Sent<T> sent;
  sent.state.resize(x.size());
  memory.resize(op.client_state_size(scope), T(0));
  sent.memory.resize(memory.size());
  Senders<T> sender{.clients = {&client, 1},
                    .state = {StateRule::residual, rows_view(sent.state.data(), 1, x.size())},
                    .remembered = rows_view<const T>(memory.data(), 1, memory.size()),
                    .remember = rows_view(sent.memory.data(), 1, memory.size())};
  sender.input.add(T(1), rows_view<const T>(x.data(), 1, x.size()));
  Conversation<T> conversation(op, scope, 42);
  conversation.open(round, {.in_input = step_size, .local = step_size, .local_total = step_size});
  Transcript<T> transcript = conversation.hold(exec, sender);
  sent.message = std::move(transcript.messages.back()[0]);
  sent.dense = std::move(transcript.alone);
  return sent;
}

template <class T>
double squared_distance(const std::vector<T>& a, const std::vector<T>& b) {
  double sum = 0;
  for (std::size_t j = 0; j < a.size(); ++j) sum += (static_cast<double>(a[j]) - b[j]) * (static_cast<double>(a[j]) - b[j]);
  return sum;
}
template <class T>
double squared_norm(const std::vector<T>& a) {
  return squared_distance(a, std::vector<T>(a.size()));
}

// Returns the text of the ConfigError that `f` throws, "" if it throws none.
template <class F>
std::string refusal(F f) {
  try {
    f();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace fl::test
