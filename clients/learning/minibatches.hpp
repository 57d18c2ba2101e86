// A model's requirements on the clients' minibatches, known before they are drawn.
//
// Batch normalisation takes a mean and a variance of a client's whole minibatch: it needs two or more values per channel, and memory for
// all rows at once.
#pragma once

#include <cstdint>

#include "clients/learning/local_update.hpp"
#include "clients/learning/oracle.hpp"

namespace fl {

// Throws ConfigError if a client's minibatch has fewer rows than the model needs (MinibatchNeeds::least_rows), including the last minibatch
// of an epoch, or if all of its rows are fewer while their gradient is measured. Also throws if epochs take more than kMostLocalSteps steps
// or replay a file with one row per round. The error names the client and the key.
template <class T>
FL_API void check_minibatches(const LocalUpdate<T>& local_update, const GradientOracle<T>& oracle, bool measures_gradients);

// The largest gradient of a model that computes all rows at once (MinibatchNeeds::takes_whole); no rows for other models.
struct WholeMinibatch {
  std::size_t rows = 0;
  std::uint64_t bytes = 0;  // approximate memory of a thread during the computation
};
template <class T>
[[nodiscard]] FL_API WholeMinibatch largest_minibatch(const GradientOracle<T>& oracle, bool measures_gradients);

}  // namespace fl
