// Costs of computing, as parts state them. A clock multiplies them by the rates of a device; nobody measures them, so that a result does
// not depend on the machine that simulates it.
//
//   time of work on a device = max(operations / operations per second, bytes / bytes per second)
// Source of this bound: S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model for multicore
// architectures", Communications of the ACM 52(4), 2009.
#pragma once

#include <cstddef>
#include <vector>

namespace fl {

// Operations are counted as follows: a sum, product, division, root, comparison or absolute value is one. An exponential, logarithm or
// hyperbolic tangent is kFunctionOperations, about the length of the polynomials that compute them. A random number is kRandomOperations:
// ten rounds of Philox of some eight operations each, for four numbers. Sorting n numbers takes log2(n) comparisons and moves of each.
inline constexpr double kFunctionOperations = 10, kRandomOperations = 20;

// An amount of work: operations, and bytes that are read from or written to memory.
struct Work {
  double operations = 0, bytes = 0;

  Work& operator+=(const Work& other) {
    operations += other.operations;
    bytes += other.bytes;
    return *this;
  }
  friend Work operator+(Work a, const Work& b) { return a += b; }
  friend Work operator*(double factor, Work work) {
    work.operations *= factor;
    work.bytes *= factor;
    return work;
  }
  friend bool operator==(const Work&, const Work&) = default;
};

// Returns the work of operations and of numbers of type T that are read or written.
template <class T>
[[nodiscard]] Work work_on(double operations, double numbers) {
  return {operations, numbers * static_cast<double>(sizeof(T))};
}

// Work per entry of a vector: how many times a number of the run's precision is read or written, and operations.
struct EntryCost {
  double passes = 0, operations = 0;

  EntryCost& operator+=(const EntryCost& other) {
    passes += other.passes;
    operations += other.operations;
    return *this;
  }
  friend EntryCost operator+(EntryCost a, const EntryCost& b) { return a += b; }
  friend EntryCost operator*(double factor, const EntryCost& cost) { return {factor * cost.passes, factor * cost.operations}; }

  [[nodiscard]] Work of(std::size_t entries, std::size_t bytes_per_number) const {
    const auto n = static_cast<double>(entries);
    return {operations * n, passes * n * static_cast<double>(bytes_per_number)};
  }
  friend bool operator==(const EntryCost&, const EntryCost&) = default;
};

// ---- a model's gradient, by stretches of parameters (docs/maths.md has the formulas)

// The work of a pass over a minibatch.
struct PassCost {
  Work row = {};        // of each row (of each example, in a layer)
  Work minibatch = {};  // of the minibatch, whatever its rows: its weights are read once, and their gradient is written once
  Work stored = {};     // of each number that a sparse row stores, in addition to `row`

  [[nodiscard]] Work of(double rows, double stored_numbers = 0) const {
    return rows * row + (rows > 0 ? minibatch : Work{}) + stored_numbers * stored;
  }
  PassCost& operator+=(const PassCost& other) {
    row += other.row;
    minibatch += other.minibatch;
    stored += other.stored;
    return *this;
  }
};

// The work of parameters begin .. end-1. The gradient of a stretch is complete when its backward pass ends.
struct StretchCost {
  std::size_t begin = 0, end = 0;  // equal: work without parameters, such as an activation or the loss
  PassCost forward = {}, backward = {};
};

// Stretches in the order of the forward pass; the backward pass goes through them from the last to the first.
struct ModelCost {
  std::vector<StretchCost> stretches;

  // Returns the work of a gradient on a minibatch, both passes.
  [[nodiscard]] Work gradient(double rows, double stored_numbers = 0) const {
    Work sum;
    for (const StretchCost& stretch : stretches)
      sum += stretch.forward.of(rows, stored_numbers) + stretch.backward.of(rows, stored_numbers);
    return sum;
  }
};

}  // namespace fl
