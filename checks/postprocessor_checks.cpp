// The requirements on every postprocessor, for vectors of clients and for the server's estimate, on difficult numbers.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "checks/check.hpp"
#include "checks/compressor_cases.hpp"
#include "compressors/postprocessors/postprocessor.hpp"
#include "fl_core/memory/thread_pool.hpp"
#include "fl_core/ops/norms.hpp"

namespace fl::checks {
namespace {

constexpr std::uint32_t kPostClients = 7, kPostPopulation = 100;

// A postprocessor's options: the defaults, and each other value of each option that is a choice.
struct PostprocessorCase {
  std::string label;
  Options options;
};

std::vector<PostprocessorCase> postprocessor_cases(const std::string& name) {
  const Options defaults = Registry::instance().default_options("postprocessor", name);
  std::vector<PostprocessorCase> cases = {{name, defaults}};
  Options copy = defaults;
  Schema fields = copy.schema();
  for (const Field& field : fields.fields())
    for (const std::string& choice : field.choices) {
      if (to_string(field.value()) == to_string(Value{choice})) continue;
      Options options = defaults;
      Schema schema = options.schema();
      if (schema.find(field.name)->assign(Value{choice})) continue;
      cases.push_back({name + " " + field.name + "=" + choice, std::move(options)});
    }
  return cases;
}

// The vectors [K,P] of a cohort, and the round in which they are changed.
template <class T>
class ChangedRound {
 public:
  ChangedRound(const Postprocessor<T>& part, std::size_t P)
      : part_(part),
        reference_(P, T(1)),
        state_(kPostPopulation, kPostClients, P),
        shared_(P),
        server_(kPostPopulation, P),
        weight_(kPostClients, 1.0 / kPostClients),
        work_(kPostClients, 1.0) {
    run_.num_clients = kPostPopulation;
    run_.P = P;
    run_.weights.assign(kPostPopulation, 1.0 / kPostPopulation);
    order_.round = 3;
    for (std::uint32_t k = 0; k < kPostClients; ++k) order_.cohort.push_back(5 + 11 * k);
    state_.open_round(order_.cohort);
  }

  // Returns the vectors after the change, in blocks of this many clients on these threads. `turned` lays the rows in another order.
  [[nodiscard]] std::vector<T> vectors(const std::vector<T>& before, std::uint32_t block_size, ThreadPool& pool, bool turned = false) {
    const std::size_t P = run_.P;
    std::vector<std::uint32_t> row(kPostClients);
    for (std::uint32_t k = 0; k < kPostClients; ++k) row[k] = turned ? (3 * k + 1) % kPostClients : k;
    std::vector<T> lying(before.size()), after(before.size());
    for (std::uint32_t k = 0; k < kPostClients; ++k) std::copy_n(before.data() + k * P, P, lying.data() + row[k] * P);
    ClientBlock<T> whole{.first = 0, .K = kPostClients, .clients = order_.cohort, .vectors = {}, .messages = {}, .work = work_};
    whole.vectors.push_back({lying.data(), turned ? row.data() : nullptr, kPostClients, P, P});
    const ClientRound<T> round{view(), state_, shared_};
    pool.parallel_for((kPostClients + block_size - 1) / block_size, [&](std::uint32_t piece, const Exec& exec) {
      const std::uint32_t begin = piece * block_size;
      part_.on_client(exec, round, whole.slice(begin, std::min(block_size, kPostClients - begin)), 0);
    });
    for (std::uint32_t k = 0; k < kPostClients; ++k) std::copy_n(lying.data() + row[k] * P, P, after.data() + k * P);
    return after;
  }
  [[nodiscard]] std::vector<double> estimate(std::vector<double> before) {
    part_.on_server({view(), weight_, weight_, {}, server_, shared_}, before);
    return before;
  }

 private:
  [[nodiscard]] RoundView<T> view() const { return {run_, order_, reference_}; }

  const Postprocessor<T>& part_;
  RunSettings run_;
  RoundOrder order_;
  std::vector<T> reference_;
  ClientState<T> state_;
  SharedState<T> shared_;
  ServerState<T> server_;
  std::vector<double> weight_, work_;
};

// Returns K vectors of a shape; `at_most` puts the largest number of the type into each of them.
template <class T>
std::vector<T> drawn_vectors(InputShape shape, std::size_t P, bool at_most) {
  std::vector<T> all(kPostClients * P);
  for (std::uint32_t k = 0; k < kPostClients; ++k) {
    RandomSequence random(31, Purpose::synthetic_data, k);
    for (std::size_t j = 0; j < P; ++j) all[k * P + j] = draw<T>(shape, random);
    if (at_most) all[k * P + k % P] = std::numeric_limits<T>::max();
  }
  return all;
}

double length_of(std::span<const double> v, VectorBound::Norm norm) {
  double largest = 0, sum = 0;
  for (const double x : v) largest = std::max(largest, std::abs(x));
  if (norm == VectorBound::Norm::infinity || largest == 0) return largest;
  for (const double x : v) sum += (x / largest) * (x / largest);
  return largest * std::sqrt(sum);
}

template <class T>
bool are_same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <class T>
std::vector<double> in_double(const T* v, std::size_t P) {
  return {v, v + P};
}

// Calls check(part, round, vectors, P, place) for vectors of every shape and of several sizes.
template <class T, class F>
void for_each_vectors_of(const std::string& name, Findings& findings, const F& check) {
  for (const PostprocessorCase& one : postprocessor_cases(name)) {
    FindingPlace outside(findings, one.label + ", " + to_string(kPrecisionOf<T>));
    outside.guard([&] {
      const auto part = make_part<Postprocessor<T>>("postprocessor", name, one.options, Device::cpu, kPrecisionOf<T>);
      for (const std::size_t P : {1u, 2u, 37u, 5000u})
        for (const InputShape shape : kInputShapes)
          for (const bool at_most : {false, true}) {
            FindingPlace place =
                outside.inside(std::to_string(P) + " parameters, " + to_string(shape) + (at_most ? " with the largest number" : ""));
            place.guard([&] {
              ChangedRound<T> round(*part, P);
              check(*part, round, drawn_vectors<T>(shape, P, at_most), P, place);
            });
          }
    });
  }
}
template <class F>
void for_each_vectors(const std::string& name, Findings& findings, const F& check) {
  for_each_vectors_of<float>(name, findings, check);
  for_each_vectors_of<double>(name, findings, check);
}

void post_bound(const std::string& name, Findings& findings) {
  for_each_vectors(name, findings, [](const auto& part, auto& round, const auto& before, std::size_t P, FindingPlace& place) {
    using T = typename std::decay_t<decltype(before)>::value_type;
    const PostprocessorPlan plan = part.plan();
    if (!plan.bound) return;
    if (!place.expect(plan.bound->limit > 0 && std::isfinite(plan.bound->limit), "plan().bound has no limit above 0")) return;
    const auto most = [&](double eps) { return plan.bound->limit * (1 + 2 * eps) * (1 + 1e-14); };
    ThreadPool pool(1);
    const std::vector<T> after = round.vectors(before, kPostClients, pool);
    for (std::uint32_t k = 0; k < kPostClients && plan.changes_vectors; ++k)
      place.at_most(length_of(in_double(after.data() + k * P, P), plan.bound->norm), most(std::numeric_limits<T>::epsilon()),
                    "the norm of a client's vector");
    for (std::uint32_t k = 0; k < kPostClients && plan.changes_estimate; ++k)
      place.at_most(length_of(round.estimate(in_double(before.data() + k * P, P)), plan.bound->norm),
                    most(std::numeric_limits<double>::epsilon()), "the norm of the estimate");
  });
}

void post_blocks(const std::string& name, Findings& findings) {
  ThreadPool one(1), three(3);
  for_each_vectors(name, findings, [&](const auto& part, auto& round, const auto& before, std::size_t P, FindingPlace& place) {
    const auto together = round.vectors(before, kPostClients, one);
    place.expect(are_same_bits(round.vectors(before, kPostClients, one), together), "the same vectors give others the second time");
    for (const std::uint32_t size : {1u, 2u, 3u}) {
      const std::string blocks = "blocks of " + std::to_string(size) + " clients";
      if (!are_same_bits(round.vectors(before, size, one), together)) place.fail(blocks + " give other vectors");
      if (!are_same_bits(round.vectors(before, size, three), together)) place.fail(blocks + " on three threads give other vectors");
    }
    place.expect(are_same_bits(round.vectors(before, kPostClients, one, true), together), "rows in another order give other vectors");
    if (!part.plan().changes_estimate) return;
    const std::vector<double> estimate = in_double(before.data(), P);
    place.expect(are_same_bits(round.estimate(estimate), round.estimate(estimate)), "the same estimate gives another the second time");
  });
}

void post_finite(const std::string& name, Findings& findings) {
  ThreadPool pool(1);
  for_each_vectors(name, findings, [&](const auto&, auto& round, const auto& before, std::size_t P, FindingPlace& place) {
    const auto after = round.vectors(before, kPostClients, pool);
    place.expect(is_finite(after.data(), after.size()), "finite vectors become NaN or infinite");
    const std::vector<double> estimate = round.estimate(in_double(before.data(), P));
    place.expect(is_finite(estimate.data(), estimate.size()), "a finite estimate becomes NaN or infinite");
  });
}

void post_plan(const std::string& name, Findings& findings) {
  ThreadPool pool(1);
  for_each_vectors(name, findings, [&](const auto& part, auto& round, const auto& before, std::size_t P, FindingPlace& place) {
    const PostprocessorPlan plan = part.plan();
    place.expect(plan.changes_vectors || are_same_bits(round.vectors(before, kPostClients, pool), before),
                 "on_client() changes vectors, but plan().changes_vectors is false, so that no run calls it");
    const std::vector<double> estimate = in_double(before.data(), P);
    place.expect(plan.changes_estimate || are_same_bits(round.estimate(estimate), estimate),
                 "on_server() changes the estimate, but plan().changes_estimate is false, so that no run calls it");
  });
}

}  // namespace

const std::vector<Check>& postprocessor_checks() {
  static const std::vector<Check> checks = {
      {"bound", "no vector and no estimate is longer than the limit that it states", post_bound},
      {"blocks", "a client's vector becomes the same in any block, on any thread and in any row", post_blocks},
      {"finite", "finite numbers stay finite", post_finite},
      {"plan", "a half that changes something is named in its plan", post_plan},
  };
  return checks;
}

}  // namespace fl::checks
