// Common parts of sz and zfp, whose error has a given bound in every entry: |C(x)_j - x_j| <= eb for every x and every draw.
//
// A message of levels needs |x_j| <= R eb. Its steps are shorter by the factor 1 - m than real numbers would allow, so that roundings have
// room: they take less than m eb. R = 2^16 and m = 2^-7 in float32, R = 2^26 and m = 2^-16 in float64. The factor costs log2(1/(1-m)) bits
// of a level, 0.011 in float32. Inputs beyond R eb, inputs that are not finite, and bounds outside the normal numbers of T (or above a
// sixteenth of the largest one) are sent as raw numbers, without an error. An input of zeros is sent as a list without entries.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "compressors/codec/finite.hpp"
#include "compressors/compressor.hpp"
#include "compressors/support/absolute_scale.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/quantizer.hpp"
#include "compressors/support/received_levels.hpp"
#include "fl_core/message/payload_segments.hpp"
#include "fl_core/ops/ops.hpp"

namespace fl {

template <class T>
inline constexpr double kBoundMargin = sizeof(T) == sizeof(float) ? 0x1p-7 : 0x1p-16;  // m
template <class T>
inline constexpr double kBoundRange = sizeof(T) == sizeof(float) ? 0x1p16 : 0x1p26;  // R

// Returns whether numbers up to `largest` can be sent as levels under this bound.
template <class T>
[[nodiscard]] bool fits_levels(double largest, double bound) {
  constexpr double kSmallest = NormalRange<T>::kSmallest, kMost = NormalRange<T>::kLargest / 16;
  return bound >= kSmallest && bound <= kMost && largest <= kMost && largest <= kBoundRange<T> * bound;
}

namespace FL_DEVICE_NS {

// Returns |p|, or infinity for NaN, which a maximum would ignore.
struct MagnitudeOrInfinity {
  template <class T>
  [[nodiscard]] FL_HD double operator()(T p) const {
    const double a = fabs(static_cast<double>(p));
    return a < HUGE_VAL ? a : HUGE_VAL;
  }
};

// Declares `count` levels in a message and makes room for them. The caller sets their format.
template <class T>
void open_levels(Payload<T>& message, std::size_t count, LevelWidth width) {
  message.place_on(kThisDevice);
  message.positions = Positions::all;
  message.values = WireValue::levels;
  message.level_width = width;
  message.num_sent = count;
  message.level_bytes.resize_discard(count * static_cast<std::size_t>(width));
}

// Replaces the levels of a message by its values, which are written already.
template <class T>
void close_values(Payload<T>& message) {
  message.positions = Positions::all;
  message.values = kNativeWire<T>;
  message.num_sent = message.value.size();
  message.level_bytes.resize_discard(0);
}

// Calls use(L{}) with the integer type of the levels.
template <class Use>
void with_level_type(LevelWidth width, Use use) {
  switch (width) {
    case LevelWidth::w8: return use(std::int8_t{});
    case LevelWidth::w16: return use(std::int16_t{});
    case LevelWidth::w32: return use(std::int32_t{});
  }
}

// Computes the largest magnitude of every kLanes-th level of a part. Neighbouring lanes read neighbouring levels, as GPUs prefer.
template <class L>
struct LargestOfPart {
  static constexpr std::size_t kPart = 8192, kLanes = kThisDevice == Device::cuda ? 32 : 1;
  const L* level;
  std::size_t n;
  double* largest;
  [[nodiscard]] static std::size_t count(std::size_t n) { return (n + kPart - 1) / kPart * kLanes; }
  FL_HD void operator()(std::size_t i) const {
    const std::size_t begin = i / kLanes * kPart, end = n - begin < kPart ? n : begin + kPart;
    L least = 0, most = 0;
    for (std::size_t j = begin + i % kLanes; j < end; j += kLanes) {
      least = level[j] < least ? level[j] : least;
      most = level[j] > most ? level[j] : most;
    }
    const double below = -static_cast<double>(least), above = static_cast<double>(most);
    largest[i] = below < above ? above : below;
  }
};

// Returns the largest magnitude of a message's levels.
template <class T>
[[nodiscard]] std::int32_t largest_level(const Exec& exec, const Payload<T>& message) {
  double largest = 0;
  with_level_type(message.level_width, [&]<class L>(L) {
    Workspace::Frame frame(*exec.workspace);
    const std::size_t n = LargestOfPart<L>::count(message.num_sent);
    auto* parts = frame.take<double>(n);
    for_each(exec, n, LargestOfPart<L>{message.template levels<L>(), message.num_sent, parts});
    const Scope whole{.kind = ScopeKind::model, .segments = {{0, n, n, 1}}, .excluded = {}, .P = n};
    largest = reduced_on_host(exec, vector_input<double>(parts, n), whole, MagnitudeOf{}, Reduce::max)[0];
  });
  return static_cast<std::int32_t>(largest);
}

// Sends a list without entries.
template <class T>
void send_nothing(const Exec& exec, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                  std::span<Payload<T>* const> messages) {
  select_rows(exec, input, scope, AtLeast<T>{std::numeric_limits<T>::infinity()}, kNativeWire<T>, state, messages);
}

// Returns numbers begin .. begin+count-1 of a block's inputs.
template <class T>
[[nodiscard]] Affine<T> part_of(Affine<T> input, std::size_t begin, std::size_t count) {
  for (int a = 0; a < input.num_terms; ++a) {
    input.term[a].data += begin;
    input.term[a].P = count;
  }
  return input;
}

// Reads the input of one client after another, and its largest magnitude (infinite if a number is not finite). The host evaluates an input
// once, into the client's new state if there is one; parts that leave the caches would be evaluated again in each pass otherwise. A GPU
// evaluates it in each pass and finds the largest numbers of all clients together.
template <class T>
class InputReader {
 public:
  struct Input {
    Affine<T> numbers;  // of one client
    double largest;
  };
  InputReader(const Exec& exec, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state, Workspace::Frame& frame)
      : exec_(exec), input_(input), scope_(scope), state_(state) {
    if constexpr (kThisDevice == Device::cuda)
      largest_ = reduced_on_host(exec, input, scope, MagnitudeOrInfinity{}, Reduce::max);
    else if (state.rule == StateRule::none)
      room_ = frame.take<T>(scope.P);
  }
  [[nodiscard]] Input read(std::uint32_t k) const {
    const Affine<T> own = input_.slice(k, 1);
    if constexpr (kThisDevice == Device::cuda) {
      const auto first = largest_.begin() + static_cast<std::ptrdiff_t>(k * scope_.segments.size());
      return {own, *std::max_element(first, first + static_cast<std::ptrdiff_t>(scope_.segments.size()))};
    } else {
      T* to = state_.rule == StateRule::none ? room_ : state_.out.row(k);
      return {vector_input<T>(to, scope_.P), evaluate(own, to)};
    }
  }

 private:
  // Writes the compressed numbers in pieces and returns the largest magnitude.
  [[nodiscard]] double evaluate(const Affine<T>& own, T* to) const {
    constexpr std::size_t kPiece = 4096;
    double largest = 0;
    for (const Segment& segment : scope_.segments)
      for (std::size_t begin = segment.begin; begin < segment.end; begin += kPiece) {
        const std::size_t count = std::min(kPiece, segment.end - begin);
        load_vector(exec_, part_of(own, begin, count), 0, to + begin);
        largest = std::max(largest, static_cast<double>(codec::largest_magnitude(to + begin, count)));
      }
    return largest;
  }
  const Exec& exec_;
  const Affine<T>& input_;
  const Scope& scope_;
  const StateWrite<T>& state_;
  std::vector<double> largest_;  // [K,S], of a GPU
  T* room_ = nullptr;            // [P], of the host without a state
};

// An operator with a bound of the error of each entry. Derived classes send the messages of levels.
template <class T>
class ErrorBounded : public Compressor<T> {
 public:
  ErrorBounded(std::string name, AbsoluteScale bound) : name_(std::move(name)), bound_(std::move(bound)) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    Contract contract;
    contract.kappa = kappa_at(scope, {});
    contract.cost = costs::reading(1) + costs::copy() + level_cost();
    follow(contract.domain, bound_);
    return contract;
  }
  [[nodiscard]] double kappa_at(const Scope& scope, const StepSizes& steps) const override {
    return norm_bound(scope) * bound_at(steps, scope);
  }
  void check(const Scope& scope) const override { (void)bound_at({}, scope); }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    const double bound = bound_at(context.steps, scope);
    Workspace::Frame frame(*exec.workspace);
    const InputReader<T> reader(exec, input, scope, state, frame);
    for (std::uint32_t k = 0; k < messages.size(); ++k) {
      const auto [own, most] = reader.read(k);
      const StateWrite<T> own_state = state.slice(k, 1);
      const auto message = messages.subspan(k, 1);
      if (most == 0)
        send_nothing(exec, own, scope, own_state, message);
      else if (!fits_levels<T>(most, bound))
        dense_rows(exec, own, scope, kNativeWire<T>, own_state, message);
      else
        send_levels(exec, own, scope, bound, most, own_state, message);
    }
  }

  [[nodiscard]] double published_bits(const Payload<T>& message, const Scope& scope) const override {
    return Compressor<T>::published_bits(message.on_wire(), scope);
  }

 protected:
  // Returns kappa / eb.
  [[nodiscard]] virtual double norm_bound(const Scope& scope) const = 0;
  // Returns the cost of send_levels().
  [[nodiscard]] virtual EntryCost level_cost() const = 0;
  // Sends one client's message of levels. `most` is the largest |x_j|.
  virtual void send_levels(const Exec& exec, const Affine<T>& input, const Scope& scope, double bound, double most,
                           const StateWrite<T>& state, std::span<Payload<T>* const> message) const = 0;
  // Returns eb.
  [[nodiscard]] double bound_at(const StepSizes& steps, const Scope& scope) const {
    return resolve_absolute_scale(name_ + ": error_bound", bound_, steps, num_shared(scope));
  }

 private:
  std::string name_;
  AbsoluteScale bound_;
};

}  // namespace FL_DEVICE_NS
}  // namespace fl
