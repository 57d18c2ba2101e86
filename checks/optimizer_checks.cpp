// The requirements on every local optimizer, with its default options.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "checks/check.hpp"
#include "clients/learning/local_optimizer.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/memory/workspace.hpp"
#include "fl_core/random/random.hpp"

namespace fl::checks {
namespace {

constexpr std::size_t kEntries = 23;
constexpr std::uint32_t kClients = 3;
constexpr std::uint32_t kSteps = 5;
constexpr double kStepSize = 0.05;

LayerTable optimizer_layers() { return {{{"hidden.weight", 0, 4, 4}, {"hidden.bias", 16, 4}, {"output", 20, 3}}}; }

template <class T>
using Rule = std::unique_ptr<LocalOptimizer<T>>;

// Makes the optimizer; with without_decay its option weight_decay, if it has one, is 0.
template <class T>
Rule<T> make_optimizer(const std::string& name, bool without_decay = false) {
  Options options = Registry::instance().default_options("local_optimizer", name);
  Schema schema = options.schema();
  Field* decay = schema.find("weight_decay");
  if (without_decay && decay != nullptr) static_cast<void>(decay->assign(Value{0.0}));
  return make_part<LocalOptimizer<T>>("local_optimizer", name, options, Device::cpu, kPrecisionOf<T>);
}

// Clients with their vectors; client k has taken 2 k steps before.
template <class T>
struct Clients {
  Clients(const LocalOptimizer<T>& rule, double scale, std::uint64_t seed)
      : w(kClients * kEntries), g(w), y(w), state(rule.num_states(), std::vector<T>(w.size())) {
    RandomSequence random(seed, Purpose::synthetic_data);
    for (T& entry : w) entry = static_cast<T>(scale * random.normal());
    for (std::uint32_t k = 0; k < kClients; ++k) count.push_back(2 * k);
    y = w;
  }
  void draw_gradients(double scale, std::uint64_t seed) {
    RandomSequence random(seed, Purpose::synthetic_data);
    for (T& entry : g) entry = static_cast<T>(scale * random.normal());
  }
  // Steps clients first .. first+clients-1.
  void step(const LocalOptimizer<T>& rule, Workspace& workspace, std::uint32_t first = 0, std::uint32_t clients = kClients) {
    const LayerTable layers = optimizer_layers();
    const auto view = [&](auto& matrix) { return BatchView<T>{matrix.data() + first * kEntries, nullptr, clients, kEntries, kEntries}; };
    std::vector<BatchView<T>> states;
    for (std::vector<T>& one : state) states.push_back(view(one));
    for (std::uint32_t k = first; k < first + clients; ++k) ++count[k];
    rule.step({.workspace = &workspace}, {.count = std::span<const std::uint64_t>(count).subspan(first, clients),
                                          .gamma = kStepSize,
                                          .layers = layers,
                                          .w = view(w),
                                          .g = view(g),
                                          .y = view(y),
                                          .states = states});
  }
  [[nodiscard]] bool is_finite() const {
    const auto finite = [](const std::vector<T>& numbers) {
      for (const T number : numbers)
        if (!std::isfinite(number)) return false;
      return true;
    };
    for (const std::vector<T>& one : state)
      if (!finite(one)) return false;
    return finite(y);
  }
  [[nodiscard]] bool has_bits_of(const Clients& other) const {
    const auto same = [](const std::vector<T>& a, const std::vector<T>& b) {
      return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
    };
    for (std::size_t s = 0; s < state.size(); ++s)
      if (!same(state[s], other.state[s])) return false;
    return same(y, other.y);
  }
  std::vector<T> w, g, y;
  std::vector<std::vector<T>> state;
  std::vector<std::uint64_t> count;
};

template <class Use>
void for_both_precisions(const std::string& part, Findings& findings, const Use& use) {
  FindingPlace in_float(findings, part + ", float32"), in_double(findings, part + ", float64");
  in_float.guard([&] { use(float(), in_float); });
  in_double.guard([&] { use(double(), in_double); });
}

void stays_finite(const std::string& part, Findings& findings) {
  for_both_precisions(part, findings, [&]<class T>(T, FindingPlace& place) {
    Workspace workspace;
    const Rule<T> rule = make_optimizer<T>(part);
    for (const double scale : {0.0, 1e-42, 1e-20, 1e-3, 1.0, 1e4}) {
      Clients<T> clients(*rule, 1, 1);
      for (std::uint32_t step = 0; step < kSteps; ++step) {
        clients.draw_gradients(scale, step);
        clients.step(*rule, workspace);
      }
      place.expect(clients.is_finite(), ("finite gradients of size " + std::to_string(scale) + " give numbers that are not").c_str());
    }
  });
}

// Weight decay moves y towards 0, so that 0 itself stays.
void rests(const std::string& part, Findings& findings) {
  for_both_precisions(part, findings, [&]<class T>(T, FindingPlace& place) {
    Workspace workspace;
    Options options = Registry::instance().default_options("local_optimizer", part);
    const bool has_decay = options.schema().find("weight_decay") != nullptr;
    for (const bool at_zero : {true, false}) {
      const Rule<T> rule = make_optimizer<T>(part, !at_zero && has_decay);
      Clients<T> clients(*rule, at_zero ? 0 : 1, 2);
      for (std::uint32_t step = 0; step < kSteps; ++step) {
        clients.draw_gradients(0, step);
        clients.step(*rule, workspace);
      }
      place.expect(clients.y == clients.w, at_zero ? "gradients of 0 move y away from 0" : "gradients of 0 move y, without weight decay");
    }
  });
}

void blocks(const std::string& part, Findings& findings) {
  for_both_precisions(part, findings, [&]<class T>(T, FindingPlace& place) {
    Workspace workspace;
    const Rule<T> rule = make_optimizer<T>(part);
    Clients<T> together(*rule, 1, 3), apart(*rule, 1, 3);
    for (std::uint32_t step = 0; step < kSteps; ++step) {
      together.draw_gradients(1, 10 + step);
      apart.draw_gradients(1, 10 + step);
      together.step(*rule, workspace);
      for (std::uint32_t k = kClients; k-- > 0;) apart.step(*rule, workspace, k, 1);
    }
    place.expect(together.has_bits_of(apart), "clients that step together get other numbers than one by one");
  });
}

void threads(const std::string& part, Findings& findings) {
  for_both_precisions(part, findings, [&]<class T>(T, FindingPlace& place) {
    const Rule<T> rule = make_optimizer<T>(part);
    const auto work = [&rule](Clients<T>& clients) {
      Workspace workspace;
      for (std::uint32_t step = 0; step < 20 * kSteps; ++step) {
        clients.draw_gradients(1, 10 + step);
        clients.step(*rule, workspace);
      }
    };
    std::array<Clients<T>, 4> clients{Clients<T>(*rule, 1, 4), Clients<T>(*rule, 1, 5), Clients<T>(*rule, 1, 4), Clients<T>(*rule, 1, 5)};
    std::thread first(work, std::ref(clients[0])), second(work, std::ref(clients[1]));
    first.join();
    second.join();
    work(clients[2]);
    work(clients[3]);
    place.expect(clients[0].has_bits_of(clients[2]) && clients[1].has_bits_of(clients[3]),
                 "a step depends on other steps than its client's, or on what another thread does");
  });
}

// With gradients of 1 from y = 0, w - y is gamma times the sum of the weights a.
void work_is_known(const std::string& part, Findings& findings) {
  FindingPlace place(findings, part + ", float64");
  place.guard([&] {
    Workspace workspace;
    const Rule<double> rule = make_optimizer<double>(part);
    if (rule->plain_momentum()) {
      const double beta = *rule->plain_momentum();
      if (!place.expect(beta >= 0 && beta < 1, "plain_momentum() is not in [0, 1)")) return;
      place.expect(rule->work(2) && std::abs(*rule->work(2) - (2 + beta)) < 1e-12, "work() is not that of plain_momentum()");
      place.expect(rule->life() == StateLife::round, "plain_momentum() begins at zero in each round, and life() is client");
    }
    Clients<double> clients(*rule, 0, 6);
    clients.count.assign(kClients, 0);
    for (std::uint32_t step = 1; step <= kSteps; ++step) {
      std::fill(clients.g.begin(), clients.g.end(), 1.0);
      clients.step(*rule, workspace);
      const std::optional<double> work = rule->work(step);
      if (!work) continue;
      place.at_most(std::abs(-clients.y[0] - kStepSize * *work), 1e-12, "the difference of work() to the way after steps along ones");
    }
  });
}

}  // namespace

const std::vector<Check>& optimizer_checks() {
  static const std::vector<Check> checks = {
      {"finite", "finite gradients give finite parameters and vectors, from the first step on", stays_finite},
      {"rest", "gradients of zero leave the parameters where they are, but for weight decay", rests},
      {"blocks", "clients that step together get the bits that they get one by one", blocks},
      {"threads", "a step depends on its client's numbers alone, in any thread", threads},
      {"work", "work() is the length of the way along gradients of one, if it is known", work_is_known},
  };
  return checks;
}

}  // namespace fl::checks
