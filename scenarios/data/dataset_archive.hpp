// Data sets as bytes of this program, row selections and their hashes, and the form of a data set without its rows.
#pragma once

#include <cstdint>
#include <span>

#include "fl_core/data/dataset.hpp"
#include "fl_core/state/archive.hpp"

namespace fl {

// Returns a data set of these rows of `data`, in this order, without a natural partition.
template <class T>
[[nodiscard]] FL_API Dataset<T> select_rows(const Dataset<T>& data, std::span<const std::uint32_t> rows);

// Returns a hash of what these rows contain, labels and targets included, in this order. The numbers of the rows do not affect it.
template <class T>
[[nodiscard]] FL_API std::uint64_t hash_of_rows(const Dataset<T>& data, std::span<const std::uint32_t> rows);

// Returns the form of `data`, to which a model can be bound: everything but its rows, with one row of zeros in their place.
template <class T>
[[nodiscard]] FL_API Dataset<T> form_of(const Dataset<T>& data);

// Writes or reads a data set, without its natural partition. Throws ArchiveError when what is read does not fit together.
template <class T>
FL_API void persist(Archive& archive, Dataset<T>& data);

}  // namespace fl
