// The cases of the compressor checks: the default options and, for built-in operators, further sets of options from a table, in every scope
// that the operator supports, on difficult inputs.
#pragma once

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "checks/findings.hpp"
#include "checks/message_form.hpp"
#include "compressors/compressor.hpp"
#include "compressors/conversation.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload_ops.hpp"
#include "fl_core/ops/ops.hpp"
#include "fl_core/random/random.hpp"

namespace fl::checks {

using Settings = std::vector<std::pair<std::string, Value>>;

// Returns the sets of options of the built-in compressors that are checked besides the defaults.
const std::map<std::string, std::vector<Settings>>& extra_options();

// A registered compressor with one set of options.
struct Case {
  std::string name, label;
  Options options;
};

// Returns the cases of a compressor: the defaults first, then the sets of the table.
std::vector<Case> cases_of(const std::string& name);

template <class T>
std::unique_ptr<Compressor<T>> make(const Case& c) {
  return make_part<Compressor<T>>("compressor", c.name, c.options, Device::cpu, kPrecisionOf<T>);
}

// Returns the layers of a small model: matrices, vectors, a scalar.
LayerTable small_table();

struct NamedScope {
  std::string label;
  Scope scope;
};

std::vector<NamedScope> all_scopes();

// Returns the scope adapted by the operator, or nothing if the operator rejects the scope.
template <class T>
std::optional<Scope> served(const Compressor<T>& compressor, const Scope& scope) {
  try {
    Scope adapted = compressor.adapt(scope);
    compressor.check(adapted);
    return adapted;
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

enum class InputShape { random, heavy_tailed, sparse, constant, tiny, huge, tied, zero, denormal };
inline constexpr InputShape kInputShapes[] = {InputShape::random,   InputShape::heavy_tailed, InputShape::sparse,
                                              InputShape::constant, InputShape::tiny,         InputShape::huge,
                                              InputShape::tied,     InputShape::zero,         InputShape::denormal};
inline const char* to_string(InputShape shape) {
  constexpr const char* kNames[] = {"random", "heavy-tailed", "sparse", "constant", "tiny", "huge", "tied", "zero", "denormal"};
  return kNames[static_cast<int>(shape)];
}

template <class T>
T draw(InputShape shape, RandomSequence& random) {
  constexpr bool kFloat = sizeof(T) == sizeof(float);
  switch (shape) {
    case InputShape::random: return static_cast<T>(random.normal());
    case InputShape::heavy_tailed: return static_cast<T>(random.normal() * std::exp(2 * random.normal()));
    case InputShape::sparse: return random.uniform() < 0.05 ? static_cast<T>(random.normal()) : T(0);
    case InputShape::constant: return T(0.75);
    case InputShape::tiny: return static_cast<T>(random.normal() * (kFloat ? 1e-30 : 1e-120));
    case InputShape::huge: return static_cast<T>(random.normal() * (kFloat ? 1e30 : 1e120));
    case InputShape::tied: return random.uniform() < 0.5 ? T(-1) : T(1);
    case InputShape::zero: return T(0);
    case InputShape::denormal: return static_cast<T>((random.uniform() - 0.5) * 1000) * std::numeric_limits<T>::denorm_min();
  }
  return T(0);
}

// The input of a block, p = e + gamma g with gamma = 1/2.
template <class T>
struct BlockInput {
  BlockInput(InputShape shape, std::uint32_t clients_, std::size_t parameters, std::uint64_t seed)
      : K(clients_), P(parameters), e(K * P), g(K * P) {
    for (std::uint32_t k = 0; k < K; ++k) {
      RandomSequence random(seed, Purpose::synthetic_data, k);
      for (std::size_t j = 0; j < P; ++j) {
        e[k * P + j] = draw<T>(shape, random);
        g[k * P + j] = shape == InputShape::constant ? T(0) : draw<T>(shape, random);
      }
      ids.push_back(100 + 7 * k);
    }
  }
  [[nodiscard]] Affine<T> input() const {
    Affine<T> affine;
    affine.add(T(1), BatchView<const T>{e.data(), nullptr, K, P, P}).add(T(0.5), BatchView<const T>{g.data(), nullptr, K, P, P});
    return affine;
  }
  [[nodiscard]] std::vector<T> p() const {
    std::vector<T> values(K * P);
    for (std::size_t k = 0; k < K; ++k)
      for (std::size_t j = 0; j < P; ++j) values[k * P + j] = input().at(k, j);
    return values;
  }
  std::uint32_t K;
  std::size_t P;
  std::vector<T> e, g;
  std::vector<std::uint32_t> ids;
};

template <class T>
struct Outcome {
  std::vector<std::vector<Payload<T>>> messages;  // [phase][K]
  std::vector<T> c;                               // [K,P] the vector that each message represents alone
  std::vector<T> state;                           // [K,P]
  std::vector<T> memory;                          // [K,L] the operator's state of each client after the block
  std::vector<T> shared;                          // the operator's shared state
};

// Sends blocks, each time from the same state, and throws Broken for a message that is not well-formed. With `state_in_place` the new state
// overwrites e.
template <class T>
class Sender {
 public:
  Sender(Compressor<T>& compressor, const Scope& scope, std::uint32_t round = 5)
      : compressor_(compressor), scope_(scope), round_(round), shared_(compressor.cohort_state_size(scope)) {
    exec_.workspace = &workspace_;
    compressor_.init_cohort_state(kKey, scope_, shared_.data());
  }

  Outcome<T> send(BlockInput<T>& block, StateRule rule, bool state_in_place, std::uint32_t block_size) {
    const std::size_t L = compressor_.client_state_size(scope_);
    Outcome<T> outcome;
    memory_.resize(block.K * L, T(0));
    outcome.memory.assign(memory_.size(), T(-77));
    outcome.state.assign(block.K * block.P, T(-77));
    outcome.shared = shared_;
    Conversation<T> conversation(compressor_, scope_, kKey, outcome.shared);
    conversation.open(round_);
    Transcript<T> transcript =
        conversation.hold(exec_,
                          {.clients = block.ids,
                           .input = block.input(),
                           .state = {rule, rows_view(state_in_place ? block.e.data() : outcome.state.data(), block.K, block.P)},
                           .remembered = rows_view<const T>(memory_.data(), block.K, L),
                           .remember = rows_view(outcome.memory.data(), block.K, L)},
                          block_size, [](const Payload<T>& message, const Scope& scope) {
                            demand_well_formed(message, scope);
                            demand_well_formed(message.on_wire(), scope);
                          });
    outcome.messages = std::move(transcript.messages);
    outcome.c = std::move(transcript.alone);
    if (state_in_place) outcome.state = block.e;
    return outcome;
  }

  // Sets the operator's state of each client [K,L] before the next block; it is zero by default.
  void set_memory(std::vector<T> memory) { memory_ = std::move(memory); }
  // Sets the shared state before the next block; by default it is the initial state of a run.
  void set_shared(std::vector<T> shared) { shared_ = std::move(shared); }
  // Reconstructs the decoded message of client k of a block, as the receiver does.
  void receive(const BlockInput<T>& block, std::size_t k, Payload<T>& decoded) {
    Conversation<T> conversation(compressor_, scope_, kKey, {});
    conversation.open(round_);
    Payload<T>* message = &decoded;
    conversation.reconstruct(exec_, std::span(block.ids).subspan(k, 1), std::span<Payload<T>* const>(&message, 1));
  }
  [[nodiscard]] MessageLevels known_levels() const {
    Conversation<T> conversation(compressor_, scope_, kKey, {});
    conversation.open(round_);
    return conversation.known_levels();
  }

  static constexpr std::uint64_t kKey = 0x1234567;

 private:
  Compressor<T>& compressor_;
  const Scope& scope_;
  std::uint32_t round_;
  std::vector<T> shared_, memory_;
  Workspace workspace_;
  Exec exec_;
};

// A compressor with its options in a scope that it supports.
template <class T>
struct Subject {
  using Number = T;
  const Case& c;
  Compressor<T>& compressor;
  const Scope& scope;
  FindingPlace& place;
};

template <class T, class Visit>
void visit_in(const std::string& part, Findings& findings, const Visit& visit) {
  for (const Case& c : cases_of(part)) {
    FindingPlace outside(findings, c.label + ", " + to_string(kPrecisionOf<T>));
    outside.guard([&] {
      const auto compressor = make<T>(c);
      for (const NamedScope& named : all_scopes()) {
        const auto scope = served(*compressor, named.scope);
        if (!scope) continue;
        FindingPlace place(findings, c.label + ", " + to_string(kPrecisionOf<T>) + ", scope " + named.label);
        place.guard([&] { visit(Subject<T>{c, *compressor, *scope, place}); });
      }
    });
  }
}

// Calls visit(subject) for every case and scope in both precisions. An exception that it throws is a finding.
template <class Visit>
void for_each_subject(const std::string& part, Findings& findings, const Visit& visit) {
  visit_in<float>(part, findings, visit);
  visit_in<double>(part, findings, visit);
}

// Calls visit(subject, shape) also for each of the given input shapes.
template <class Visit>
void for_each_input(const std::string& part, Findings& findings, std::span<const InputShape> shapes, const Visit& visit) {
  for_each_subject(part, findings, [&](const auto& subject) {
    for (const InputShape shape : shapes) {
      FindingPlace place = subject.place.inside(std::string(to_string(shape)) + " input");
      visit(Subject<typename std::decay_t<decltype(subject)>::Number>{subject.c, subject.compressor, subject.scope, place}, shape);
    }
  });
}

}  // namespace fl::checks
