// Sums of lists of values. Each client sends one list.
//
//   sum_j = sum_i weight_i c_ij   for all positions j, 0 where no list has an entry
//
// Each block owns a part of the positions, as large as its shared memory allows: the ends of a client's entries in a part lie within
// memory sectors that several parts read. A preceding kernel finds the first entry of each part.
#pragma once

#include <cstddef>

#include "fl_core/memory/exec.hpp"
#include "server/cuda/sent_message.cuh"

namespace fl::cuda {

// Sums the lists. message: [num_messages] on the device, of Form::list or nothing; most_sent: maximum number of entries. sum: [length] on
// the device, written completely.
template <class T>
void sum_lists(const Exec& exec, const SentMessage<T>* message, std::size_t num_messages, std::size_t most_sent, std::size_t length,
               double* sum);

// Returns the number of positions of every part except the last.
template <class T>
[[nodiscard]] std::size_t list_part_length(std::size_t num_messages, std::size_t most_sent, std::size_t length);

extern template std::size_t list_part_length<float>(std::size_t, std::size_t, std::size_t);
extern template std::size_t list_part_length<double>(std::size_t, std::size_t, std::size_t);
extern template void sum_lists<float>(const Exec&, const SentMessage<float>*, std::size_t, std::size_t, std::size_t, double*);
extern template void sum_lists<double>(const Exec&, const SentMessage<double>*, std::size_t, std::size_t, std::size_t, double*);

}  // namespace fl::cuda
