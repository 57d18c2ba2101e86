// Messages of operators, for tests of their processing on a GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compressors/conversation.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/config/registry.hpp"
#include "tests/fl_core/cpu/op_cases.hpp"
#include "tests/gpu/first_difference.hpp"
#if defined(FL_CUDA_EMULATOR)
#include "tests/emulator/block.hpp"
#endif

namespace fl::test {

// Calls `check` with threads in ascending and, emulated, in descending order, which its argument says.
inline void in_each_order(const Where& where, const std::function<void(const Where&)>& check) {
  check(where);
#if defined(FL_CUDA_EMULATOR)
  emulator::set_order(emulator::Order::descending);
  check(where.with("threads in descending order"));
  emulator::set_order(emulator::Order::ascending);
#endif
}

[[nodiscard]] inline std::string segments_text(const Scope& scope) {
  return std::to_string(scope.segments.size()) + (scope.segments.size() == 1 ? " segment" : " segments");
}

// Returns the description of a block of K vectors of type T, which is compressed or was.
template <class T>
[[nodiscard]] Where of_vectors(const std::string& what, Pattern pattern, std::uint32_t K, const Scope& scope) {
  return {.what = what, .pattern = to_string(pattern), .K = K, .P = scope.P, .precision = kPrecisionName<T>, .more = segments_text(scope)};
}

// Returns the messages that an operator makes of K vectors.
template <class T>
std::vector<Payload<T>> compressed(const std::string& name, Scope& scope, Pattern pattern, std::uint32_t K) {
  const std::unique_ptr<Compressor<T>> op =
      make_part<Compressor<T>>("compressor", name, Registry::instance().default_options("compressor", name), Device::cpu, kPrecisionOf<T>);
  scope = op->adapt(scope);
  TestBlock<T> block(K, scope.P, pattern);
  std::vector<std::uint32_t> clients(K);
  for (std::uint32_t k = 0; k < K; ++k) clients[k] = 10 + 3 * k;
  const std::size_t L = op->client_state_size(scope);
  const std::vector<T> before(K * L, T(0));
  std::vector<T> after(K * L);
  Conversation<T> conversation(*op, scope, 42);
  conversation.open(3);
  conversation.send(block.exec,
                    {.clients = clients,
                     .input = block.input(2),
                     .remembered = rows_view<const T>(before.data(), K, L),
                     .remember = rows_view(after.data(), K, L)},
                    block.out());
  return std::move(block.payloads);
}

// Returns the scopes of a model of three layers.
inline std::vector<Scope> message_scopes(std::size_t P) {
  LayerTable table;
  table.layers = {{"weight", 0, P / 3, 1}, {"middle", P / 3, 41, 1}, {"head", P / 3 + 41, P - P / 3 - 41, 1}};
  return {make_scope(table, ScopeKind::model, 0, {}), make_scope(table, ScopeKind::tensor, 0, {}),
          make_scope(table, ScopeKind::bucket, 512, {"middle"})};
}

// Returns whether an operator compresses vectors in one phase; others need matrices, or communicate with the server in between.
inline bool takes_vectors_in_one_phase(const std::string& name) {
  const auto op = make_part<Compressor<float>>("compressor", name, Registry::instance().default_options("compressor", name), Device::cpu,
                                               Precision::float32);
  if (op->num_phases() > 1) return false;
  try {
    for (const Scope& scope : message_scopes(1000)) op->check(op->adapt(scope));
  } catch (const ConfigError&) {
    return false;
  }
  return true;
}

// Returns the operators of both devices that compress vectors in one phase.
inline std::vector<std::string> device_operators() {
  std::vector<std::string> names;
  for (const std::string& name : Registry::instance().names("compressor"))
    if (Registry::instance().contains("compressor", name, Device::cuda, Precision::float32) && takes_vectors_in_one_phase(name))
      names.push_back(name);
  return names;
}

}  // namespace fl::test
