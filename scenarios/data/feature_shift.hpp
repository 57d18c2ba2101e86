// Data as clients see them: a copy of a training set in which the rows of each client are turned or noisy as its FeatureShift says.
//
// A row belongs to one client, so what a client sees can stand in the rows themselves: models, gradients and evaluations on clients' own
// rows read the copy and know nothing of shifts; rows of no client (a held-out test set) stay as they are. The copy costs the memory of
// the features once more; noise turns pixels into numbers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fl_core/data/dataset.hpp"
#include "fl_core/data/partitioner.hpp"

namespace fl {

// shifts [n] of shards [n]. Throws ConfigError for tokens, sparse rows, data without labels and targets, and turns of what is no square
// image.
template <class T>
[[nodiscard]] Dataset<T> as_clients_see(const Dataset<T>& data, std::span<const Shard> shards, std::span<const FeatureShift> shifts,
                                        std::uint64_t seed);

extern template Dataset<float> as_clients_see(const Dataset<float>&, std::span<const Shard>, std::span<const FeatureShift>, std::uint64_t);
extern template Dataset<double> as_clients_see(const Dataset<double>&, std::span<const Shard>, std::span<const FeatureShift>,
                                               std::uint64_t);

}  // namespace fl
