// Checks that a compressor satisfies its contract: pointwise claims exactly, expectations by Monte Carlo over 500 clients with equal
// inputs. Tolerances of the latter are 6 standard errors (and a Bernstein term for rare events): a correct operator fails one claim with
// probability below 1e-8.
#include <array>
#include <string>

#include "checks/check.hpp"
#include "checks/compressor_cases.hpp"
#include "checks/domain_inputs.hpp"

namespace fl::checks {
namespace {

constexpr std::uint32_t kDraws = 500;
constexpr double kStandardErrors = 6;

double dot(const double* x, const double* y, std::size_t n) {
  double sum = 0;
  for (std::size_t j = 0; j < n; ++j) sum += x[j] * y[j];
  return sum;
}

template <class T>
double largest_magnitude(const std::vector<T>& p) {
  double largest = 0;
  for (const T x : p) largest = std::max(largest, std::fabs(static_cast<double>(x)));
  return largest;
}

struct Sample {
  double mean = 0, standard_error = 0;
};
Sample sample_of(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  Sample s;
  for (const double v : values) s.mean += v / n;
  double variance = 0;
  for (const double v : values) variance += (v - s.mean) * (v - s.mean) / (n - 1);
  s.standard_error = std::sqrt(variance / n);
  return s;
}

// The input and the operator's state at the time when it is sent.
template <class T>
struct Moment {
  std::uint32_t round = 5;
  std::uint64_t input = 21;           // seed of the input
  std::vector<T> memory{}, shared{};  // state of the client [L], and shared state; empty at the start of a run
};

// Many draws of one input in the domain of the contract, and the errors c - p of each draw, divided by |p| (so that nothing overflows).
template <class T>
struct Draws {
  Draws(const Subject<T>& s, const Contract& contract, InputShape shape, std::uint32_t draws, Reach reach = Reach::drawn,
        const Moment<T>& moment = {})
      : P(s.scope.P), block(shape, draws, P, moment.input) {
    move_into(contract.domain, s.scope, reach, block);
    for (std::uint32_t k = 1; k < draws; ++k) {
      std::copy_n(block.e.begin(), P, block.e.begin() + static_cast<std::ptrdiff_t>(k * P));
      std::copy_n(block.g.begin(), P, block.g.begin() + static_cast<std::ptrdiff_t>(k * P));
    }
    p = block.p();
    p.resize(P);
    const double largest = largest_magnitude(p) > 0 ? largest_magnitude(p) : 1;
    double sum = 0;
    for (const T x : p) sum += std::pow(static_cast<double>(x) / largest, 2);
    norm = largest * std::sqrt(sum);
    Sender<T> sender(s.compressor, s.scope, moment.round);
    if (!moment.shared.empty()) sender.set_shared(moment.shared);
    if (!moment.memory.empty()) sender.set_memory(repeated(moment.memory, draws));
    outcome = sender.send(block, StateRule::none, false, draws);
    const double unit = norm > 0 ? norm : 1;
    for (std::size_t i = 0; i < outcome.c.size(); ++i)
      error.push_back((static_cast<double>(outcome.c[i]) - static_cast<double>(p[i % P])) / unit);
    for (std::uint32_t k = 0; k < draws; ++k) squared.push_back(dot(&error[k * P], &error[k * P], P));
  }
  static std::vector<T> repeated(const std::vector<T>& one, std::size_t times) {
    std::vector<T> all;
    for (std::size_t k = 0; k < times; ++k) all.insert(all.end(), one.begin(), one.end());
    return all;
  }
  // Returns the operator's state of the first client after the draws.
  [[nodiscard]] std::vector<T> memory_of_one() const {
    return {outcome.memory.begin(), outcome.memory.begin() + static_cast<std::ptrdiff_t>(outcome.memory.size() / block.K)};
  }
  std::size_t P;
  BlockInput<T> block;
  Outcome<T> outcome;
  std::vector<T> p;
  double norm = 0;
  std::vector<double> error, squared;  // [draws,P], [draws]: relative
};

// Returns a bound on rounding errors of c, of c - p, and of sums of many of them.
template <class T>
double rounding() {
  return 16 * static_cast<double>(std::numeric_limits<T>::epsilon()) + 1e-12;
}

void claims(const std::string& part, Findings& findings) {
  for_each_subject(part, findings, [](const auto& s) {
    const Contract contract = s.compressor.contract(s.scope);
    if (contract.kappa) s.place.expect(*contract.kappa >= 0, "kappa must be a number of at least 0");
    if (contract.delta) s.place.expect(*contract.delta > 0 && *contract.delta <= 1, "delta must be above 0 and at most 1");
    if (contract.omega) s.place.expect(*contract.omega >= 0, "omega must be a number of at least 0");
    if (const std::string fault = fault_of(contract.domain); !fault.empty()) s.place.fail(fault);
  });
}

template <class T>
void check_pointwise(const Contract& contract, const Draws<T>& draws, FindingPlace& place) {
  for (const double squared : draws.squared) {
    const double error = std::sqrt(squared);
    if (contract.delta && contract.delta_holds == Contract::Holds::pointwise)
      if (!place.at_most(error, std::sqrt(std::max(0.0, 1 - *contract.delta)) + rounding<T>(), "|C(x)-x| / |x| (delta)")) return;
    if (contract.kappa && contract.kappa_holds == Contract::Holds::pointwise && draws.norm > 0)
      if (!place.at_most(error * draws.norm, *contract.kappa + rounding<T>() * draws.norm, "|C(x)-x| (kappa)")) return;
  }
}

// Calls visit(subject, contract, shape, reach) for inputs of these shapes, and at the bounds of the domain for inputs of `at_bounds`.
template <class Visit>
void for_each_reach(const std::string& part, Findings& findings, std::span<const InputShape> shapes, std::span<const InputShape> at_bounds,
                    const Visit& visit) {
  for_each_input(part, findings, shapes, [&](const auto& s, InputShape shape) {
    using T = typename std::decay_t<decltype(s)>::Number;
    const Contract contract = s.compressor.contract(s.scope);
    for (const Reach reach : {Reach::drawn, Reach::most, Reach::least}) {
      if (reach != Reach::drawn && std::ranges::find(at_bounds, shape) == at_bounds.end()) continue;
      if (!has_bound(contract.domain, reach)) continue;
      FindingPlace place = s.place.inside("drawn" + std::string(to_string(reach)) + " of the domain");
      visit(Subject<T>{s.c, s.compressor, s.scope, reach == Reach::drawn ? s.place : place}, contract, shape, reach);
    }
  });
}

void pointwise(const std::string& part, Findings& findings) {
  constexpr std::array kAtBounds = {InputShape::random, InputShape::heavy_tailed, InputShape::sparse, InputShape::constant,
                                    InputShape::tied};
  for_each_reach(part, findings, kInputShapes, kAtBounds, [](const auto& s, const Contract& contract, InputShape shape, Reach reach) {
    using T = typename std::decay_t<decltype(s)>::Number;
    check_pointwise(contract, Draws<T>(s, contract, shape, 20, reach), s.place);
  });
}

template <class T>
void check_mean_error(const Contract& contract, const Draws<T>& draws, FindingPlace& place) {
  const Sample s = sample_of(draws.squared);
  const double slack = kStandardErrors * s.standard_error + rounding<T>();
  if (contract.omega) place.at_most(s.mean, *contract.omega + slack, "the mean of |C(x)-x|^2 / |x|^2 (omega)");
  if (contract.delta) place.at_most(s.mean, 1 - *contract.delta + slack, "the mean of |C(x)-x|^2 / |x|^2 (delta)");
  if (contract.kappa) place.at_most(s.mean, std::pow(*contract.kappa / draws.norm, 2) + slack, "the mean of |C(x)-x|^2 / |x|^2 (kappa)");
}

// Checks that projections of c - p on the signs of p and on random directions have mean 0.
template <class T>
void check_unbiased(double omega, const Draws<T>& draws, FindingPlace& place) {
  RandomSequence random(3, Purpose::synthetic_data);
  for (int direction = 0; direction < 4; ++direction) {
    std::vector<double> v(draws.P), projected;
    for (std::size_t j = 0; j < draws.P; ++j) v[j] = direction == 0 ? (draws.p[j] < 0 ? -1.0 : 1.0) : random.normal();
    for (std::uint32_t k = 0; k < kDraws; ++k) projected.push_back(dot(&draws.error[k * draws.P], v.data(), draws.P));
    const Sample s = sample_of(projected);
    const double length = std::sqrt(dot(v.data(), v.data(), draws.P));
    const double rare = std::sqrt(omega) * length / kDraws;
    const double bound = kStandardErrors * (s.standard_error + rare) + rounding<T>() * length;
    if (!place.at_most(std::fabs(s.mean), bound, "the bias E C(x) - x in a direction (omega claims none)")) return;
  }
}

template <class T>
void check_expectations(const Contract& contract, const Draws<T>& draws, FindingPlace& place) {
  check_mean_error(contract, draws, place);
  const bool is_unbiased = contract.omega && contract.domain.unbiased_up_to.empty();
  if (is_unbiased) check_unbiased(*contract.omega, draws, place);
}

bool claims_expectations(const Contract& contract) {
  return contract.omega || (contract.delta && contract.delta_holds == Contract::Holds::in_expectation) ||
         (contract.kappa && contract.kappa_holds == Contract::Holds::in_expectation);
}

void expectations(const std::string& part, Findings& findings) {
  constexpr std::array kSome = {InputShape::random, InputShape::sparse, InputShape::tied};
  for_each_reach(part, findings, kSome, std::span(kSome).first(1),
                 [](const auto& s, const Contract& contract, InputShape shape, Reach reach) {
                   using T = typename std::decay_t<decltype(s)>::Number;
                   if (!claims_expectations(contract)) return;
                   const Draws<T> draws(s, contract, shape, kDraws, reach);
                   if (draws.norm > 0) check_expectations(contract, draws, s.place);
                 });
}

// Checks the contract for a client that takes part in every round or in every third one, with a different input each time: operators that
// keep state or use the round must satisfy their contract then, too.
template <class T>
void check_rounds(const Subject<T>& s, std::uint32_t stride) {
  constexpr std::array kSequence = {InputShape::random,   InputShape::heavy_tailed, InputShape::zero,   InputShape::tied,
                                    InputShape::constant, InputShape::random,       InputShape::sparse, InputShape::random,
                                    InputShape::tiny,     InputShape::random};
  const Contract contract = s.compressor.contract(s.scope);
  const bool remembers = s.compressor.client_state_size(s.scope) + s.compressor.cohort_state_size(s.scope) > 0;
  Moment<T> moment{.round = 0};
  for (const InputShape shape : kSequence) {
    moment.round += stride;
    moment.input = 40 + moment.round;
    const bool in_expectation = remembers && claims_expectations(contract);
    const Draws<T> draws(s, contract, shape, in_expectation ? kDraws : 4, Reach::drawn, moment);
    FindingPlace place = s.place.inside("round " + std::to_string(moment.round) + " of a client that takes part in every " +
                                        (stride == 1 ? "round, " : "third round, ") + to_string(shape) + " input");
    check_pointwise(contract, draws, place);
    if (in_expectation && draws.norm > 0) check_expectations(contract, draws, place);
    moment.memory = draws.memory_of_one();
    moment.shared = draws.outcome.shared;
  }
}

void rounds(const std::string& part, Findings& findings) {
  for_each_subject(part, findings, [](const auto& s) {
    check_rounds(s, 1);
    check_rounds(s, 3);
  });
}

}  // namespace

const std::vector<Check>& contract_checks() {
  static const std::vector<Check> checks = {
      {"claims", "kappa, delta and omega are numbers in their ranges", claims},
      {"pointwise", "claims that hold for every draw do, on nine shapes of input, up to the bounds of their domain", pointwise},
      {"expectations", "claims in expectation hold, and an unbiased operator has no bias", expectations},
      {"rounds", "the contract holds in later rounds as well, whatever was sent before, for clients that are absent in between", rounds},
  };
  return checks;
}

}  // namespace fl::checks
